"""Engines of the user's: a name and a command each, tried before they are used."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QListWidget, QPushButton, QWidget

from explorer.figures.text import sentences
from explorer.session.jobs.engine_test import EngineTest, Tried
from explorer.session.session import Session
from explorer.ui.kit import boxes
from explorer.ui.kit.screen_fit import Dialog
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.settings.settings import KnownEngine, Settings
from explorer.wording import short_bytes

_EXAMPLE = "ssh gpu-box /path/to/.venv/bin/decoder-explorer engine"
_NAMED = 8  # models
_ABOUT = QT_TRANSLATE_NOOP(
    "EnginesDialog",
    "The engine runs the model. It can run on another machine, where Decoder Explorer is installed "
    "and which ssh reaches with a key. Nothing else is needed there, and no port is opened.",
)


def words_of(command: str) -> tuple[str, ...]:
    """A command's words; none if it is not a command line."""
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return ()


class EnginesDialog(Dialog):
    """The list of engines, to add to, change, try and take from."""

    changed = Signal()

    def __init__(self, session: Session, memory: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session, self._memory = session, memory
        self._test: EngineTest | None = None
        self.setWindowTitle(self.tr("Engines"))
        self.resize(680, 420)
        about = SentenceLabel(look="muted")
        about.setText(self.tr(_ABOUT))
        self.list = QListWidget()
        self.list.setAccessibleName(self.tr("Engines"))
        self.list.currentRowChanged.connect(self._show_row)
        self.name = self._field(self.tr("Name"), "gpu-box")
        self.command = self._field(self.tr("Command"), _EXAMPLE)
        self.said = SentenceLabel(look="")
        self.save = self._button(self.tr("Save"), self._save)
        self.remove = self._button(self.tr("Remove"), self._remove)
        self.test = self._button(self.tr("Test"), self._try)
        self.leave = self._button(self.tr("Close"), self.close)
        self.command.textChanged.connect(self._forget_test)  # it was of another command
        rows = []
        for text, field in ((self.tr("Name"), self.name), (self.tr("Command"), self.command)):
            label = QLabel(text)
            label.setBuddy(field)
            row = QHBoxLayout()
            row.addWidget(label)
            row.addWidget(field, 1)
            rows.append(row)
        acts = QHBoxLayout()
        acts.addStretch(1)
        for button in (self.remove, self.test, self.save):
            acts.addWidget(button)
        bottom = QHBoxLayout()
        bottom.addStretch(1)
        bottom.addWidget(self.leave)
        column = boxes.column(None, about, (self.list, 1), *rows, acts, self.said, gap=8)
        self.lay_out(column, bottom)

    def _field(self, name: str, example: str) -> QLineEdit:
        field = QLineEdit()
        field.setAccessibleName(name)
        field.setPlaceholderText(example)
        field.textChanged.connect(self._offer)
        return field

    def _button(self, text: str, act: Callable[[], object]) -> QPushButton:
        button = QPushButton(text)
        button.setAutoDefault(False)
        button.clicked.connect(lambda: act())
        return button

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fill()
        self._offer()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._forget_test()

    # -- the list

    def _fill(self, name: str = "") -> None:
        known = self._memory.engines()
        self.list.clear()
        self.list.addItems([one.name for one in known])
        names = [one.name for one in known]
        if names:
            self.list.setCurrentRow(names.index(name) if name in names else 0)

    def _show_row(self, row: int) -> None:
        known = self._memory.engines()
        if 0 <= row < len(known):
            self.name.setText(known[row].name)
            self.command.setText(known[row].command)

    def _offer(self) -> None:
        """Only what can be done with what is typed."""
        works = bool(words_of(self.command.text()))
        self.test.setEnabled(works and self._test is None)
        self.save.setEnabled(works and bool(self.name.text().strip()))
        self.remove.setEnabled(self.list.currentRow() >= 0)

    def _save(self) -> None:
        one = KnownEngine(self.name.text().strip(), self.command.text().strip())
        others = [other for other in self._memory.engines() if other.name != one.name]
        self._memory.keep_engines([*others, one])
        self._fill(one.name)
        self._tell(self.tr("Saved. Choose it in the list of models."))
        self.changed.emit()

    def _remove(self) -> None:
        known = self._memory.engines()
        del known[self.list.currentRow()]
        self._memory.keep_engines(known)
        self.name.clear()
        self.command.clear()
        self._fill()
        self.changed.emit()

    # -- a test

    def _try(self) -> None:
        self._tell(self.tr("Starting it… This takes up to a minute."))
        words = words_of(self.command.text())
        self._test = EngineTest(words, self._session.post, self._tried)
        self._offer()

    def _stop(self) -> None:
        test, self._test = self._test, None
        if test is not None:
            test.stop()

    def _forget_test(self) -> None:
        self._stop()
        self._tell("")
        self._offer()

    def _tried(self, found: Tried) -> None:
        self._test = None
        self._offer()
        if found.problem:
            self._tell(found.problem, "error")
        else:
            self._tell(" ".join(filter(None, self._found_words(found))))

    def _found_words(self, found: Tried) -> list[str]:
        library = found.library
        assert library is not None
        machine = library.machine
        names = [model.name for model in library.models if not model.incomplete]
        some = ", ".join(sentences.name(name) for name in names[:_NAMED])
        more = ", …" if len(names) > _NAMED else ""
        gpus = ", ".join(machine.gpus) or self.tr("no GPU")
        memory = short_bytes(machine.memory_bytes) if machine.memory_bytes else "?"
        versions = ", ".join(
            f"{name} {found.versions[name]}"
            for name in ("torch", "transformers", "python")
            if name in found.versions
        )
        return [
            self.tr("It works. {0}: {1}, {2} cores, {3} of memory, {4}.").format(
                found.host or "?", machine.processor or "?", machine.cores, memory, gpus
            ),
            f"{versions}." if versions else "",
            found.differs,
            self.tr("Models there ({0}): {1}.").format(len(names), some + more)
            if names
            else self.tr("No models were found there."),
        ]

    def _tell(self, words: str, look: str = "") -> None:
        self.said.setText(words)
        if self.said.property("look") != look:
            self.said.setProperty("look", look)
            self.said.style().polish(self.said)
