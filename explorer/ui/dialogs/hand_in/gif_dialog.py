"""Asks how a run becomes a GIF, and shows how far its pictures are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFormLayout, QProgressBar, QPushButton, QWidget

from explorer.session.state import State
from explorer.ui.dialogs.hand_in.film import Film
from explorer.ui.kit import boxes
from explorer.ui.kit.screen_fit import Dialog
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.wheel_guard import ComboBox, DoubleSpinBox
from explorer.ui.look.theme import Theme
from explorer.ui.panel.panel import Panel

MOST_FRAMES = 100  # with the largest pictures 80 MB while they wait, a tenth of it in the file
_WIDTHS = (960, 640, 1280)  # pixels; the first is offered first
_HEIGHT = 0.5  # of the width


class GifDialog(Dialog):
    """The steps of the run as it was when the dialog was opened."""

    asked = Signal()  # for a name of the file: `paint` follows
    made = Signal(object, object, int)  # Path, Pillow images, milliseconds of each

    def __init__(
        self, state: State, panels: Sequence[Panel], theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._state, self._panels, self._theme = state, panels, theme
        self._film: Film | None = None
        self._path = Path()
        assert state.trace is not None
        self.steps = len(state.trace.steps)
        self.setWindowTitle(self.tr("Save as GIF"))
        self.resize(460, 200)
        self.width_box = ComboBox()
        self.width_box.setAccessibleName(self.tr("Width of the picture"))
        for width in _WIDTHS:
            self.width_box.addItem(self.tr("{0} pixels").format(width), width)
        self.seconds = DoubleSpinBox()
        self.seconds.setAccessibleName(self.tr("Seconds for each token"))
        self.seconds.setRange(0.1, 10)
        self.seconds.setSingleStep(0.1)
        self.seconds.setValue(1)
        self.words = SentenceLabel(look="muted")
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(self.tr("Progress of the GIF"))
        self.bar.setRange(0, self.frames)
        self.save = self._button(self.tr("Save GIF…"), self.asked.emit)
        self.save.setProperty("look", "primary")
        self.leave = self._button(self.tr("Cancel"), self.close)
        self._lay_out()

    @property
    def frames(self) -> int:
        """Pictures that the file will have."""
        return min(self.steps, MOST_FRAMES)

    def _button(self, text: str, act: Callable[[], object]) -> QPushButton:
        button = QPushButton(text)
        button.setAutoDefault(False)
        button.clicked.connect(lambda: act())
        return button

    def _lay_out(self) -> None:
        form = QFormLayout()
        form.addRow(self.tr("Width"), self.width_box)
        form.addRow(self.tr("Seconds for each token"), self.seconds)
        self.words.setText(
            self.tr("One picture for each of the {0} tokens.").format(self.frames)
            if self.steps <= MOST_FRAMES
            else self.tr("The first {0} of {1} tokens, one picture each.").format(
                self.frames, f"{self.steps:,}"
            )
        )
        content = boxes.column(None, form, self.words, self.bar, (QWidget(), 1), gap=8)
        row = boxes.line(None, self.leave, self.save)
        row.insertStretch(0, 1)
        self.lay_out(content, row)

    def paint(self, path: Path) -> None:
        """Paint every step, then hand the pictures over and close."""
        self._path = path
        for part in (self.width_box, self.seconds, self.save):
            part.setEnabled(False)
        width = int(self.width_box.currentData())
        size = QSize(width, round(width * _HEIGHT))
        self._film = Film(self._state, self._panels, self._theme, size, self)
        self._film.drew.connect(self.bar.setValue)
        self._film.ended.connect(self._end)
        self._film.start(range(self.frames))

    def _end(self, frames: list[Any]) -> None:
        self.made.emit(self._path, frames, round(self.seconds.value() * 1000))
        self.close()

    def done(self, result: int) -> None:
        """However it is closed, nothing is painted any more."""
        if self._film is not None:
            self._film.stop()
            self._film = None
        super().done(result)
