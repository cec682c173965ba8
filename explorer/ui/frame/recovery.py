"""A bar that offers the runs which were not saved when the program last ended."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QDateTime, QLocale, Signal
from PySide6.QtWidgets import QComboBox, QWidget

from explorer.figures.text import characters, tokens
from explorer.session.saving.recovery import UnsavedSession
from explorer.ui.frame.bars.notice import Notice
from explorer.ui.kit.wheel_guard import ComboBox

_LEAST = 14  # characters of the list in a small window
_LOOKED_AT = 200  # characters of a long prompt
_PROMPT = 24  # characters of a prompt that tell it from others


class Recovery(Notice):
    """Names each run by its time, model and prompt; one that was opened or deleted goes."""

    opened = Signal(str)  # its path
    deleted = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("warning-card", closable=True, parent=parent)
        self.choice = ComboBox()
        self.choice.setAccessibleName(self.tr("Unsaved runs"))
        # It takes the room that there is, and no more in a small window.
        policy = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        self.choice.setSizeAdjustPolicy(policy)
        self.choice.setMinimumContentsLength(_LEAST)
        self._row.insertWidget(1, self.choice, 2)
        self.add_button(self.tr("Open"), lambda: self.opened.emit(self._chosen), primary=True)
        self.add_button(self.tr("Delete"), lambda: self.deleted.emit(self._chosen))
        self.dismissed.connect(lambda: self.say(""))

    def offer(self, found: Sequence[UnsavedSession]) -> None:
        """Show these, the newest chosen."""
        self.choice.clear()
        for one in found:
            self.choice.addItem(self._name(one), str(one.path))
        self._show()

    def drop(self, path: str) -> None:
        """This one was dealt with."""
        at = self.choice.findData(path)
        if at >= 0:
            self.choice.removeItem(at)
            self._show()

    def _show(self) -> None:
        count = self.choice.count()
        self.choice.setVisible(count > 1)
        if count == 0:
            self.say("")
        elif count == 1:
            text = self.tr("Unsaved run from an earlier session: {0}")
            self.say(text.format(self.choice.itemText(0)))
        else:
            self.say(self.tr("{0} unsaved runs from earlier sessions:").format(count))

    def _name(self, one: UnsavedSession) -> str:
        time = QDateTime.fromSecsSinceEpoch(int(one.saved_at))
        when = QLocale().toString(time, QLocale.FormatType.ShortFormat)
        words = " ".join(map(tokens.plain, one.prompt[:_LOOKED_AT].split()))
        prompt = characters.elide(words, _PROMPT)
        count = self.tr("1 token") if one.tokens == 1 else self.tr("{0} tokens").format(one.tokens)
        return self.tr("{0}, {1}, “{2}”, {3}").format(when, one.model, prompt, count)

    @property
    def _chosen(self) -> str:
        return str(self.choice.currentData())
