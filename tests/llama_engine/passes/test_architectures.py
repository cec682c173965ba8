"""Every architecture, held against llama.cpp asked directly: maps, masks, cache, undo, chunks.

What does not hold on an architecture is refused in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from explorer.engine.callbacks import nobody
from explorer.engine.errors import BadInput
from explorer.figures.attention.maps import pass_map
from explorer.llama_engine.inside import lens, residual
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.llama_engine.selftest import selfcheck
from explorer.trace.inside.lens import ReadLens
from explorer.trace.inside.stream import ReadStream
from explorer.trace.interventions.lines import read
from explorer.trace.request import RunRequest
from explorer.trace.trace import Trace
from tests.llama_engine import tiny_gguf
from tests.llama_engine.opened import opened, run
from tests.llama_engine.oracle import direct
from tests.llama_engine.tiny_architectures import WINDOW

TEXT = "the cat sat on the mat and the dog sat, é 日"
EXACT = 1e-5  # maps of the same pass
OTHER_MAPS = 5e-3  # of a token in a pass of another shape
OTHER_SHAPE = 1e-2  # of the spread of logits: passes of other shapes round otherwise
RECURRENT = ("mamba", "falcon-h1", "granitehybrid", "lfm2", "qwen35")
SLIDING = {"gemma2": (0, 2), "gemma3": (0, 1, 2, 3, 4, 6), "gpt-oss": (0, 2)}
WITHOUT = {"mamba": (0, 1, 2), "granitehybrid": (0, 2), "lfm2": (0, 2), "qwen35": (0, 1, 2)}


@dataclass
class Opened:
    """An architecture's file and the engine on it."""

    name: str
    path: Path
    runner: LlamaRunner

    def run(self, steps: int = 1, **more: object) -> Trace:
        return run(self.runner, RunRequest(prompt=TEXT, **more), steps)  # type: ignore[arg-type]


@pytest.fixture(scope="module", params=tiny_gguf.NAMES)
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Opened]:
    path = tiny_gguf.write(tmp_path_factory.mktemp("tiny") / "x.gguf", request.param)
    runner = opened(path)
    yield Opened(request.param, path, runner)
    runner.close()


def same_maps(trace: Trace, step: int, theirs: dict[int, np.ndarray]) -> None:
    """Every head of every layer as it is drawn, against llama.cpp's own."""
    for layer in range(trace.card.layers):
        if layer not in theirs:
            record = trace.steps[step].layers[layer]
            assert record.kind == "absent"
            assert record.reason.endswith(".")
            continue
        for head in range(len(theirs[layer])):
            ours = pass_map(trace, step, layer, head).weights
            assert np.abs(ours - theirs[layer][head]).max() <= EXACT


def allowed(name: str, layer: int, rows: range, keys: int, causal: bool) -> np.ndarray:
    """(rows, keys) bool: which key each token may read, by the architecture's description."""
    ahead = np.arange(keys)[None] - np.array(rows)[:, None]
    seen = ahead <= 0 if causal else np.ones_like(ahead, bool)
    return seen & (ahead > -WINDOW) if layer in SLIDING.get(name, ()) else seen


def test_maps_of_prefill_and_decode_are_llama_cpps_own(made: Opened) -> None:
    trace = made.run(steps=4)
    ids = [token.id for token in trace.tokens]
    prompt = len(trace.prompt)
    with direct(made.path) as theirs:
        logits = theirs.read(ids[:prompt])
        assert set(range(trace.card.layers)) - set(theirs.maps) == set(WITHOUT.get(made.name, ()))
        for step in range(4):
            assert np.array_equal(trace.steps[step].logits, logits)
            same_maps(trace, step, theirs.maps)
            logits = theirs.read([ids[prompt + step]])
    # From the third pass over one token on, llama.cpp is not stopped.
    assert made.runner.run_context(1).watch.stopping == (made.name == "mamba")


def test_every_token_reads_what_the_mask_allows(made: Opened) -> None:
    trace = made.run()
    slots = len(trace.prompt)
    for layer, record in enumerate(trace.steps[0].layers):
        if record.kind != "absent":
            read = pass_map(trace, 0, layer, 0).weights > 0
            assert np.array_equal(read, allowed(made.name, layer, range(slots), slots, True))
    assert [k for k, w in enumerate(trace.card.windows) if w] == list(SLIDING.get(made.name, ()))


