"""Weights that change on disk under a run: between two openings, and while the model is open."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from explorer.session.state import State
from explorer.trace.files import dxt
from tests.engine import folders
from tests.engine.local_engine import LocalEngine
from tests.session.connection.test_real_engine import Running, assert_same_run
from tests.session.scripted import cut_last


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return folders.write_folder(tmp_path / "home of anna" / "toy", folders.model())


@pytest.fixture
def opened(folder: Path) -> Iterator[Callable[[], Running]]:
    made: list[Running] = []

    def start() -> Running:
        made.append(Running(LocalEngine, folder))
        return made[-1]

    yield start
    for running in made:
        running.session.close()


def train(folder: Path, only: str = "", by: float = 0.3) -> None:
    """Other numbers under the same names, shapes and sizes, and the same time of change."""
    path = folder / "model.safetensors"
    before = path.stat()
    tensors = load_file(path)
    changed = {n: t + by * torch.randn_like(t) if only in n else t for n, t in tensors.items()}
    save_file(changed, folder / "new", metadata={"format": "pt"})
    assert (folder / "new").stat().st_size == before.st_size
    path.write_bytes((folder / "new").read_bytes())  # in place: the very file that is open
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def idle(state: State) -> bool:
    return state.status.activity == "idle"


def reopen(running: Running, file: Path) -> None:
    running.session.saving.open(file)
    running.until(lambda s: s.saved is not None and s.saved.trace is s.trace)


def drifted(running: Running) -> State:
    running.session.step()
    running.until(lambda s: s.drift is not None and idle(s))
    return running.state


@pytest.mark.parametrize("only", ["", "layers.1.mlp.up_proj", "layers.2.input_layernorm"])
def test_a_saved_run_does_not_go_on_with_weights_trained_since(
    opened: Callable[[], Running], folder: Path, tmp_path: Path, only: str
) -> None:
    running = opened()
    running.step(3)
    running.session.saving.save(tmp_path / "run.dxt")
    running.until(lambda s: s.saved is not None)
    train(folder, only)
    later = opened()
    reopen(later, tmp_path / "run.dxt")
    state = drifted(later)
    assert len(later.trace.steps) == 3
    assert state.drift is not None
    assert not state.drift.same_files
    assert state.drift.apart > state.drift.limit
    later.session.run_again()
    later.until(lambda s: idle(s) and len(s.tree) == 2 and len(s.tree[1].trace.steps) == 3)
    later.session.saving.save(tmp_path / "both.dxt")
    later.until(lambda s: s.saved is not None and s.saved.trace is s.trace)
    trace, beside = dxt.load_whole(tmp_path / "both.dxt")
    prints = [one.trace.card.fingerprint for one in beside.branches]
    assert prints[0] != prints[1] == trace.card.fingerprint


def test_a_saved_run_goes_on_where_the_model_is_the_same(
    opened: Callable[[], Running], folder: Path, tmp_path: Path
) -> None:
    running = opened()
    running.step(5)
    whole = running.trace
    cut_last(running.session, 2)
    running.session.saving.save(tmp_path / "run.dxt")
    running.until(lambda s: s.saved is not None)
    os.utime(folder / "model.safetensors")  # another time alone is no other model
    later = opened()
    reopen(later, tmp_path / "run.dxt")
    later.step(2)
    assert_same_run(later.trace, whole)


@pytest.mark.parametrize("keeps_time", [True, False])
def test_weights_written_over_while_the_model_is_open(
    opened: Callable[[], Running], folder: Path, keeps_time: bool
) -> None:
    running = opened()
    running.step(2)
    train(folder)
    if not keeps_time:
        os.utime(folder / "model.safetensors")
    state = drifted(running)
    assert state.drift is not None
    assert len(running.trace.steps) == 2
    assert state.error == ""


def test_a_saved_run_tells_no_path_and_still_finds_its_model(
    opened: Callable[[], Running], folder: Path, tmp_path: Path
) -> None:
    running = opened()
    running.step(2)
    file = tmp_path / "run.dxt"
    running.session.saving.save(file)
    running.until(lambda s: s.saved is not None)
    assert b"anna" not in file.read_bytes()
    assert str(tmp_path).encode() not in file.read_bytes()
    trace = dxt.load(file)
    assert (trace.request.model, trace.card.path) == ("toy", "")
    other = folders.write_folder(tmp_path / "other", folders.model(seed=1))
    decoy = tmp_path / "decoy" / "toy"
    shutil.copytree(other, decoy)
    later = Running(LocalEngine, decoy)  # of the same name, and opened last
    reopen(later, file)
    later.step(1)
    assert later.state.card is not None
    assert later.state.card.path == str(folder)
    later.session.close()
