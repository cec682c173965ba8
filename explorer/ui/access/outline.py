"""An outline that points at a part of the window for some seconds."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, QRect, Qt, QTimer
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QRegion
from PySide6.QtWidgets import QScrollArea, QWidget
from shiboken6 import isValid

from explorer.ui.look.theme import unit

SHOWN_MS = 6_000
_FOLLOW_MS = 100  # what it surrounds may be laid out, scrolled or resized meanwhile


class PartOutline(QWidget):
    """Drawn over its window around a part of a widget; takes no mouse and no focus."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.setObjectName("outline")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAttribute(Qt.WidgetAttribute.WA_NoSystemBackground)
        self._widget: QWidget | None = None
        self._part: Callable[[], QRect | None] | None = None
        self._end = QTimer(self)
        self._end.setSingleShot(True)
        self._end.timeout.connect(self.clear)
        self._follow = QTimer(self)
        self._follow.setInterval(_FOLLOW_MS)
        self._follow.timeout.connect(self._place)
        self.hide()

    def point_at(self, widget: QWidget, part: Callable[[], QRect | None] | None = None) -> None:
        """Surround a widget, or where `part` says that a part of it is now, in its coordinates.

        What is scrolled out of sight is brought into view first.
        """
        self.clear()
        _bring_into_view(widget)
        self._widget, self._part = widget, part
        self._place()
        self._end.start(SHOWN_MS)
        self._follow.start()

    def clear(self) -> None:
        """Point at nothing."""
        self._end.stop()
        self._follow.stop()
        self._widget = None
        self.hide()

    @property
    def target(self) -> QWidget | None:
        """What is pointed at now."""
        return self._widget

    def _place(self) -> None:
        widget, window = self._widget, self.parentWidget()
        if widget is None or window is None or not isValid(widget) or not widget.isVisible():
            self.hide()
            return
        area = widget.rect() if self._part is None else self._part() or QRect()
        area = QRect(widget.mapTo(window, area.topLeft()), area.size())
        above: QWidget | None = widget.parentWidget()
        while above is not None and above is not window:  # what is scrolled out of sight
            area &= QRect(above.mapTo(window, QPoint()), above.size())
            above = above.parentWidget()
        if area.isEmpty():
            self.hide()
            return
        wide = self._wide + 2
        place = area.adjusted(-wide, -wide, wide, wide) & window.rect()
        if place != self.geometry() or self.isHidden():
            self.setGeometry(place)
            inner = self.rect().adjusted(wide, wide, -wide, -wide)
            self.setMask(QRegion(self.rect()).subtracted(QRegion(inner)))
            self.show()
            self.raise_()

    @property
    def _wide(self) -> int:
        return max(3, round(3 * unit(self)))

    def paintEvent(self, event: QPaintEvent) -> None:
        """The line between two gaps, so that it stands out from any colour it lies on."""
        painter = QPainter(self)
        colours = self.palette()
        painter.fillRect(self.rect(), colours.color(QPalette.ColorRole.Window))
        line = QRegion(self.rect().adjusted(1, 1, -1, -1))
        wide = self._wide
        line -= QRegion(self.rect().adjusted(1 + wide, 1 + wide, -1 - wide, -1 - wide))
        painter.setClipRegion(line)
        painter.fillRect(self.rect(), colours.color(QPalette.ColorRole.Accent))


def _bring_into_view(widget: QWidget) -> None:
    above = widget.parentWidget()
    while above is not None:
        if isinstance(above, QScrollArea):
            above.ensureWidgetVisible(widget, 8, 8)
        above = above.parentWidget()
