"""What comes, goes or changes its words moves nothing else in the window."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QAbstractSlider, QAbstractSpinBox, QComboBox, QWidget

from explorer.trace.card import Check
from explorer.trace.wire import messages as m
from tests.ui.stage import WindowStage

CONTROLS = (QAbstractButton, QAbstractSlider, QAbstractSpinBox, QComboBox)


def places(stage: WindowStage) -> dict[QWidget, QRect]:
    """Where each control is that can be clicked, bars left out."""
    window = stage.window
    return {
        widget: QRect(widget.mapTo(window, QPoint(0, 0)), widget.size())
        for kind in CONTROLS
        for widget in window.findChildren(kind)
        if widget.isVisible()
        and not window.notices.isAncestorOf(widget)
        # Its size tells what was checked; nothing is beside it that it could push.
        and widget is not window.status.light
    }


def lose(stage: WindowStage) -> None:
    stage.say(m.Lost(sentence="The engine's process ended."))


BARS: dict[str, Callable[[WindowStage], object]] = {
    "an error": lambda s: s.session.force(39_999),
    "another prompt": lambda s: s.session.set_prompt("another"),
    "no mask": lambda s: s.session.set_causal_mask(False),
    "no cache": lambda s: s.session.set_cache(False),
    "the engine is lost": lose,
    "a run": lambda s: s.session.run(),
    "a check": lambda s: s.say(
        m.Checked(
            run=s.engine.last(m.CheckTrace).run,
            check=Check(name="rows", passed=True, measured=0.0, tolerance=1.0),
        )
    ),
}


@pytest.mark.parametrize("what", BARS)
def test_nothing_moves(stage: WindowStage, what: str) -> None:
    stage.resize(1280, 720)
    stage.loaded().ran(2)
    stage.until_settled()
    stage.paint()
    before = places(stage)
    assert len(before) > 30
    BARS[what](stage)
    stage.paint()
    after = places(stage)
    shared = before.keys() & after.keys()
    assert len(shared) >= len(before) - 2  # Cancel comes and goes in its own place
    moved = [(w.objectName() or w.accessibleName(), before[w], after[w])
             for w in shared if before[w] != after[w]]  # fmt: skip
    assert not moved


def test_a_double_click_on_run_does_not_pause(stage: WindowStage) -> None:
    stage.loaded()
    button = stage.window.topbar._worded[1]
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    QTest.mouseDClick(button, Qt.MouseButton.LeftButton)
    assert stage.state.status.activity == "running"
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)  # a click of its own does
    assert stage.state.status.activity != "running"


def test_a_long_bar_moves_nothing_and_can_be_closed(stage: WindowStage) -> None:
    stage.resize(1280, 720)
    stage.loaded().ran(1)
    stage.paint()
    strip = stage.window.sequence.mapTo(stage.window, QPoint(0, 0))
    stage.session._store.set(error="A very long sentence that goes on. " * 12)
    stage.paint()
    bars = stage.window.notices
    assert stage.window.sequence.mapTo(stage.window, QPoint(0, 0)) == strip
    stage.session.report("")
    stage.session.set_cache(False)
    stage.paint()
    assert bars.stale.isVisible()
    bars.stale.close_by_hand()
    stage.session.select(layer=1)
    stage.ran(0)
    assert not bars.stale.isVisible()
