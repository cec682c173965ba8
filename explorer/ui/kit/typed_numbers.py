"""What is typed into a field: taken when it is whole, and never as another number."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QEvent, QObject
from PySide6.QtGui import QValidator
from PySide6.QtWidgets import QAbstractSpinBox, QLineEdit, QToolTip, QWidget

from explorer.ui.access.accessible import announce

if TYPE_CHECKING:
    _SpinBox = QAbstractSpinBox  # what TypedNumber stands in front of
else:
    _SpinBox = object

_NUMBER = re.compile(r"[+-]?([0-9]+([.,][0-9]*)?|[.,][0-9]+)")
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+")  # 8,192
_GROUP_BEGUN = re.compile(r"\+?[1-9][0-9]{0,2}(,[0-9]{3})*,(?P<digits>[0-9]{0,2})")
_BEGUN = ("", "+", "-", ".", ",", "-.", "-,")
_SHOWN = 24  # letters of what was typed that a refusal quotes


class TakeFirst(QObject):
    """Takes what was typed in a field before a click elsewhere or a shortcut acts.

    Buttons get no focus by the mouse, so that by itself the field would keep it to itself.
    """

    def __init__(self, field: QWidget, line: QLineEdit, take: Callable[[], object]) -> None:
        super().__init__(field)
        self._field, self._take = field, take
        line.textEdited.connect(self._begin)

    def end(self) -> None:
        """Nothing is waiting to be taken any more."""
        _application().removeEventFilter(self)

    def _begin(self) -> None:
        self.end()
        _application().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind, field = event.type(), self._field
        elsewhere = (
            kind == QEvent.Type.MouseButtonPress
            and isinstance(watched, QWidget)
            and watched is not field
            and not field.isAncestorOf(watched)
        )
        if elsewhere or kind == QEvent.Type.Shortcut:
            self.end()
            self._take()
        return False


def _application() -> QCoreApplication:
    app = QCoreApplication.instance()
    assert app is not None  # there are widgets
    return app


class TypedNumber(_SpinBox):
    """In front of a Qt spin box: what is no number that it takes is refused in words.

    It stays as it was typed until Return, a click elsewhere or a shortcut; then the number of
    before comes back.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._typed: str | None = None  # since a number was last taken
        self._number_before: float = 0
        self._pending = TakeFirst(self, self.lineEdit(), self.take_typed)
        self.lineEdit().textEdited.connect(self._on_edited)
        self.editingFinished.connect(self.take_typed)

    # -- what a kind of field says of itself

    def limits(self) -> tuple[float, float]:
        """The least and the largest number that can be typed."""
        raise NotImplementedError

    def number_now(self) -> float:
        """The number that was last taken."""
        raise NotImplementedError

    def decimals_taken(self) -> int:
        """Digits after the point."""
        return 0

    def commit(self) -> None:
        """Have the number that stands there."""
        self.interpretText()

    def put_back(self, number: float) -> None:
        """Show the number of before."""
        raise NotImplementedError

    # -- reading

    def number_in(self, text: str) -> float | None:
        """The number that was typed, an int where the field holds ints; None: none it takes."""
        text, special = text.strip(), self.specialValueText()
        least, most = self.limits()
        if special and text == special:
            return least
        text = self._ungrouped(text)
        if not _NUMBER.fullmatch(text) or self._too_fine(text):
            return None
        number = float(text.replace(",", ".")) if self.decimals_taken() else int(text)
        return number if least <= number <= most else None

    def _ungrouped(self, text: str) -> str:
        """Without the commas between groups of three digits, where a comma is no point."""
        grouped = not self.decimals_taken() and _GROUPED.fullmatch(text)
        return text.replace(",", "") if grouped else text

    def _too_fine(self, text: str) -> bool:
        """True if the field would have to round it."""
        _, point, fraction = text.replace(",", ".").partition(".")
        decimals = self.decimals_taken()
        return len(fraction.rstrip("0")) > decimals or bool(point and not decimals)

    def _hopeless(self, text: str) -> bool:
        """True if no more typing makes it a number that the field takes."""
        text = text.strip()
        if self.number_in(text) is not None or text in _BEGUN:
            return False
        begun = None if self.decimals_taken() else _GROUP_BEGUN.fullmatch(text)
        if begun is not None:  # with the least that can still follow
            text += "0" * (3 - len(begun["digits"]))
        text = self._ungrouped(text)
        if not _NUMBER.fullmatch(text) or self._too_fine(text):
            return True
        return float(text.replace(",", ".")) > self.limits()[1] or text.startswith("-")

    def take_typed(self) -> None:
        """Take the number that was typed, or say why not."""
        self._pending.end()
        typed, self._typed = self._typed, None
        self.commit()
        if typed is None:
            return
        self._mark(False)
        if self.number_in(typed) is None:
            self.put_back(self._number_before)
            self._say(self._refusal(typed))

    def _on_edited(self, text: str) -> None:
        if self._typed is None:
            self._number_before = self.number_now()
        self._typed = text
        hopeless = self._hopeless(text)
        self._mark(hopeless)
        if hopeless:
            self._say(self._wanted())
        elif QToolTip.isVisible():
            QToolTip.hideText()

    # -- words

    def _wanted(self) -> str:
        least, most = self.limits()
        decimals = self.decimals_taken()
        if not decimals:
            words = QCoreApplication.translate("SpinBox", "Type a whole number from {0} to {1}.")
            return words.format(f"{least:,}", f"{most:,}")
        words = QCoreApplication.translate(
            "SpinBox", "Type a number from {0} to {1} with at most {2} decimals."
        )
        return words.format(f"{least:g}", f"{most:g}", decimals)

    def _refusal(self, typed: str) -> str:
        """What was refused, what holds, what to do."""
        words = QCoreApplication.translate(
            "SpinBox", "“{0}” is not valid. The value is still {1}. {2}"
        )
        short = typed if len(typed) <= _SHOWN else f"{typed[:_SHOWN]}…"
        return words.format(short, self.lineEdit().text(), self._wanted())

    def _mark(self, wrong: bool) -> None:
        look = "wrong" if wrong else ""
        if (self.property("look") or "") != look:
            self.setProperty("look", look)
            self.style().polish(self)

    def _say(self, words: str) -> None:
        if self.isVisible():
            QToolTip.showText(self.mapToGlobal(self.rect().bottomLeft()), words, self)
            announce(self, words)

    # -- Qt

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        taken = self.number_in(text) is not None
        state = QValidator.State.Acceptable if taken else QValidator.State.Intermediate
        return state, text, position

    def fixup(self, text: str) -> str:
        """As it was typed: Qt's own takes commas out, and 1,5 would be 15."""
        return text

    def stepBy(self, steps: int) -> None:
        super().stepBy(steps)
        self.take_typed()