def test_without_the_mask_every_token_reads_all_within_its_window(made: Opened) -> None:
    if made.name == "mamba":
        with pytest.raises(BadInput, match="no mask to switch off"):
            refuse_unmasked(made)
        return
    trace = made.run(causal_mask=False)
    ids = [token.id for token in trace.prompt]
    with direct(made.path, causal=False) as theirs:
        logits = theirs.read(ids)
        assert np.array_equal(trace.steps[0].logits, logits)
        same_maps(trace, 0, theirs.maps)
    for layer, record in enumerate(trace.steps[0].layers):
        if record.kind != "absent":
            read = pass_map(trace, 0, layer, 0).weights > 0
            rows = range(len(ids))
            assert np.array_equal(read, allowed(made.name, layer, rows, len(ids), False))


def refuse_unmasked(made: Opened) -> None:
    words = made.runner.card.words("causal_off")
    if not made.runner.card.offers("causal_off"):
        raise BadInput(words)


def test_cached_steps_are_the_uncached_ones(made: Opened) -> None:
    assert made.runner.card.offers("cache")
    cached, whole = made.run(steps=3), made.run(steps=3, cache=False)
    for step in range(3):
        ours, other = cached.steps[step].logits, whole.steps[step].logits
        assert np.abs(ours - other).max() <= OTHER_SHAPE * np.ptp(other)


def test_after_undo_a_step_has_the_same_bits(made: Opened) -> None:
    """Where the memory can't be cut, what was read before is read again: other shapes of pass."""
    first = made.run(steps=5)
    kept = first.chosen_ids[:2]
    again = run(made.runner, RunRequest(prompt=TEXT), 1, kept).steps[0]
    offered = made.runner.card.offers("undo")
    assert offered == (made.name not in RECURRENT)
    assert bool(again.rebuilt_tokens) == (not offered)
    gap = np.abs(again.logits - first.steps[2].logits).max()
    assert gap <= (0 if offered else OTHER_SHAPE * np.ptp(again.logits))


def test_a_prompt_read_in_parts_is_the_whole_one(made: Opened) -> None:
    """Maps and logits of a pass in chunks of five."""
    assert made.runner.card.offers("chunked_prefill")
    trace = made.run()
    ids = [token.id for token in trace.prompt]
    with direct(made.path) as parts:
        for begin in range(0, len(ids), 5):
            logits = parts.read(ids[begin : begin + 5])
            for layer, theirs in parts.maps.items():
                rows = slice(begin, begin + theirs.shape[1])
                ours = pass_map(trace, 0, layer, 0).weights[rows, : theirs.shape[2]]
                assert np.abs(ours - theirs[0]).max() <= OTHER_MAPS
    assert np.abs(logits - trace.steps[0].logits).max() <= OTHER_SHAPE * np.ptp(logits)


def test_the_lens_ends_in_what_llama_cpp_says(made: Opened) -> None:
    """Its last row, bit for bit, asked directly in a context that nobody looks into."""
    request = RunRequest(prompt=TEXT)
    ids = made.runner.layout(request, ()).ids
    last = ReadLens(request=request, slots=(len(ids) - 1,), top=3)
    board = lens.read(made.runner, last, nobody)
    with direct(made.path) as asked:
        logits = asked.read(ids).astype(np.float64)
    shares = np.exp(logits - logits.max())
    shares /= shares.sum()
    assert np.allclose(board.probabilities[-1, 0], np.sort(shares)[::-1][:3], rtol=1e-5)
    assert board.final_gap == 0
    assert len(board.rows) == made.runner.card.layers + 1
    every = lens.read(made.runner, ReadLens(request=request), nobody)
    stream = residual.read(made.runner, ReadStream(request=request), nobody)
    assert stream.rows == every.rows
    assert stream.gap <= 1e-5
    assert every.slots == tuple(range(len(ids)))
    assert every.final_gap == 0


def test_what_is_changed_is_the_same_with_the_cache(made: Opened) -> None:
    """One intervention of each kind at once, by the checks that the window makes."""
    layer = min(made.runner.query_heads, default=1)
    lines = {
        "silence_heads": f"silence {layer}.1",
        "cut_cells": f"cut {layer}.0:*<-0",
        "scale_scores": "scale *.2:2",
        "silence_mlp": "silence 0.mlp",
        "silence_layers": "silence 1",
    }
    possible = [name for name in lines if made.runner.card.offers(name)]
    assert possible == (["silence_layers"] if made.name == "mamba" else list(lines))
    request = RunRequest(prompt=TEXT, interventions=tuple(read(lines[name]) for name in possible))
    chosen = run(made.runner, request, 2).chosen_ids
    checks = {one.name: one for one in selfcheck.check(made.runner, request, chosen)}
    assert [name for name, one in checks.items() if not one.passed] == []
    assert "cached_equals_uncached" in checks
    assert made.name == "mamba" or {"cut_cells", "kernel_output"} <= checks.keys()
