"""One model over two processes (torchrun): the same as by one, and lost as a whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from explorer.session.connection.remote import EngineProcess
from explorer.trace.interventions.kinds import Silence
from explorer.trace.request import Stops
from explorer.trace.trace import Trace
from tests.engine import folders
from tests.engine.local_engine import LocalEngine
from tests.session.connection.test_real_engine import Running

TWO = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "explorer")
CLOSE = 1e-5  # logits and attention of the same arithmetic in another order


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folders.write_folder(tmp_path_factory.mktemp("tiny"), folders.model(eos_token_id=None))


@pytest.fixture(scope="module")
def one(tiny: Path) -> Iterator[Running]:
    running = Running(LocalEngine, tiny)
    yield running
    running.session.close()


@pytest.fixture(scope="module")
def two(tiny: Path) -> Iterator[Running]:
    running = Running(lambda: EngineProcess([*TWO, "engine"]), tiny)
    yield running
    running.session.close()


def runs(one: Running, two: Running, setting: str) -> list[Trace]:
    """A run of four tokens with this setting, by each."""
    found = []
    for running in (one, two):
        session = running.session
        session.reset()
        session.set_causal_mask(setting != "mask off")
        session.set_cache(setting != "no cache")
        session.set_padding("left" if setting == "padding" else None, 3)
        heads = (Silence(layer=0, head=3), Silence(layer=2, head=0)) if setting == "silent" else ()
        session.set_interventions(heads)
        running.step(4)
        found.append(running.trace)
    return found


@pytest.mark.parametrize("setting", ["usual", "mask off", "no cache", "padding", "silent"])
def test_two_processes_compute_what_one_does(one: Running, two: Running, setting: str) -> None:
    alone, shared = runs(one, two, setting)
    assert alone.chosen_ids == shared.chosen_ids
    assert [step.cache_bytes for step in alone.steps] == [s.cache_bytes for s in shared.steps]
    for a, b in zip(alone.steps, shared.steps, strict=True):
        np.testing.assert_allclose(a.logits, b.logits, atol=CLOSE, rtol=0)
    for layer in range(3):
        for head in range(4):
            maps = [trace.weights(0, layer, head) for trace in (alone, shared)]
            np.testing.assert_allclose(*maps, atol=CLOSE)


def test_what_each_process_did_is_told(one: Running, two: Running) -> None:
    _, shared = runs(one, two, "usual")
    assert shared.card.processes == 2
    for step in shared.steps:
        assert [rank.cache_bytes * 2 for rank in step.ranks] == [step.cache_bytes] * 2
        assert all(0 < rank.waiting_ms < rank.forward_ms for rank in step.ranks)
    assert not one.trace.steps[0].ranks


def test_everything_works_that_does_in_one_process(one: Running, two: Running) -> None:
    offered = [
        {found.name for found in running.trace.card.capabilities if found.offered}
        for running in (one, two)
    ]
    assert offered[0] == offered[1]
    two.session.run_self_check()
    two.until(lambda state: state.status.activity == "idle" and state.self_check is not None)
    assert [check.name for check in two.state.self_check.checks if not check.passed] == []


def test_a_run_ends_in_all_processes_when_it_is_cancelled(two: Running) -> None:
    session = two.session
    session.set_stops(Stops(end_tokens=False))
    session.reset()
    session.step(50)
    two.until(lambda state: state.trace is not None and len(state.trace.steps) >= 2)
    session.pause()
    two.until(lambda state: state.status.activity == "idle")
    stopped = len(two.trace.steps)
    two.step(2)
    assert len(two.trace.steps) == stopped + 2


def test_a_process_that_dies_ends_the_engine_and_the_run_is_kept(two: Running) -> None:
    """The last test: both processes are gone after it."""
    engine = two.engines[-1]
    assert isinstance(engine, EngineProcess)
    launcher = psutil.Process(engine.pid)
    ranks = {child.environ()["RANK"]: child for child in launcher.children(recursive=True)}
    kept = len(two.trace.steps)
    ranks["1"].kill()
    two.until(lambda state: state.status.activity == "lost")
    assert len(two.trace.steps) == kept
    _, alive = psutil.wait_procs([launcher, *ranks.values()], timeout=20)
    assert alive == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"num_attention_heads": 3, "num_key_value_heads": 3, "hidden_size": 24}, "3 query heads"),
        ({"model_type": "gpt2"}, "no tensor-parallel plan"),
    ],
)
def test_what_cannot_be_divided_is_refused(
    changes: dict[str, object], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoConfig

    from explorer.engine.errors import BadInput
    from explorer.engine.loading import tensor_parallel

    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "test")
    config = AutoConfig.for_model(**{"model_type": "llama", **changes})
    with pytest.raises(BadInput, match=reason):
        tensor_parallel.require_plan("tiny", config)
