"""A label for sentences with live figures: values stand out, and one that is missing says why."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QCursor, QPalette
from PySide6.QtWidgets import QLabel, QToolTip, QWidget

from explorer.figures.text.sentences import fitting
from explorer.lessons.figure_text import FigureText, FilledPart
from explorer.lessons.quantities import NotKnown
from explorer.ui.access import tips

_MOST = 4_000  # letters, as a lesson's file allows
_PENDING = "…"
_NO_BREAK = "&nbsp;"  # a number stays with its unit
_LONG_WORD = re.compile(r"[^\W\d_]{14}(?=[^\W\d_]{4})")
_BREAK = "&#8203;"  # has no width: tokens in a row may go on in the next line


class FigureLabel(QLabel):
    """Wraps.  What a file holds is shown as its letters; the marks around figures are our own."""

    def __init__(self, look: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "rich")
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setWordWrap(True)
        self._muted = look == "muted"
        self._parts: tuple[FilledPart, ...] = ()
        self._reasons: tuple[str, ...] = ()
        self.linkHovered.connect(self._tell)
        self.linkActivated.connect(self._tell)

    @property
    def words(self) -> str:
        """The text as it is read."""
        return "".join(part.text for part in self._parts)

    @property
    def parts(self) -> tuple[FilledPart, ...]:
        """The text as it is shown, with its figures."""
        return self._parts

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why figures can't be had, in their order."""
        return self._reasons

    def show_parts(self, parts: Sequence[FilledPart]) -> None:
        """Show a text whose figures were worked out."""
        self._parts = tuple(parts)
        self._reasons = tuple(
            part.value.reason for part in self._parts if isinstance(part.value, NotKnown)
        )
        links = Qt.TextInteractionFlag.LinksAccessibleByMouse
        keys = Qt.TextInteractionFlag.LinksAccessibleByKeyboard
        none = Qt.TextInteractionFlag.NoTextInteraction
        self.setTextInteractionFlags(links | keys if self._reasons else none)
        self._write()
        self.setAccessibleName(" ".join([fitting(self.words, most=_MOST), *self._reasons]))

    def show_pending(self, text: FigureText) -> None:
        """Show a text whose figures are still being measured."""
        self.show_parts(
            [FilledPart(part if isinstance(part, str) else _PENDING) for part in text.parts]
        )

    def _write(self) -> None:
        missing = self.palette().color(QPalette.ColorRole.Link).name()
        pieces, reason = [], 0
        for part in self._parts:
            letters = _escaped(part.text)
            if isinstance(part.value, NotKnown):
                style = f"color:{missing};text-decoration:underline"
                letters = f'<a href="{reason}" style="{style}">{letters}</a>'
                reason += 1
            elif part.value is not None:
                letters = letters.replace(" ", _NO_BREAK)
                letters = letters[:1] + letters[1:].replace("␣", f"{_BREAK}␣")
                letters = f"<b>{letters}</b>"
            pieces.append(letters)
        self.setText("".join(pieces))

    def _tell(self, link: str) -> None:
        if link.isdigit() and int(link) < len(self._reasons):
            QToolTip.showText(QCursor.pos(), tips.tip(self._reasons[int(link)]), self)
        else:
            QToolTip.hideText()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and self._reasons:
            self._write()


def _escaped(text: str) -> str:
    """Letters for HTML: an empty line begins a paragraph, other line ends are spaces."""
    short = fitting(text, most=_MOST, keep="\n")
    # `fitting` may cut spaces at an end, which part a figure from the words beside it.
    lead = " " if text[:1] == " " and short[:1] != " " else ""
    trail = " " if text[-1:] == " " and short[-1:] != " " and len(text) > 1 else ""
    paragraphs = re.split(r"\n[ \t]*\n", f"{lead}{short}{trail}")
    return "<br><br>".join(_broken(html.escape(one.replace("\n", " "))) for one in paragraphs)


def _broken(letters: str) -> str:
    """Words that no card is wide enough for go on in the next line."""
    return _LONG_WORD.sub(lambda word: f"{word[0]}{_BREAK}", letters)
