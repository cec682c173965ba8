"""The wheel scrolls; it never changes the value of what it rolls over."""

from __future__ import annotations

import re
from pathlib import Path

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QScrollBar,
    QTabBar,
    QWidget,
)

import explorer.ui
from tests.ui.stage import WindowStage


def turn(widget: QWidget, by: int = -120) -> bool:
    """A notch of the wheel over a widget; True if the widget took it."""
    middle = QPointF(widget.rect().center())
    event = QWheelEvent(
        middle, widget.mapToGlobal(middle), QPoint(), QPoint(0, by), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    event.ignore()
    widget.event(event) if not isinstance(widget, QTabBar) else QApplication.sendEvent(
        widget, event
    )
    return event.isAccepted()


def test_no_control_of_any_panel_takes_the_wheel_without_the_focus(stage: WindowStage) -> None:
    stage.loaded().ran(2)
    for dock in stage.window.docks.docks:
        stage.window.docks.bring_up(dock.place.id)
        stage.paint()
    stage.window.choose_model()
    stage.window.download_model()
    stage.window.setFocus()
    kinds = (QAbstractSpinBox, QComboBox, QAbstractSlider, QTabBar)
    controls = [
        w
        for w in stage.window.findChildren(QWidget)
        if isinstance(w, kinds) and not isinstance(w, QScrollBar)
    ]
    assert len(controls) > 25
    for control in controls:
        assert control.focusPolicy() != Qt.FocusPolicy.WheelFocus, control.accessibleName()
        if not control.hasFocus():
            assert not turn(control), control.accessibleName() or control.objectName()


def test_only_calm_controls_are_made() -> None:
    folder = Path(explorer.ui.__file__).parent
    own = re.compile(r"\bQ(ComboBox|SpinBox|DoubleSpinBox|Slider|Dial|TabWidget)\(")
    wild = [
        path.name
        for path in folder.rglob("*.py")
        if path.name != "calm.py" and own.search(path.read_text("utf-8"))
    ]
    assert wild == []
