"""Room for one line of notices: nothing in the window moves when a notice comes or goes."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPoint
from PySide6.QtWidgets import QWidget

from explorer.ui.notices import Notice


class BarSlot(QWidget):
    """As high as a notice of one line; longer ones lie over the panels.

    `bars` (the notices) is a child of `parent`, which lays out the slot alone.
    """

    def __init__(self, bars: QWidget, parent: QWidget) -> None:
        super().__init__(parent)
        self._bars = bars
        self._gauge = Notice("warning-card", closable=True, parent=self)  # never shown
        self._gauge.add_button("x", lambda: None)
        self._gauge.say("x")
        self._gauge.hide()
        bars.setParent(parent)
        bars.installEventFilter(self)
        self._measure()

    def _measure(self) -> None:
        self._gauge.ensurePolished()
        self.setFixedHeight(self._gauge.sizeHint().height())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._measure()

    def moveEvent(self, event: QEvent) -> None:
        self._place()

    def resizeEvent(self, event: QEvent) -> None:
        self._place()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self._place()
        return False

    def _place(self) -> None:
        """The bars over the slot, as high as they need to be."""
        bars = self._bars
        needed = bars.heightForWidth(self.width()) if bars.hasHeightForWidth() else -1
        height = max(needed, bars.minimumSizeHint().height(), 0)
        bars.resize(self.width(), height)
        bars.move(self.mapTo(self.parentWidget(), QPoint(0, 0)))
        bars.raise_()
