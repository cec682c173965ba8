"""Every canvas outlives its own faults: each is reported, and the window goes on."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys

import pytest
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QHelpEvent, QPaintEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QStackedWidget, QWidget

from explorer.ui import canvases
from explorer.ui.canvases.canvas import Canvas, ScrollCanvas
from tests.ui.waiting import settle, show


class Outer(QWidget):
    """What a window is to a canvas: an override that the canvas is called within."""

    def event(self, event: QEvent) -> bool:
        return super().event(event)


class BrokenCanvas(Canvas):
    fault = ""

    def fail(self, where: str) -> None:
        if self.fault == where:
            raise ValueError(where)

    def paintEvent(self, event: QPaintEvent) -> None:
        self.fail("paint")

    def showEvent(self, event: QShowEvent) -> None:
        self.fail("show")

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.fail("resize")

    def tip_at(self, point: QPoint) -> str:
        self.fail("tip")
        return ""


class BrokenScrollCanvas(ScrollCanvas):
    fault = ""
    fail = BrokenCanvas.fail  # type: ignore[assignment]

    def paintEvent(self, event: QPaintEvent) -> None:
        self.fail("paint")

    def showEvent(self, event: QShowEvent) -> None:
        self.fail("show")

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.fail("resize")

    def tip_at(self, point: QPoint) -> str:
        self.fail("tip")
        return ""


@pytest.mark.parametrize("fault", ["paint", "show", "resize", "tip"])
@pytest.mark.parametrize("kind", [BrokenCanvas, BrokenScrollCanvas])
def test_a_fault_of_a_canvas_is_reported_and_goes_no_further(
    qapp: QApplication,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[BrokenCanvas] | type[BrokenScrollCanvas],
    fault: str,
) -> None:
    told: list[str] = []
    monkeypatch.setattr(sys, "excepthook", lambda _kind, error, _trace: told.append(str(error)))
    window = Outer()
    canvas = kind(window)
    canvas.fault = fault
    show(window)
    canvas.resize(50, 40)
    settle()
    seen_by_mouse = canvas.viewport() if isinstance(canvas, ScrollCanvas) else canvas
    tip = QHelpEvent(QEvent.Type.ToolTip, QPoint(5, 5), QPoint(5, 5))
    QApplication.sendEvent(seen_by_mouse, tip)
    assert told
    assert all(fault in words for words in told)
    window.close()


def test_every_canvas_has_the_common_base() -> None:
    names = (
        module.name for module in pkgutil.walk_packages(canvases.__path__, canvases.__name__ + ".")
    )
    found = {
        kind
        for name in names
        for _, kind in inspect.getmembers(importlib.import_module(name), inspect.isclass)
        if issubclass(kind, QWidget) and kind.__module__ == name
    }
    apart = {kind.__name__ for kind in found if not issubclass(kind, (Canvas, ScrollCanvas))}
    assert len(found) > 8
    # pyqtgraph's own view, which lies in a chart, and Qt's own view of text
    assert apart == {"Plot", "PlainTokens"}


class LeftCanvas(Canvas):
    left = 0

    def pointer_left(self) -> None:
        self.left += 1


class LeftScrollCanvas(ScrollCanvas):
    left = 0
    pointer_left = LeftCanvas.pointer_left  # type: ignore[assignment]


@pytest.mark.parametrize("kind", [LeftCanvas, LeftScrollCanvas])
def test_a_canvas_that_is_hidden_is_left_wherever_the_mouse_is(
    qapp: QApplication, kind: type[LeftCanvas | LeftScrollCanvas]
) -> None:
    pages = QStackedWidget()
    canvas = kind()
    pages.addWidget(canvas)
    pages.addWidget(QWidget())
    show(pages)
    canvas.left = 0
    pages.setCurrentIndex(1)
    assert canvas.left
    pages.close()
