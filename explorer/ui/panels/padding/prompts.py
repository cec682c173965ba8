"""The list of prompts: typed, pasted or from a file, one a line."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QCheckBox, QFileDialog, QLabel, QPlainTextEdit, QPushButton, QWidget

from explorer.session.jobs.prompt_list import PromptListError, read_prompts
from explorer.trace.batch import MOST_ROWS
from explorer.ui.files.dropped_files import IgnoreFileDrops, local_files
from explorer.ui.kit import boxes
from explorer.ui.kit.flow import Flow

EXAMPLES = (
    "The capital of France is",
    "Thank you very",
    "Thank you very much for your",
)


class PromptList(QWidget):
    """One prompt a line; lines with nothing in them are left out."""

    changed = Signal()
    chatChanged = Signal()
    failed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        intro = QLabel(
            self.tr(
                "One prompt per line, of different lengths. A batch is a rectangle, so "
                "padding fills up the shorter prompts."
            )
        )
        intro.setWordWrap(True)
        intro.setProperty("look", "muted")
        self.edit = QPlainTextEdit("\n".join(EXAMPLES))
        self.edit.setAccessibleName(self.tr("Prompts of the batch, one per line"))
        self.edit.setTabChangesFocus(True)
        IgnoreFileDrops(self.edit)
        self.setAcceptDrops(True)
        self.edit.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.edit.textChanged.connect(self._on_changed)
        self._count = QLabel()
        self._count.setProperty("look", "small")
        self._chat = QCheckBox(self.tr("Chat"))
        self._chat.toggled.connect(self.chatChanged)
        self.offer_chat(False)
        load = QPushButton(self.tr("From a file…"))
        load.setToolTip(self.tr("A text file with one prompt per line, or a JSON list of strings"))
        load.clicked.connect(self._ask_file)
        below = Flow(first_grows=True)
        for part in (self._count, self._chat, load):
            below.addWidget(part)
        boxes.column(self, intro, (self.edit, 1), below, edges=(4, 6, 4, 4))
        self._on_changed()

    def prompts(self) -> tuple[str, ...]:
        """What was typed, exactly; empty lines left out."""
        raw = self.edit.document().toRawText().replace("\u2028", "\u2029")
        return tuple(line for line in raw.split("\u2029") if line)

    def show_prompts(self, prompts: Sequence[str], chat: bool) -> None:
        """Take these in place of what was typed; one with a line break becomes several."""
        self.edit.setPlainText("\n".join(prompts))
        self._chat.setChecked(chat)

    @property
    def chat(self) -> bool:
        """True if each prompt is a message for the model's chat template."""
        return self._chat.isChecked()

    def offer_chat(self, offered: bool) -> None:
        """A model without a chat template reads raw text only."""
        if not offered:
            self._chat.setChecked(False)
        self._chat.setEnabled(offered)
        self._chat.setToolTip(
            self.tr("Send each prompt as one user message in the chat template")
            if offered
            else self.tr("This model has no chat template")
        )

    def open_file(self, name: str) -> None:
        """Take the prompts of a file, or say why not."""
        try:
            found = read_prompts(name)
            broken = next((i for i, p in enumerate(found, 1) if "\n" in p or "\r" in p), None)
            if broken is not None:
                raise PromptListError(
                    self.tr(
                        "Prompt {0} contains a line break, which this list can't show. "
                        "Use the batch command for such a file."
                    ).format(broken)
                )
        except PromptListError as error:
            self.failed.emit(str(error))
            return
        self.edit.setPlainText("\n".join(found))

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if len(local_files(event.mimeData())) == 1:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        self.open_file(*local_files(event.mimeData()))

    def _ask_file(self) -> None:
        name, _ = QFileDialog.getOpenFileName(
            self, self.tr("Prompts, one per line"), "", self.tr("Prompts (*.txt *.json);;All (*)")
        )
        if name:
            self.open_file(name)

    def _on_changed(self) -> None:
        count = len(self.prompts())
        words = self.tr("1 prompt") if count == 1 else self.tr("{0} prompts").format(count)
        if count > MOST_ROWS:
            words = self.tr("{0} prompts (at most {1})").format(count, MOST_ROWS)
        self._count.setText(words)
        self.changed.emit()
