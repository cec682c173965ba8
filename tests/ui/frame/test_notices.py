"""Bars at the top: what is on screen is never taken for what the controls say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QToolButton

from explorer.lessons.scene import Scene
from explorer.session.session import Session
from explorer.session.state import SceneProgress
from explorer.trace.wire import messages as m
from explorer.ui.frame.bars.branch_notice import BranchNotice
from explorer.ui.frame.notices import Notice
from explorer.ui.kit.elided import NoticeLine
from tests.session.jobs.test_replay_check import CHANGED, moved, opened_anew
from tests.ui.stage import WindowStage

DIRECT = Qt.FindChildOption.FindDirectChildrenOnly


def test_the_run_of_the_model_before_is_named_until_the_next_step(stage: WindowStage) -> None:
    stage.loaded().ran(2)
    bar = stage.window.notices.stale
    assert not bar.isVisible()
    stage.session.open_model("second")
    stage.paint()
    assert not bar.isVisible()  # tiny is what Step runs until the second is open
    stage.answer_load(name="second")
    stage.paint()
    assert bar.isVisible()
    assert bar.text == "This is still the tiny run. Press Step to start over with second."
    stage.ran(1)
    assert not bar.isVisible()


def test_a_map_with_the_mask_is_not_taken_for_one_without(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    bars = stage.window.notices
    stage.session.set_causal_mask(False)
    stage.paint()
    assert "This run used the mask." in bars.unmasked.text
    assert not bars.stale.isVisible()  # one bar says both
    assert "have changed" in stage.window.status.text
    stage.session.set_causal_mask(True)
    stage.paint()
    assert not bars.unmasked.isVisible()
    assert not bars.stale.isVisible()
    assert "have changed" not in stage.window.status.text


def test_a_run_with_a_cache_is_not_taken_for_one_without(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    stage.session.set_cache(False)
    stage.paint()
    assert "This run used the KV cache." in stage.window.notices.stale.text


CHANGES: dict[str, Callable[[Session], None]] = {
    "prompt": lambda s: s.set_prompt("another"),
    "chat": lambda s: s.set_chat(True),
    "control tokens": lambda s: s.set_special_as_text(True),
    "cache": lambda s: s.set_cache(False),
    "padding": lambda s: s.set_padding("left", 2),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_whatever_makes_step_start_over_is_said_in_a_bar(stage: WindowStage, kind: str) -> None:
    stage.loaded().ran(1)
    bar = stage.window.notices.stale
    assert not bar.isVisible()
    CHANGES[kind](stage.session)
    stage.paint()
    assert stage.state.request_changed
    assert bar.isVisible()
    assert "Press Step" in bar.text
    stage.session.undo()
    stage.paint()
    assert not bar.isVisible()


def test_a_run_whose_weights_have_changed_says_so_with_a_choice(stage: WindowStage) -> None:
    opened_anew(stage, fingerprint=CHANGED).session.step()
    bar = stage.window.notices.drift
    assert not bar.isVisible()
    stage.prove(moved(2, 0.25))
    assert bar.isVisible()
    assert "files of tiny have changed" in bar.text
    assert "differ by up to 0.25 (rounding allows 0.0001)" in bar.text
    look, again = bar.findChildren(QPushButton)
    look.click()
    stage.paint()
    assert not bar.isVisible()
    stage.session.step()
    stage.paint()
    assert bar.isVisible()
    again.click()
    stage.paint()
    assert not bar.isVisible()
    assert stage.engine.last(m.Advance).chosen == ()


def covered(stage: WindowStage) -> list[str]:
    """Parts of the window that the notices lie over."""
    window = stage.window
    notices = QRect(window.notices.mapTo(window, QPoint(0, 0)), window.notices.size())
    parts = (window.topbar, window.prompt, window.sequence, window.docks, window.status)
    return [
        type(part).__name__
        for part in parts
        if notices.intersects(QRect(part.mapTo(window, QPoint(0, 0)), part.size()))
    ]


def seen(stage: WindowStage) -> list[str]:
    return [bar.text for bar in stage.window.findChildren(Notice) if bar.isVisible()]


@pytest.mark.parametrize("size", [(1280, 720), (800, 600)])
def test_of_many_notices_one_is_seen_and_covers_nothing(
    stage: WindowStage, size: tuple[int, int]
) -> None:
    stage.resize(*size)
    stage.loaded().ran(1)
    notices = stage.window.notices
    high = notices.height()
    stage.session.set_prompt("another")
    stage.paint()
    assert seen(stage) == [notices.stale.text]
    stage.session.report("A long way down. " * 30)
    stage.session.set_prompt("and another")
    stage.paint()
    assert seen(stage) == [notices.error.text], "none that only informs takes an error's place"
    assert covered(stage) == []
    assert notices.height() == high
    (forward,) = notices.findChildren(QToolButton, options=DIRECT)
    assert forward.text() == "1 of 2 ›"
    forward.setFocus()
    QTest.keyClick(forward, Qt.Key.Key_Space)
    stage.paint()
    assert (seen(stage), forward.text()) == ([notices.stale.text], "2 of 2 ›")
    QTest.keyClick(forward, Qt.Key.Key_Space)
    stage.paint()
    assert (seen(stage), forward.text()) == ([notices.error.text], "1 of 2 ›")
    stage.session.report("")
    stage.paint()
    assert seen(stage) == [notices.stale.text]
    assert not forward.isVisible()
    stage.session.undo()
    stage.session.undo()
    stage.paint()
    assert seen(stage) == []
    assert notices.height() == high


@pytest.mark.parametrize("parts", [1, 3, 30])
@pytest.mark.parametrize("width", [800, 1280])
def test_a_long_path_leaves_the_next_step_in_view(
    stage: WindowStage, parts: int, width: int
) -> None:
    stage.resize(width, 600)
    stage.loaded()
    path = "/home/somebody/models" + "/a folder of a folder" * parts + "/model.gguf"
    step = "Choose another folder."
    stage.session.report(f"{path} is damaged, so it can't be opened here. {step}")
    stage.paint()
    (line,) = stage.window.notices.error.findChildren(NoticeLine)
    assert line.shown.startswith("/home/somebody")
    assert line.shown.endswith(step)


def test_the_rest_of_a_long_notice_is_read_by_keyboard(stage: WindowStage) -> None:
    stage.resize(1280, 720)
    stage.loaded()
    text = "A long way down. " * 30 + "Then turn left."
    stage.session.report("Short.")
    stage.paint()
    (rest,) = (
        button
        for button in stage.window.notices.error.findChildren(QToolButton)
        if button.text() == "…"
    )
    assert not rest.isVisible()
    stage.session.report(text)
    stage.paint()
    assert rest.isVisible()
    assert rest.focusPolicy() & Qt.FocusPolicy.TabFocus
    rest.setFocus()
    QTest.keyClick(rest, Qt.Key.Key_Space)
    stage.paint()
    whole = QApplication.activePopupWidget()
    assert whole is not None
    assert whole.findChildren(QLabel)[0].text() == text
    QTest.keyClick(whole, Qt.Key.Key_Escape)
    stage.paint()
    assert QApplication.activePopupWidget() is None


def test_a_lost_engine_stays_in_view_whatever_else_is_said(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    stage.say(m.Lost(sentence="The engine's process ended. Start it again to go on."))
    stage.session.report("Something else.")
    stage.paint()
    assert stage.window.notices.lost.isVisible()
    assert len(stage.window.notices.waiting) == 2


def test_a_branch_that_a_scene_begins_is_not_announced(stage: WindowStage) -> None:
    before = stage.loaded().ran(3).state
    stage.session.select(step=1)
    stage.session.force(20)
    notice = BranchNotice(stage.session)
    notice.show_state(before, replace(stage.state, scene=SceneProgress(scene=Scene())))
    assert notice.text == ""
    notice.show_state(
        before, replace(stage.state, scene=SceneProgress(scene=Scene(), finished=True))
    )
    assert "Branch B begins" in notice.text
    notice.deleteLater()


def test_a_run_whose_model_is_missing_says_where_to_look_for_it(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    bars = stage.window.notices
    stage.session.open_model("tiny", test_again=True)
    load = stage.engine.last(m.Load)
    stage.say(m.Failed(run=load.run, sentence="There is no model called tiny."))
    assert not bars.error.text
    assert "Choose where it is now" in bars.missing.text
    assert "There is no model called tiny." in bars.missing.text
    asked: list[bool] = []
    bars.chooseModel.connect(lambda: asked.append(True))
    bars.missing.findChild(QPushButton, options=DIRECT).click()
    assert asked == [True]
    stage.session.open_model("another")
    stage.paint()
    assert not bars.missing.text
