"""Keys kept in other types than float16: maps as llama.cpp computes them, bytes, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from explorer.engine.callbacks import nobody
from explorer.engine.errors import BadInput
from explorer.llama_engine.inside import lens
from explorer.llama_engine.passes.generate import forward
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.llama_engine.passes.watch import Wanted
from explorer.llama_engine.selftest import gaps
from explorer.llama_engine.selftest.tolerance import logit_tolerance
from explorer.trace.inside.lens import ReadLens
from explorer.trace.interventions.lines import read
from explorer.trace.request import RunRequest
from tests.llama_engine import tiny_gguf
from tests.llama_engine.opened import opened, run
from tests.llama_engine.oracle import direct

REQUEST = RunRequest(prompt="the cat sat on the mat and the dog sat")
STEPS = 4
TYPES = {"q8_0": (8, 34), "q5_0": (6, 22), "q4_0": (2, 18), "bf16": (30, 64), "f32": (0, 128)}
"""By name: its ggml_type, and the bytes of 32 numbers."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Heads of 32 numbers, with windows."""
    return tiny_gguf.write(tmp_path_factory.mktemp("keys") / "x.gguf", "gemma3")


@pytest.mark.parametrize("name", TYPES)
def test_maps_and_bytes_are_those_of_the_keys_as_they_are_kept(path: Path, name: str) -> None:
    number, block = TYPES[name]
    runner = opened(path, name)
    card = runner.card
    assert card.cache_type_k == name
    assert runner.proven is not None
    assert runner.proven.rebuilt == frozenset(range(card.layers))
    numbers = card.kv_heads * card.head_dim
    assert card.kv_bytes_per_token == card.layers * (numbers // 32 * block + 2 * numbers)
    trace = run(runner, REQUEST, STEPS)
    assert not runner.run_context(1).watch.stopping
    ids = [token.id for token in trace.tokens]
    prompt = len(trace.prompt)
    with direct(path, keys=number) as theirs:
        logits = theirs.read(ids[:prompt])
        for step in range(STEPS):
            assert np.array_equal(trace.steps[step].logits, logits)
            for layer, maps in theirs.maps.items():
                for head in range(len(maps)):
                    ours = trace.weights(step, layer, head)
                    assert np.abs(ours - maps[head]).max() <= 1e-5
            logits = theirs.read([ids[prompt + step]])
    assert trace.steps[-1].cache_bytes == (prompt + STEPS - 1) * card.kv_bytes_per_token
    runner.close()


@pytest.fixture(scope="module")
def four_bits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaRunner]:
    """Keys in four bits; a prompt of some tokens is read in several calls."""
    path = tiny_gguf.write(tmp_path_factory.mktemp("four") / "x.gguf", "gemma3", kind="Q8_0")
    runner = opened(path, "q4_0")
    runner.chunk = 4
    yield runner
    runner.close()


@pytest.mark.parametrize(
    "lines", ["", "silence 0.1; silence 2.mlp", "cut 1.*:*<-0; scale *.*:2", "silence 5"]
)
def test_cache_undo_chunks_and_lens_hold_under_interventions(
    four_bits: LlamaRunner, lines: str
) -> None:
    changes = tuple(read(line) for line in lines.split("; ") if line)
    request = RunRequest(prompt=REQUEST.prompt, interventions=changes)
    trace = run(four_bits, request, STEPS)
    assert len(trace.prompt) > 2 * four_bits.chunk
    slots = len(trace.tokens) - 1
    ids = [token.id for token in trace.tokens[:slots]]
    whole = four_bits.spare_context(slots, whole=True)
    wanted = Wanted(weights=True, inside=four_bits.inside(request))
    done = forward(four_bits, whole, ids, wanted, at=range(slots))
    for step in range(STEPS):
        expected = done.logits[slots - STEPS + step]
        assert np.abs(trace.steps[step].logits - expected).max() <= logit_tolerance(expected)
    for layer in range(four_bits.card.layers):
        own = gaps.own_weights(done, layer)
        assert own is not None
        for head in range(four_bits.card.heads):
            drawn = trace.weights(STEPS - 1, layer, head)
            assert np.abs(drawn[-1] - own[head, -1]).max() <= 1e-5
    back = run(four_bits, request, 1, trace.chosen_ids[:1]).steps[0]
    assert back.rebuilt_tokens == 0
    assert np.array_equal(back.logits, trace.steps[1].logits)
    asked = ReadLens(request=request, chosen=trace.chosen_ids[:-1], slots=(slots - 1,), top=1)
    found = lens.read(four_bits, asked, nobody)
    logits = trace.steps[-1].logits.astype(np.float64)
    shares = np.exp(logits - logits.max())
    assert found.probabilities[-1, 0, 0] == pytest.approx(shares.max() / shares.sum(), rel=1e-5)


def test_four_bits_are_not_sixteen(path: Path) -> None:
    """What the type changes is shown, not smoothed over."""
    maps = []
    for name in ("f16", "q4_0"):
        runner = opened(path, name)
        maps.append(run(runner, REQUEST, 1).weights(0, 0, 0))
        runner.close()
    assert np.abs(maps[0] - maps[1]).max() > 1e-3


@pytest.mark.parametrize(
    ("architecture", "words"),
    [
        ("llama", "no multiple of 32"),
        ("deepseek2", "one latent"),
        ("mamba", "states no attention heads"),
    ],
)
def test_keys_that_can_t_be_kept_in_blocks_are_refused(
    tmp_path: Path, architecture: str, words: str
) -> None:
    """llama.cpp itself would crash on them."""
    with pytest.raises(BadInput, match=words):
        opened(tiny_gguf.write(tmp_path / "x.gguf", architecture), "q8_0")
