"""A one-line label that ends in … when there is no room, and tells the rest on hover."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRect, QSize, Qt, Signal
from PySide6.QtGui import QAccessible, QHelpEvent, QPainter, QPaintEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from explorer.figures.text.sentences import fitting
from explorer.ui.access import tips
from explorer.ui.access.accessible import describe
from explorer.ui.look.text_size import for_back_row

_WRAP = int(Qt.TextFlag.TextWordWrap)
_NARROW = 12  # characters; no sentence is wrapped in less


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
        """Show another text; the room it takes never changes, so nothing is laid out again.

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
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
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
        self._show_as(self.elided(self.contentsRect().width()))

    def elided(self, width: int) -> str:
        """The text as it stands in `width` pixels."""
        return self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, width)

    def _show_as(self, shown: str) -> None:
        self._shown = shown
        cut = self._shown != self.text()
        if cut != self._cut:
            self._cut = cut
            self.cutChanged.emit(cut)


class ResultLabel(ElidedLabel):
    """A result in words: one line at the desk, as many as it takes in front of a class.

    It grows with its words and keeps that height, so that nothing below moves at every step.
    """

    _lines, _at = 1, 0  # as many, at this width

    def minimumSizeHint(self) -> QSize:
        hint = super().minimumSizeHint()
        more = self._lines - 1 if for_back_row() else 0
        return QSize(hint.width(), hint.height() + more * self.fontMetrics().lineSpacing())

    def paintEvent(self, event: QPaintEvent) -> None:
        if not for_back_row():
            super().paintEvent(event)
            return
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(self.contentsRect(), int(self.alignment()) | _WRAP, self.text())

    def _follow(self) -> None:
        if not for_back_row():
            self._lines, self._at = 1, 0
            super()._follow()
            return
        self._show_as(self.text())
        width, metrics = self.contentsRect().width(), self.fontMetrics()
        if not self.isVisible() or width < _NARROW * metrics.averageCharWidth():
            return  # not laid out yet
        room = QRect(0, 0, width, 100 * metrics.lineSpacing())
        lines = metrics.boundingRect(room, _WRAP, self.text()).height() // metrics.lineSpacing()
        least = self._lines if width == self._at else 1
        if max(lines, least, 1) != self._lines or width != self._at:
            self._lines, self._at = max(lines, least, 1), width
            self.updateGeometry()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._follow()


class NoticeLine(ResultLabel):
    """What happened stands at its start, and what to do at its end: what is between gives way."""

    def elided(self, width: int) -> str:
        text, metrics = self.text(), self.fontMetrics()
        for longest in (300, 48, 24):  # letters of a word; a path may name its file without all
            text = fitting(text, longest, keep="\n")
            if metrics.horizontalAdvance(text) <= width:
                return text
        return metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, width)


class Subtitle(ElidedLabel):
    """Words beside a title: in front of a class whole, or not at all."""

    def _show_as(self, shown: str) -> None:
        super()._show_as("" if for_back_row() and shown != self.text() else shown)
