"""The switches for mistakes made on purpose, each with what it breaks and what it does here."""

from __future__ import annotations

from collections.abc import Collection

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QWidget

from explorer.figures.batch import loss as losses
from explorer.figures.batch import padding as figures
from explorer.trace.batch import MISTAKES, BatchResult, Mistake
from explorer.ui.glossary.labels import TermBox
from explorer.ui.kit import boxes

_TERMS: dict[Mistake, str] = {
    "readout": "readout", "positions": "position-id", "mask": "attention-mask",
}  # fmt: skip


class _Switch(QWidget):
    """One mistake: a check box, a line on what it breaks, a line on what was measured."""

    def __init__(self, title: str, breaks: str, term: str) -> None:
        super().__init__()
        self.box = TermBox(title, term)
        self._breaks = _line(breaks, "muted")
        self._effect = _line("", "")
        boxes.column(self, self.box, self._breaks, self._effect, edges=(0, 0, 0, 4), gap=1)
        self.box.setAccessibleDescription(breaks)

    def show_effect(self, words: str) -> None:
        self._effect.setText(words)
        self._effect.setVisible(bool(words))
        self.box.setAccessibleDescription(f"{self._breaks.text()} {words}".strip())


def _line(text: str, look: str) -> QLabel:
    label = QLabel(text)
    label.setWordWrap(True)
    label.setIndent(22)
    label.setProperty("look", look)
    return label


class Mistakes(QScrollArea):
    """Mistakes in what is fed and read, then mistakes in the loss."""

    fedChanged = Signal()  # one that needs another run
    lossChanged = Signal()  # one that only counts otherwise

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.fed: dict[Mistake, _Switch] = {
            name: _Switch(figures.TITLES[name], figures.BREAKS[name], term=_TERMS[name])
            for name in MISTAKES
        }
        self.loss = {
            name: _Switch(title, losses.BREAKS[name], term="loss")
            for name, title in losses.TITLES.items()
        }
        self.viewport().setAutoFillBackground(False)
        page = QWidget()
        column = boxes.column(page, edges=(4, 6, 4, 4), gap=2)
        column.addWidget(_heading(self.tr("Mistakes in the run (see the Batch tab)")))
        for switch in self.fed.values():
            switch.box.toggled.connect(self.fedChanged)
            column.addWidget(switch)
        column.addWidget(_heading(self.tr("Mistakes in the loss (see the Loss tab)")))
        for switch in self.loss.values():
            switch.box.toggled.connect(self.lossChanged)
            column.addWidget(switch)
        column.addStretch(1)
        self.setWidget(page)
        page.setAutoFillBackground(False)  # setWidget switches it on
        self.show_result(None)

    @property
    def wrong(self) -> tuple[Mistake, ...]:
        """The mistakes that the next run makes."""
        return tuple(name for name, switch in self.fed.items() if switch.box.isChecked())

    def show_wrong(self, wrong: Collection[Mistake]) -> None:
        """Set the switches of the run."""
        for name, switch in self.fed.items():
            switch.box.setChecked(name in wrong)

    @property
    def pads_counted(self) -> bool:
        return self.loss["pads"].box.isChecked()

    @property
    def unshifted(self) -> bool:
        return self.loss["shift"].box.isChecked()

    @property
    def count(self) -> int:
        """How many switches are on."""
        return len(self.wrong) + self.pads_counted + self.unshifted

    def show_result(self, result: BatchResult | None) -> None:
        """Beside each switch, what it does to this batch."""
        for name, switch in self.fed.items():
            switch.show_effect("" if result is None else figures.effect_words(result, name))
        measured = result if result is not None and result.request.loss else None
        for kind, switch in self.loss.items():
            switch.show_effect("" if measured is None else losses.effect_words(measured, kind))


def _heading(text: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("look", "title")
    return label
