"""A one-line label that ends in … when there is no room, and tells the rest on hover."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget


class ElidedLabel(QLabel):
    """Shows as much of its text as fits; the whole text is its tool tip while it does not."""

    def __init__(self, text: str = "", parent: QWidget | None = None, tip: str = "") -> None:
        super().__init__(text, parent)
        self._tip = tip
        self._shown = text
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.setMinimumWidth(8)

    def setText(self, text: str) -> None:
        if text != self.text():
            super().setText(text)
            self._follow()

    def sizeHint(self) -> QSize:
        return self.minimumSizeHint()

    def minimumSizeHint(self) -> QSize:
        # The same for every text, though ␣ may come from a taller font: nothing below must jump.
        margins = self.contentsMargins()
        height = round(self.fontMetrics().height() * 1.15) + margins.top() + margins.bottom()
        return QSize(8, height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._follow()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._follow()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(self.contentsRect(), int(self.alignment()), self._shown)

    def _follow(self) -> None:
        mode = Qt.TextElideMode.ElideRight
        width = self.contentsRect().width()
        self._shown = self.fontMetrics().elidedText(self.text(), mode, width)
        cut = "" if self._shown == self.text() else self.text()
        tip = "\n".join(filter(None, [cut, self._tip]))
        if tip != self.toolTip():
            self.setToolTip(tip)
