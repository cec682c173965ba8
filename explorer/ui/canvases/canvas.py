"""The base of every canvas: a widget that paints itself, with a tip for each place.

Everything that Qt asks of a canvas comes through `event` or `viewportEvent`.  A fault there is
caught and reported like any unexpected error: PySide can end the process if an exception passes
through two overrides of Qt's methods, one within the other, as `paintEvent` is within `event`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from explorer.ui.access import tips
from explorer.ui.glossary.labels import explaining

Terms = Sequence[tuple[str, QRectF]]  # of the glossary, and where they are painted


class Canvas(QWidget):
    """One that is as large as what it shows, or fits it to its own size."""

    def painted_terms(self) -> Terms:
        """The terms of the glossary that the canvas paints, and where their words are."""
        return ()

    def tip_at(self, point: QPoint) -> str:
        """What the place under the mouse says; "" = nothing."""
        return ""

    def event(self, event: QEvent) -> bool:
        return _caught(lambda: _tip(self, event) or super(Canvas, self).event(event))


class ScrollCanvas(QAbstractScrollArea):
    """One that shows a part of what there is; points are those of its viewport."""

    def painted_terms(self) -> Terms:
        """The terms of the glossary that the canvas paints, and where their words are."""
        return ()

    def tip_at(self, point: QPoint) -> str:
        """What the place under the mouse says; "" = nothing."""
        return ""

    def pointer_left(self) -> None:
        """The mouse has left it."""

    def event(self, event: QEvent) -> bool:
        return _caught(lambda: super(ScrollCanvas, self).event(event))

    def viewportEvent(self, event: QEvent) -> bool:
        def act() -> bool:
            if event.type() == QEvent.Type.Leave:
                self.pointer_left()
            return _tip(self, event) or super(ScrollCanvas, self).viewportEvent(event)

        return _caught(act)


def _tip(canvas: Canvas | ScrollCanvas, event: QEvent) -> bool:
    """Show the tip that an event asks for; False if it asks for something else."""
    if event.type() != QEvent.Type.ToolTip or not isinstance(event, QHelpEvent):
        return False
    window = explaining(canvas)
    for name, words in canvas.painted_terms() if window is not None else ():
        if window is not None and words.contains(QPointF(event.pos())):
            window.explain(canvas, name, words.toAlignedRect())
            return True
    tips.show(event, canvas.tip_at(event.pos()), canvas)
    return True


def _caught(act: Callable[[], bool]) -> bool:
    """What `act` gives; True if it fails, which is reported."""
    try:
        return act()
    except Exception:
        sys.excepthook(*sys.exc_info())
        return True
