"""What a session's file brings back beside the trace: the branch tree and the last batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.session.saving.autosave import Autosave
from explorer.trace.batch import BatchRequest
from explorer.trace.files import dxt
from explorer.trace.files.saved_extras import SavedExtras
from explorer.trace.request import Sampling
from explorer.trace.trace import Trace
from explorer.trace.wire import messages as m
from tests.session.saving.test_trace_files import settle
from tests.session.scripted import Stage, cut_last
from tests.trace.batches import result, row


def forked(stage: Stage) -> Stage:
    """Two named branches; the first two steps of the second are on screen."""
    stage.loaded("prompt").ran(3)
    stage.session.select(step=1)
    stage.session.force(20)
    stage.session.set_sampling(Sampling(greedy=False, temperature=1.5))
    stage.session.step()
    stage.prompted()
    stage.steps(1)
    stage.finish()
    stage.session.rename_branch(1, "plain")
    cut_last(stage.session)
    return stage


def shape(stage: Stage) -> list[tuple[str, tuple[int, ...]]]:
    return [(branch.name, branch.trace.chosen_ids) for branch in stage.state.tree]


def test_a_saved_session_opens_with_its_tree_names_and_place(stage: Stage, tmp_path: Path) -> None:
    forked(stage).session.saving.save(tmp_path / "a.dxt")
    settle(stage)
    other = Stage()
    other.session.saving.open(tmp_path / "a.dxt")
    settle(other)
    assert shape(other) == shape(stage)
    assert [name for name, _ in shape(other)] == ["plain", "B"]
    assert other.state.branches.get(other.state.branches.current) == other.state.branches.all[1]
    assert other.state.trace is not None
    assert len(other.state.trace.steps) == 2
    for mine, theirs in zip(other.state.tree, stage.state.tree, strict=True):
        assert [s.sampling for s in mine.trace.steps] == [s.sampling for s in theirs.trace.steps]
    other.session.show_branch(1)
    assert other.state.trace.chosen_ids == shape(stage)[0][1]
    other.session.undo()
    other.session.undo()
    assert other.state.trace is None
    other.close()


def test_opening_a_file_twice_adds_no_branch_and_keeps_the_names_of_now(
    stage: Stage, tmp_path: Path
) -> None:
    forked(stage).session.saving.save(tmp_path / "a.dxt")
    settle(stage)
    stage.session.rename_branch(1, "renamed since")
    stage.session.saving.open(tmp_path / "a.dxt")
    settle(stage)
    assert [name for name, _ in shape(stage)] == ["renamed since", "B"]


def test_forgotten_branches_are_not_saved_and_come_back_with_the_file(
    stage: Stage, tmp_path: Path
) -> None:
    forked(stage).session.saving.save(tmp_path / "both.dxt")
    stage.session.forget_branch(1)
    stage.session.saving.save(tmp_path / "one.dxt")
    settle(stage)
    assert [b.name for b in dxt.load_whole(tmp_path / "one.dxt")[1].branches] == ["B"]
    stage.session.saving.open(tmp_path / "both.dxt")
    settle(stage)
    assert [name for name, _ in shape(stage)] == ["plain", "B"]


BATCH = result(row(2), row(4), vocabulary=96)


def with_batch(stage: Stage) -> None:
    stage.session.batches.run(BatchRequest(prompts=("a", "b")))
    stage.say(m.Batched(run=stage.engine.last(m.RunBatch).run, result=BATCH))


def test_a_batch_is_saved_with_the_trace_or_alone(stage: Stage, tmp_path: Path) -> None:
    with_batch(stage.loaded("typed"))
    stage.session.saving.save(tmp_path / "alone.dxt")
    settle(stage)
    assert stage.state.saved is not None
    with_batch(stage.ran(1))
    stage.session.saving.save(tmp_path / "both.dxt")
    settle(stage)
    for name, steps in (("alone.dxt", None), ("both.dxt", 1)):
        other = Stage()
        other.session.saving.open(tmp_path / name)
        settle(other)
        assert other.state.batch == BATCH
        assert other.state.request.prompt == "typed"
        trace = other.state.trace
        assert (None if trace is None else len(trace.steps)) == steps
        other.close()


def test_the_autosave_hears_of_branches_and_of_a_batch(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[tuple[Trace, SavedExtras]] = []
    monkeypatch.setattr(Autosave, "note", lambda self, *whole: heard.append(whole))
    with_batch(forked(stage))
    trace, beside = heard[-1]
    assert trace is stage.state.trace
    assert beside.batch == BATCH
    assert [one.name for one in beside.branches] == ["plain", "B"]
