"""The second side in the window: who acts, what is asked before it goes, and what costs nothing."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QMessageBox, QPushButton, QWidget

from explorer import places
from explorer.figures.comparing.matching import matched
from explorer.figures.text.tokens import in_quotes, written
from explorer.session.linked.linked_runs import ONE_MODEL
from explorer.session.saving import recovery
from explorer.session.session import Session
from explorer.trace.card import Capability
from explorer.trace.files import dxt
from explorer.trace.interventions.kinds import Patch
from explorer.trace.step import Token
from explorer.trace.wire import messages as m
from explorer.ui.beside import words
from explorer.ui.beside.second_side import SecondSide
from explorer.ui.dialogs.hub import HubDialog
from explorer.ui.dialogs.model_picker import ModelPicker
from explorer.ui.dialogs.remote_code import CodeDialog
from explorer.ui.inputs.sample_prompts import Sample
from explorer.ui.panels.attention.panel import AttentionPanel
from tests.session.scripted import PROMPT, played, stepped
from tests.ui.stage import WindowStage
from tests.ui.waiting import settle, wait_until


def begun(stage: WindowStage, steps: int = 2) -> SecondSide:
    """A second side whose model is open."""
    stage.loaded().ran(steps)
    second = stage.window.beside.begin()
    stage.drain()
    stage.answer_load()
    stage.paint()
    return second


def advance(stage: WindowStage, session: Session, engine: int) -> None:
    """Answer the step that was asked for last."""
    asked = stage.engines[engine]
    run = asked.last(m.Advance).run
    assert session.state.trace is not None
    index = len(session.state.trace.steps)
    asked.say(m.Prompted(run=run, tokens=PROMPT), stepped(run, index))
    asked.say(m.Finished(run=run, reason="steps"))
    stage.drain()
    stage.paint()


def question(stage: WindowStage) -> QMessageBox:
    (found,) = (box for box in stage.window.findChildren(QMessageBox) if box.isVisible())
    return found


class PaintCount(QObject):
    """Paint events of everything inside a widget."""

    def __init__(self, root: QWidget) -> None:
        super().__init__()
        self.count = 0
        for widget in [root, *root.findChildren(QWidget)]:
            widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.count += event.type() == QEvent.Type.Paint
        return False


def test_a_step_of_one_side_neither_paints_nor_computes_on_the_other(stage: WindowStage) -> None:
    second = begun(stage)
    stage.window.beside.switch_link()
    wait_until(lambda: second.docks.settled and stage.window.docks.settled)
    settle()
    painted = PaintCount(second.sequence), PaintCount(second.docks)
    asked = len(stage.engines[1].asked)
    stage.window.beside.step()
    advance(stage, stage.session, 0)
    wait_until(lambda: stage.window.docks.settled)
    settle()
    assert [one.count for one in painted] == [0, 0]
    assert len(stage.engines[1].asked) == asked
    stage.window.beside.act_on(second.side)
    second.session.select(layer=1)
    wait_until(lambda: second.docks.settled)
    settle()
    assert painted[1].count, "what is counted is what is painted"


def test_keys_go_to_the_side_with_the_focus(stage: WindowStage) -> None:
    second = begun(stage)
    stage.window.beside.switch_link()
    second.prompt.edit.setFocus()
    assert stage.window.acting.session is second.session
    assert second.settings.isVisible()
    assert not stage.window.prompt.isVisible()
    stage.window.setFocus()
    QTest.keyClick(stage.window, Qt.Key.Key_Space)
    stage.drain()
    assert stage.engines[1].count(m.Advance) + stage.engines[1].count(m.Recapture) == 1
    assert stage.engines[0].count(m.Advance) == 1
    QTest.mouseClick(stage.window.beside.header, Qt.MouseButton.LeftButton, pos=QPoint(200, 10))
    assert stage.window.acting.session is stage.session
    assert stage.window.prompt.isVisible()


@pytest.mark.parametrize("closing", [False, True])
def test_a_run_of_the_second_side_is_asked_about(stage: WindowStage, closing: bool) -> None:
    second = begun(stage)
    second.session.look(-1)
    second.session.force(20)
    assert second.session.state.unsaved
    if closing:
        stage.window.close()
    else:
        stage.window.beside.end()
    box = question(stage)
    assert "second side" in box.text()
    box.button(QMessageBox.StandardButton.Cancel).click()
    assert stage.window.beside.second is second
    assert stage.window.isVisible()
    stage.window.beside.end()
    question(stage).button(QMessageBox.StandardButton.Discard).click()
    assert stage.window.beside.second is None
    assert not stage.engines[1].alive
    assert stage.window.isVisible()
    assert stage.state.trace is not None


def test_closing_that_is_cancelled_at_the_second_question_loses_neither_run(
    stage: WindowStage,
) -> None:
    second = begun(stage)
    second.session.look(-1)
    second.session.force(20)
    assert stage.state.unsaved
    stage.window.close()
    question(stage).button(QMessageBox.StandardButton.Discard).click()
    settle()
    box = question(stage)
    assert "second side" not in box.text()
    box.button(QMessageBox.StandardButton.Cancel).click()
    settle()
    assert stage.window.isVisible()
    assert stage.window.beside.second is second
    assert stage.engines[1].alive
    assert second.session.state.unsaved
    stage.window.close()
    for _ in range(2):
        question(stage).button(QMessageBox.StandardButton.Discard).click()
        settle()
    assert not stage.window.isVisible()
    assert not stage.engines[1].alive


def test_what_ends_the_program_keeps_the_second_run_for_the_next_start(
    stage: WindowStage,
) -> None:
    second = begun(stage)
    second.session.look(-1)
    second.session.force(20)
    before = set(places.data_folder().glob(recovery.SESSIONS))
    stage.window.end()
    kept = set(places.data_folder().glob(recovery.SESSIONS)) - before
    runs = sorted(dxt.load(path).chosen_ids for path in kept)
    for path in kept:
        recovery.discard(path)
    assert runs == [(10, 11), (20,)], "one of each side"


def test_a_lost_engine_is_restarted_on_its_side(stage: WindowStage) -> None:
    second = begun(stage)
    stage.engines[1].say(m.Lost(sentence="The engine stopped unexpectedly."))
    stage.drain()
    stage.paint()
    assert second.notices.lost.isVisible()
    assert not stage.window.notices.lost.isVisible()
    assert stage.state.status.activity != "lost"
    stage.window.beside.step()
    advance(stage, stage.session, 0)
    assert stage.state.trace is not None
    assert len(stage.state.trace.steps) == 3
    second.notices.lost.findChildren(QPushButton)[0].click()
    stage.drain()
    assert len(stage.engines) == 3
    assert stage.engines[2].last(m.Load).model == "tiny"
    assert stage.engines[0].alive


def test_a_model_that_was_closed_to_make_room_is_no_error(stage: WindowStage) -> None:
    second = begun(stage)
    second.session.release(ONE_MODEL)
    stage.paint()
    assert not second.notices.lost.isVisible()
    assert ONE_MODEL in second.header.words.text()


def test_the_difference_takes_the_place_of_the_panels_and_follows_both_sides(
    stage: WindowStage,
) -> None:
    second = begun(stage)
    beside = stage.window.beside
    beside.show_difference()
    panel = beside.difference
    assert panel is not None
    wait_until(lambda: not panel.empty and not panel.busy)
    assert not stage.window.docks.isVisible()
    assert not second.docks.isVisible()
    assert "KL (left ‖ right) 0 nats" in panel.line.text()
    assert panel.steps.rowCount() == 2
    assert panel.map.has_map
    assert "no cell differs" in panel.read.text()
    beside.switch_link()
    panel.steps.cellClicked.emit(0, 0)
    assert (stage.state.step_index, second.session.state.step_index) == (0, 0)
    panel.steps.cellClicked.emit(1, 0)
    assert (stage.state.step_index, second.session.state.step_index) == (1, 1)
    beside.switch_link()
    for cell, what in (((1, 0), "+0 %"), ((0, 1), "masked")):
        panel.map.hovered.emit(cell)
        assert panel.read.text().endswith(what)
    stage.window.preferences.toggle("nats")
    wait_until(lambda: second.docks.settled and stage.window.docks.settled)
    for docks in (stage.window.docks, second.docks):
        labels = docks.bring_up("next-token").findChildren(QLabel)
        assert any(" bits" in label.text() for label in labels)
        assert not any(" nats" in label.text() for label in labels)
    assert "0 bits" in panel.line.text()
    assert panel.steps.horizontalHeaderItem(3).text() == "KL bits"
    stage.window.preferences.toggle("nats")
    assert panel.steps.horizontalHeaderItem(3).text() == "KL nats"
    second.session.look(-1)
    second.session.force(20)
    wait_until(lambda: panel.steps.rowCount() == 1 and not panel.busy)
    assert "≠" in panel.steps.item(0, 0).text()
    beside.show_difference()
    assert stage.window.docks.isVisible()
    assert second.docks.isVisible()


def test_figures_of_the_difference_are_of_the_runs_that_they_were_made_of(
    stage: WindowStage,
) -> None:
    second = begun(stage)
    beside = stage.window.beside
    beside.show_difference()
    panel = beside.difference
    assert panel is not None
    wait_until(lambda: not panel.empty and not panel.busy)
    before = list(panel.views()["Steps"].table())
    second.session.look(-1)
    second.session.force(20)
    assert beside.links is not None
    panel.show_links(beside.links)
    assert panel.busy
    stage.window.preferences.toggle("nats")  # drawn again, of what it was
    assert list(panel.views()["Steps"].table()) == before
    assert panel.steps.rowCount() == 2
    wait_until(lambda: not panel.busy)
    assert panel.steps.rowCount() == 1
    stage.window.preferences.toggle("nats")


def test_a_part_is_patched_from_the_other_side(stage: WindowStage) -> None:
    able = Capability(name="patch_stream", offered=True, words="it can")
    stage.session.start_engine()
    stage.drain()
    stage.session.open_model("tiny")
    stage.session.set_prompt("hello")
    stage.answer_load(capabilities=(able,))
    stage.ran(2)
    second = stage.window.beside.begin()
    stage.drain()
    stage.answer_load(capabilities=(able,))
    second.session.look(-1)
    second.session.force(20)
    stage.session.select(layer=1, step=0)
    stage.window.beside.show_difference()
    panel = stage.window.beside.difference
    assert panel is not None
    wait_until(lambda panel=panel: not panel.empty and not panel.busy)
    panel.patch.click()
    assert panel.patches is not None
    left, right = (act.menu() for act in panel.patches.actions())
    entries = {act.text(): act for act in left.actions() if act.isEnabled() and act.text()}
    name = next(name for name in entries if "stream after layer 1" in name)
    entries[name].trigger()
    panel.patches.close()
    (patch,) = stage.state.request.interventions
    assert isinstance(patch, Patch)
    assert second.session.state.trace is not None
    read = second.session.state.trace.tokens[: len(patch.source.tokens)]
    assert patch.source.tokens == tuple(token.id for token in read)
    assert not second.session.state.request.interventions
    second.session.open_model("other")
    stage.drain()
    stage.answer_load(name="other", fingerprint={"config": "other"})
    panel.patch.click()
    _, right = (act.menu() for act in panel.patches.actions())
    (why,) = right.actions()
    assert "the same model" in why.text()
    assert not why.isEnabled()
    panel.patches.close()


def test_what_the_second_side_held_is_freed(stage: WindowStage) -> None:
    second = begun(stage)
    stage.window.beside.act_on(second.side)
    stage.window.beside.show_difference()
    panel = stage.window.beside.difference
    assert panel is not None
    wait_until(lambda panel=panel: not panel.busy)
    held = [weakref.ref(one) for one in (second.session, second.docks, second, panel)]
    del second, panel
    stage.window.beside.end_at_once()
    settle()
    stage.app.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    settle()
    gc.collect()
    assert [one() is None for one in held] == [True] * 4


def test_a_branch_beside_its_parent_says_which_it_is(stage: WindowStage) -> None:
    stage.loaded().ran(2)
    stage.session.look(-1)
    stage.session.force(20)
    stage.window.ways_beside.another_branch()
    stage.drain()
    stage.answer_load()
    stage.paint()
    second = stage.window.beside.second
    assert second is not None
    assert "branch B" in stage.window.beside.header.words.text()
    assert "branch A" in second.header.words.text()
    assert second.session.state.trace is not None
    assert second.session.state.trace.chosen_ids == (10, 11)


def test_tokens_are_in_quotes_in_a_sentence() -> None:
    left, right = played(1), played(1)
    right = replace(right, chosen=(Token(39, b".", "generated"),))
    said = words.first_difference(matched(left, right, by_id=True), left, right)
    named = in_quotes(written(left.chosen[0]))
    assert said.endswith(f"{named} left, {in_quotes('.')} right.")
    said = words.first_difference(
        matched(left, replace(right, steps=(), chosen=()), by_id=True), left, right
    )
    assert said.endswith(f"{named} left, nothing right.")


def test_equal_texts_are_not_called_equal_tokens() -> None:
    left, right = played(1), played(1)
    by_id = matched(left, right, by_id=True)
    assert "all tokens are the same" in words.first_difference(by_id, left, right)
    cut = tuple(Token(1, bytes([byte]), "prompt") for byte in left.prompt[0].raw)
    right = replace(right, prompt=(*cut, *left.prompt[1:]))
    by_text = matched(left, right, by_id=False)
    assert by_text.first_difference is None
    assert "texts are the same" in words.first_difference(by_text, left, right)
    assert "all tokens" not in words.first_difference(by_text, left, right)


def test_a_panel_that_is_opened_or_enlarged_is_so_on_both_sides(stage: WindowStage) -> None:
    second = begun(stage)
    docks = {dock.place.id: dock for dock in stage.window.docks.docks}
    others = {dock.place.id: dock for dock in second.docks.docks}
    docks["kv-cache"].toggleViewAction().trigger()
    stage.paint()
    assert docks["kv-cache"].in_front
    assert others["kv-cache"].in_front
    docks["kv-cache"].toggleViewAction().trigger()
    assert others["kv-cache"].isHidden()
    second.docks.enlarge(others["next-token"])
    assert stage.window.docks.enlarged is docks["next-token"]
    stage.window.docks.enlarge(None)
    assert second.docks.enlarged is None
    stage.window.beside.switch_link()
    stage.window.docks.enlarge(docks["attention"])
    assert second.docks.enlarged is None


def test_the_lists_of_panels_and_reset_layout_are_about_the_side_that_acts(
    stage: WindowStage,
) -> None:
    second = begun(stage)
    own = {dock.place.id: dock for dock in stage.window.docks.docks}
    others = {dock.place.id: dock for dock in second.docks.docks}
    stage.window.beside.switch_link()
    stage.window.beside.act_on(second.side)
    rows = stage.window.topbar.panels.menu().actions()
    assert rows == [dock.toggleViewAction() for dock in second.docks.docks]
    others["kv-cache"].toggleViewAction().trigger()
    stage.paint()
    assert others["kv-cache"].in_front
    assert not own["kv-cache"].in_front
    stage.window.beside.switch_link()
    others["timings"].toggleViewAction().trigger()
    stage.paint()
    assert own["timings"].in_front, "linked: on both sides"
    stage.window.reset_layout()
    stage.paint()
    for docks in (own, others):
        assert [name for name, dock in docks.items() if dock.in_front] == [
            "attention", "next-token",
        ]  # fmt: skip
    stage.window.beside.end()
    rows = stage.window.topbar.panels.menu().actions()
    assert rows == [dock.toggleViewAction() for dock in stage.window.docks.docks]


def test_a_notice_is_about_its_own_side(
    stage: WindowStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = begun(stage)
    window = stage.window
    compared: list[object] = []
    monkeypatch.setattr(
        AttentionPanel,
        "compare_interventions",
        lambda panel: compared.append(window.beside.side_of(panel)),
    )
    sides = ((second.side, second.notices), (window.beside.own, window.notices))
    for side, notices in sides:
        window.beside.act_on_other()
        window.beside.act_on(next(one for one in window.beside.sides if one is not side))
        notices.missing.findChildren(QPushButton)[0].click()
        assert window.acting is side
        (picker,) = (one for one in window.findChildren(ModelPicker) if one.isVisible())
        picker.close()
        window.beside.act_on(next(one for one in window.beside.sides if one is not side))
        notices.changed.findChildren(QPushButton)[0].click()
        assert compared[-1] is side


@pytest.mark.parametrize("acts", [False, True])
def test_the_second_side_asks_about_a_models_own_code(stage: WindowStage, acts: bool) -> None:
    second = begun(stage)
    if acts:
        stage.window.beside.act_on(second.side)
    second.session.open_model("/models/own")
    stage.drain()
    run = stage.engines[1].last(m.Load).run
    stage.engines[1].say(m.Failed(run=run, sentence="It runs code.", own_code=("a.py",)))
    stage.drain()
    stage.paint()
    (dialog,) = stage.window.findChildren(CodeDialog)
    assert dialog.isVisible()
    dialog.yes.click()
    stage.drain()
    assert stage.engines[1].last(m.Load).allow_code
    assert not stage.engines[0].last(m.Load).allow_code


def test_a_sample_prompt_and_a_download_go_to_the_side_that_acts(
    stage: WindowStage,
) -> None:
    second = begun(stage)
    before = stage.state.request
    stage.window.beside.act_on(second.side)
    stage.window.take_sample(Sample(title="t", prompt="a sample", model="tiny", look_at=""))
    assert second.session.state.request.prompt == "a sample"
    stage.window.take_sample(Sample(title="t", prompt="more", model="copycat", look_at=""))
    assert second.session.state.request.prompt == "more"
    stage.drain()
    assert stage.engines[1].last(m.Load).model == "copycat"
    stage.window.download_model()
    (hub,) = stage.window.findChildren(HubDialog)
    hub.chosen.emit("other")
    hub.close()
    stage.drain()
    assert stage.engines[1].last(m.Load).model == "other"
    assert stage.engines[0].count(m.Load) == 1
    assert stage.state.request == before


def test_both_sides_are_whole_on_a_projector_and_the_layout_comes_back(
    stage: WindowStage,
) -> None:
    stage.resize(1280, 694)
    stood = {dock: dock.geometry() for dock in stage.window.docks.docks if dock.in_front}
    second = begun(stage)
    for docks in (stage.window.docks, second.docks):
        shown = [dock.place.id for dock in docks.docks if dock.in_front]
        assert shown == ["attention", "next-token"]
        above, below = (dock for dock in docks.docks if dock.in_front)
        assert above.y() < below.y()
        assert above.height() > below.height()
    assert stage.window.width() == 1280
    stage.window.beside.end()
    stage.paint()
    assert {dock for dock in stage.window.docks.docks if dock.in_front} == set(stood)
    for dock, place in stood.items():
        moved = dock.geometry().topLeft() - place.topLeft()
        assert moved.manhattanLength() <= 8, dock.place.id
