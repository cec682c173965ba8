"""Labels and boxes that name a term of the glossary: dotted, and explained on hover or F1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from PySide6.QtCore import QCoreApplication, QEvent, QLineF, QRect, Qt
from PySide6.QtGui import QFontMetrics, QHelpEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QCheckBox, QLabel, QStyle, QStyleOptionButton, QWidget

from explorer.ui.glossary.terms import Glossary, Term, glossary
from explorer.ui.look.theme import unit

TERM = "term"  # a dynamic property: the ID of the term that a widget stands for

if TYPE_CHECKING:
    _Base = QWidget  # what Dotted stands in front of
else:
    _Base = object


@runtime_checkable
class Explains(Protocol):
    """A window that shows the explanation of a term."""

    def explain(self, widget: QWidget, term: str, words: QRect | None = None) -> None:
        """Show it beside this widget, or beside these words that it paints."""


def known() -> Glossary:
    """The glossary in the language of the window."""
    # A translation of the program puts its own code here: the name of the glossary's folder.
    return glossary(QCoreApplication.translate("Glossary", "en"))


def term_of(widget: QWidget | None) -> tuple[QWidget, str] | None:
    """The term of a widget, or of the nearest one around it that has one, with that widget."""
    while widget is not None:
        if widget.property(TERM):
            return widget, str(widget.property(TERM))
        widget = None if widget.isWindow() else widget.parentWidget()
    return None


def stand_for(widget: QWidget, term: str) -> Term | None:
    """Make a widget the one that a term is asked from, and describe it to screen readers."""
    found = known().terms.get(term)
    if found is not None:
        widget.setProperty(TERM, term)
        said = widget.accessibleDescription() or widget.toolTip()
        widget.setAccessibleDescription(f"{said} {found.text}".strip())
    return found


class Dotted(_Base):
    """In front of a Qt class: its words are dotted, and ask the window for an explanation."""

    _term = ""

    def set_term(self, name: str) -> None:
        """Name the term; a name that the glossary doesn't have leaves the words plain."""
        if name and stand_for(self, name) is not None:
            self._term = name

    def words_area(self) -> QRect:
        """Where the words are, in the widget."""
        raise NotImplementedError

    def event(self, event: QEvent) -> bool:
        if self._term and event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            window = explaining(self)
            if window is not None and self.words_area().contains(event.pos()):
                window.explain(self, self._term)
                return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._term:
            _dot(self, self.words_area())


class TermLabel(Dotted, QLabel):
    """A label of one line; without a term it is a plain one."""

    def __init__(self, text: str = "", term: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.set_term(term)

    def setBuddy(self, buddy: QWidget) -> None:
        """The control is asked for the same term."""
        super().setBuddy(buddy)
        if self._term:
            stand_for(buddy, self._term)

    def words_area(self) -> QRect:
        style, metrics = self.style(), self.fontMetrics()
        aligned = QStyle.visualAlignment(self.layoutDirection(), self.alignment())
        room = self.contentsRect()
        return style.itemTextRect(metrics, room, int(aligned), self.isEnabled(), self.text())


class TermBox(Dotted, QCheckBox):
    """A check box; without a term it is a plain one."""

    def __init__(self, text: str, term: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.set_term(term)

    def words_area(self) -> QRect:
        option = QStyleOptionButton()
        self.initStyleOption(option)
        part = QStyle.SubElement.SE_CheckBoxContents
        room = self.style().subElementRect(part, option, self)
        left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        aligned = QStyle.visualAlignment(self.layoutDirection(), left)
        return self.style().itemTextRect(
            self.fontMetrics(), room, int(aligned), self.isEnabled(), self.text()
        )


def explaining(widget: QWidget) -> Explains | None:
    """The window around a widget that explains, also where its panel floats."""
    above: QWidget | None = widget
    while above is not None and not isinstance(above, Explains):
        above = above.parentWidget()
    return above


def _dot(widget: QWidget, words: QRect) -> None:
    """Dots under words, in their colour and inside the room that they have anyway."""
    metrics = QFontMetrics(widget.font())
    wide = max(1.0, round(unit(widget)))
    baseline = words.bottom() + 1 - metrics.descent()
    line = min(baseline + metrics.underlinePos() + wide, widget.height() - wide / 2)
    pen = QPen(widget.palette().color(widget.foregroundRole()))
    pen.setWidthF(wide)
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    pen.setDashPattern([1.0, 2.0])
    painter = QPainter(widget)
    painter.setPen(pen)
    painter.drawLine(QLineF(words.left(), line, words.right() + 1, line))
