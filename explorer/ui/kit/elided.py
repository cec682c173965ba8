"""A one-line label that ends in … when there is no room, and tells the rest on hover."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QAccessible, QHelpEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from explorer.figures.text.sentences import fitting
from explorer.ui.access import tips
from explorer.ui.access.accessible import describe


class ElidedLabel(QLabel):
    """Shows as much of its text as fits; the whole text is its tool tip while it does not."""

    cutChanged = Signal(bool)

    def __init__(
        self, text: str = "", parent: QWidget | None = None, tip: str = "", look: str = ""
    ) -> None:
        super().__init__(parent)
        if look:
            self.setProperty("look", look)
        self._cut = False
        describe(self, QAccessible.Role.StaticText)
        self._tip = tip
        self._text = self._shown = ""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.setMinimumWidth(8)
        self.setText(text)

    def text(self) -> str:
        return self._text

    @property
    def shown(self) -> str:
        """What of it there is room for."""
        return self._shown

    def setText(self, text: str) -> None:
        """Show another text; the room it takes never changes, so nothing is laid out anew.

        QLabel's own setText would have the whole panel laid out again.
        """
        text = fitting(text, keep="\n")
        if text == self._text:
            return
        self._text = text
        self._follow()
        self.update()

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

    def setToolTip(self, tip: str) -> None:
        self._tip = tip

    def toolTip(self) -> str:
        """What is cut off, and what the label always tells.

        Made when it is asked for: to set one costs a millisecond, and some labels change with
        every step.
        """
        cut = "" if self._shown == self.text() else self.text()
        return "\n".join(filter(None, [cut, self._tip]))

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            tip = self.toolTip()
            if tip:
                tips.show(event, tip, self)
                return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(self.contentsRect(), int(self.alignment()), self._shown)

    def _follow(self) -> None:
        mode = Qt.TextElideMode.ElideRight
        width = self.contentsRect().width()
        self._shown = self.fontMetrics().elidedText(self.text(), mode, width)
        cut = self._shown != self.text()
        if cut != self._cut:
            self._cut = cut
            self.cutChanged.emit(cut)
