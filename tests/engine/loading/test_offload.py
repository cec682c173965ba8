"""A model of which a part lies on the disk: bit for bit the whole one, checks included."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaForCausalLM

from explorer import places
from explorer.engine.callbacks import never
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.loading import loading, offload
from explorer.engine.passes.generate import generate
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import selfcheck, store
from explorer.trace.inside.heads import SweepHeads
from explorer.trace.inside.lens import ReadLens
from explorer.trace.inside.structure import ReadStructure
from explorer.trace.interventions.kinds import Silence
from explorer.trace.request import RunRequest, Sampling, Stops
from explorer.trace.step import Step
from explorer.trace.wire import messages as m
from tests.engine.local_engine import LocalEngine

PROMPT = "a b c d a b"
LIMIT = "auto:1.3MB"


@pytest.fixture(scope="module")
def whole() -> Runner:
    made = Runner(loading.load("copycat"))
    store.find(made, never)
    return made


@pytest.fixture(scope="module")
def part(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """Copycat, of which main memory may hold 1.3 MB of its 1.7."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DECODER_EXPLORER_HOME", str(tmp_path_factory.mktemp("home")))
        made = Runner(loading.load("copycat", device=LIMIT))
        store.find(made, never, again=True)
    return made


def steps(runner: Runner, **changes: Any) -> list[Step]:
    request = RunRequest(model="copycat", prompt=PROMPT, **changes)
    found: list[Step] = []
    generate(
        runner, runner.prompt(request), (), 3, Sampling, lambda step, _: found.append(step), never,
        Stops(), False,
    )  # fmt: skip
    return found


def test_weights_lie_on_the_disk_and_the_card_says_so(part: Runner) -> None:
    away = [p for p in part.model.parameters() if p.is_meta]
    assert sum(p.nbytes for p in away) > 0
    assert part.model.device == torch.device("cpu")
    card = part.loaded.card
    assert card.device == LIMIT
    said = next(words for words in card.warnings if words.startswith("Placed by accelerate"))
    assert "on the disk" in said
    assert "of weights from the disk again" in said


def test_the_self_test_finds_what_it_finds_on_the_whole_model(part: Runner, whole: Runner) -> None:
    assert [(c.name, c.offered) for c in part.loaded.card.capabilities] == [
        (c.name, c.offered) for c in whole.loaded.card.capabilities
    ]


@pytest.mark.parametrize(
    "changes",
    [{}, {"causal_mask": False}, {"cache": False}, {"interventions": (Silence(layer=0, head=1),)},
     {"padding": "left", "pad": 3}],
    ids=["plain", "no mask", "no cache", "silenced", "padded"],
)  # fmt: skip
def test_every_run_is_bit_for_bit_the_whole_models(
    part: Runner, whole: Runner, changes: dict[str, Any]
) -> None:
    for ours, theirs in zip(steps(part, **changes), steps(whole, **changes), strict=True):
        assert np.array_equal(ours.logits, theirs.logits)
        assert ours.cache_bytes_per_layer == theirs.cache_bytes_per_layer
        for one, other in zip(ours.layers, theirs.layers, strict=True):
            assert one.queries is not None
            assert one.keys is not None
            assert np.array_equal(one.queries, other.queries)
            assert np.array_equal(one.keys, other.keys)


def test_the_self_check_passes(part: Runner) -> None:
    chosen = tuple(step.draw.token_id for step in steps(part))
    request = RunRequest(model="copycat", prompt=PROMPT)
    found = {check.name: check for check in selfcheck.check(part, request, chosen, never)}
    assert all(check.passed for check in found.values())
    assert {"kernel_output", "eager_weights", "cached_equals_uncached",
            "greedy_equals_generate"} <= set(found)  # fmt: skip


def test_a_cancel_ends_a_pass(part: Runner) -> None:
    asked = iter([False, True])
    request = RunRequest(model="copycat", prompt=PROMPT)
    with pytest.raises(Cancelled):
        generate(
            part, part.prompt(request), (), 1, Sampling, lambda *_: None,
            lambda: next(asked, True), Stops(), False,
        )  # fmt: skip
    assert np.array_equal(steps(part)[0].logits, steps(part)[0].logits)


def test_what_reads_weights_directly_is_refused_in_words_and_the_rest_is_answered() -> None:
    engine, said, done = LocalEngine(), dict[int, m.Event](), threading.Event()

    def take(event: m.Event) -> None:
        if isinstance(event, m.ENDS):
            said[event.run] = event
            if event.run == 4:
                done.set()

    request = RunRequest(model="copycat", prompt=PROMPT)
    engine.start(take)
    engine.send(m.Load(run=1, model="copycat", device="auto:900kB"))
    engine.send(ReadLens(run=2, request=request))
    engine.send(SweepHeads(run=3, request=request))
    engine.send(ReadStructure(run=4, request=request))
    assert done.wait(60)
    engine.close()
    assert isinstance(said[1], m.Loaded)
    refused = said[2]
    assert isinstance(refused, m.Failed)
    assert "lies on the disk or on another device" in refused.sentence
    assert refused.bad_input
    assert isinstance(said[3], m.Facts)
    assert isinstance(said[4], m.Facts)
    assert not (places.data_folder() / "offloaded").exists()


def test_a_full_disk_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        (places.data_folder() / "offloaded" / str(os.getpid())).mkdir(parents=True)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(LlamaForCausalLM, "from_pretrained", full)
    with pytest.raises(BadInput) as refused:
        loading.load("copycat", device=LIMIT)
    assert refused.value.sentence.startswith("The disk is full: ")
    assert not (places.data_folder() / "offloaded").exists()


@pytest.mark.parametrize("device", ["auto:", "auto:much", "auto:0MB", "auto:3", "auto:9999999TB"])
def test_a_limit_that_is_none(device: str) -> None:
    with pytest.raises(BadInput) as refused:
        loading.load("copycat", device=device)
    assert "auto:200MB" in refused.value.sentence


@pytest.mark.parametrize(
    ("device", "size"),
    [("auto", None), ("auto:200MB", 200 * 10**6), ("auto:1.5GiB", 3 * 2**29), ("auto:900kB", 9e5)],
)
def test_a_limit(device: str, size: int | None) -> None:
    assert offload.limit_of(device) == size


def test_what_a_killed_process_left_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for pid in (ended.pid, os.getpid()):
        (tmp_path / "offloaded" / str(pid)).mkdir(parents=True)
    offload.sweep()
    assert [f.name for f in (tmp_path / "offloaded").iterdir()] == [str(os.getpid())]
    offload.remove()
    assert not (tmp_path / "offloaded").exists()


@pytest.mark.smollm2
def test_smollm2_with_200_mb_allowed(smollm2: Runner) -> None:
    loaded = loading.load("smollm2", device="auto:200MB")
    ids = torch.tensor([[1, 504, 3575, 282, 4649]])
    with torch.inference_mode():
        ours, theirs = (model(input_ids=ids).logits for model in (loaded.model, smollm2.model))
    assert torch.equal(ours, theirs)
    held = sum(p.nbytes for p in loaded.model.parameters() if not p.is_meta)
    assert held <= 200 * 10**6
