"""The base of every canvas: a widget that paints itself, with a tip for each place.

Everything that Qt asks of a canvas comes through `event` or `viewportEvent`.  A fault there is
caught and reported like any unexpected error: PySide can end the process if an exception passes
through two overrides of Qt's methods, one within the other, as `paintEvent` is within `event`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from explorer.ui.access import tips
from explorer.ui.access.shortcut_guard import KEEPS_ARROWS
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

    def pointer_left(self) -> None:
        """The mouse has left it, or it is no longer on screen: no place in it is looked at."""

    def event(self, event: QEvent) -> bool:
        def act() -> bool:
            if event.type() == QEvent.Type.Leave or _hidden(event):
                self.pointer_left()
            return _tip(self, event) or super(Canvas, self).event(event)

        return _caught(act)


class ScrollCanvas(QAbstractScrollArea):
    """One that shows a part of what there is; points are those of its viewport.

    It is read with the mouse and the arrow keys.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty(KEEPS_ARROWS, True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setAutoFillBackground(False)
        self.viewport().setMouseTracking(True)

    def painted_terms(self) -> Terms:
        """The terms of the glossary that the canvas paints, and where their words are."""
        return ()

    def tip_at(self, point: QPoint) -> str:
        """What the place under the mouse says; "" = nothing."""
        return ""

    def pointer_left(self) -> None:
        """The mouse has left it, or it is no longer on screen: no place in it is looked at."""

    def restyled(self) -> None:
        """Its font or style is another one: places have to be worked out again."""

    def set_extent(self, height: float, step: float) -> None:
        """Let the vertical bar reach all of what is this high; `step` is the height of a row."""
        bar, view = self.verticalScrollBar(), self.viewport().height()
        bar.setRange(0, max(0, round(height - view)))
        bar.setPageStep(view)
        bar.setSingleStep(round(step))

    def scroll_to(self, rect: QRectF) -> None:
        """Move what is shown up or down until this place is in view."""
        bar, view = self.verticalScrollBar(), self.viewport().height()
        bar.setValue(bar.value() + round(min(0.0, rect.top()) + max(0.0, rect.bottom() - view)))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self.restyled()

    def event(self, event: QEvent) -> bool:
        def act() -> bool:
            if _hidden(event):
                self.pointer_left()
            return super(ScrollCanvas, self).event(event)

        return _caught(act)

    def viewportEvent(self, event: QEvent) -> bool:
        def act() -> bool:
            if event.type() == QEvent.Type.Leave:
                self.pointer_left()
            return _tip(self, event) or super(ScrollCanvas, self).viewportEvent(event)

        return _caught(act)


def _hidden(event: QEvent) -> bool:
    """True if the program hides the canvas; Qt sends no Leave where the real mouse is elsewhere."""
    return event.type() == QEvent.Type.Hide and not event.spontaneous()


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
