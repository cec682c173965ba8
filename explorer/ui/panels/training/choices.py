"""What is trained and how: the controls of the training panel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QFileDialog, QLabel, QWidget

from explorer.figures.text.characters import elide, printable
from explorer.trace.training.settings import (
    BUILDS,
    MISTAKES,
    MOST_STEPS,
    TASKS,
    Mistake,
    TrainingSettings,
)
from explorer.ui.access.tips import tip
from explorer.ui.kit import forms
from explorer.ui.kit.flow import Flow
from explorer.ui.kit.wheel_guard import ComboBox, DoubleSpinBox
from explorer.ui.panels.training import words

_ASK = ""
_LONGEST_NAME = 24  # letters of a file's name in the list


class TrainingChoices(QWidget):
    """A row of settings."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        usual = TrainingSettings()
        self.build = ComboBox()
        self.build.setAccessibleName(self.tr("Build of the model"))
        names = {
            "modern": self.tr("modern decoder"),
            "primitives": self.tr("GPT from primitives"),
            "encoder": self.tr("GPT from encoder layers"),
        }
        for build in sorted(BUILDS, key=list(names).index):
            self.build.addItem(names[build], build)
        self.task = ComboBox()
        self.task.setAccessibleName(self.tr("What it learns"))
        for words_of, value in (
            (self.tr("copy"), "copy"), (self.tr("previous token"), "previous"),
            (self.tr("reverse"), "reverse"), (self.tr("a text file…"), _ASK),
        ):  # fmt: skip
            self.task.addItem(words_of, value)
        self.task.activated.connect(self._on_task)
        self._task = 0  # the row that holds
        self.layers = forms.spin(self.tr("Layers"), 1, 12, usual.layers)
        self.wide = forms.spin(self.tr("Width of the residual stream"), 8, 1024, usual.width)
        self.heads = forms.spin(self.tr("Heads of each layer"), 1, 64, usual.heads)
        self.steps = forms.spin(self.tr("Updates"), 1, MOST_STEPS, usual.steps)
        self.steps.setGroupSeparatorShown(True)
        self.seed = forms.spin(self.tr("Seed"), 0, 2**31 - 1, usual.seed)
        self.rate = DoubleSpinBox()
        self.rate.setDecimals(5)
        self.rate.setRange(0.00001, 10)
        self.rate.setStepType(DoubleSpinBox.StepType.AdaptiveDecimalStepType)
        self.rate.setValue(usual.rate)
        self.rate.setAccessibleName(self.tr("Learning rate"))
        self.rate.setToolTip(self.tr("Learning rate. While a model is trained, Enter changes it."))
        self.wrong = ComboBox()
        self.wrong.setAccessibleName(self.tr("Mistake on purpose"))
        self._wrong_tip = self.tr("A mistake that is made on purpose, to see what it does")
        self.wrong.addItem(self.tr("none"), None)
        for mistake in MISTAKES:
            self.wrong.addItem(words.mistake(mistake), mistake)
            role = Qt.ItemDataRole.ToolTipRole
            self.wrong.setItemData(self.wrong.count() - 1, words.explained(mistake), role)
        self.beside = QCheckBox(self.tr("beside the right run"))
        self.beside.setToolTip(
            self.tr("Train the right model too, with the same seed, and draw both")
        )
        self.beside.setChecked(True)
        self.wrong.currentIndexChanged.connect(self._on_wrong)
        self._on_wrong()
        row = Flow()
        row.setSpacing(8)
        for text, control in (
            (self.tr("mistake"), self.wrong), ("", self.beside), (self.tr("updates"), self.steps),
            (self.tr("rate"), self.rate), (self.tr("task"), self.task),
            (self.tr("build"), self.build), (self.tr("layers"), self.layers),
            (self.tr("width"), self.wide), (self.tr("heads"), self.heads),
            (self.tr("seed"), self.seed),
        ):  # fmt: skip
            label = QLabel(text)
            label.setBuddy(control)
            row.addWidget(forms.together(label, control) if text else control)
        self.setLayout(row)

    def settings(self) -> list[TrainingSettings]:
        """The right run first, if a wrong one is wanted beside it."""
        chosen = TrainingSettings(
            build=self.build.currentData(), task=self.task.currentData(),
            layers=self.layers.value(), width=self.wide.value(), heads=self.heads.value(),
            steps=self.steps.value(), rate=self.rate.value(), seed=self.seed.value(),
        )  # fmt: skip
        mistake: Mistake | None = self.wrong.currentData()
        if mistake is None:
            return [chosen]
        wrong = msgspec.structs.replace(chosen, wrong=(mistake,))
        return [chosen, wrong] if self.beside.isChecked() else [wrong]

    def show_settings(self, runs: Sequence[TrainingSettings]) -> None:
        """Turn to what trainings that are on screen were begun with."""
        first = runs[0]
        self.build.setCurrentIndex(self.build.findData(first.build))
        if first.task not in TASKS:
            self._name_file(first.task)
        self.task.setCurrentIndex(self.task.findData(first.task))
        self._task = self.task.currentIndex()
        for box, value in (
            (self.layers, first.layers), (self.wide, first.width), (self.heads, first.heads),
            (self.steps, first.steps), (self.seed, first.seed),
        ):  # fmt: skip
            box.setValue(min(value, box.maximum()))
        self.rate.setValue(first.rate)
        wrong = runs[-1].wrong
        self.wrong.setCurrentIndex(max(0, self.wrong.findData(wrong[0] if wrong else None)))
        self.beside.setChecked(not wrong or len(runs) > 1)

    def _on_wrong(self) -> None:
        mistake: Mistake | None = self.wrong.currentData()
        self.beside.setEnabled(mistake is not None)
        self.wrong.setToolTip(words.explained(mistake) if mistake else self._wrong_tip)

    def _on_task(self, row: int) -> None:
        """A text file is asked for; without one the task stays as it was."""
        if self.task.itemData(row) == _ASK:
            path, _ = QFileDialog.getOpenFileName(self, self.tr("Text to learn"))
            if not path:
                self.task.setCurrentIndex(self._task)
                return
            self._name_file(path)
            self.task.setCurrentIndex(self.task.findData(path))
        self._task = self.task.currentIndex()

    def _name_file(self, path: str) -> None:
        """The file as a row of its own, ahead of the row that asks for one."""
        place = self.task.findData(_ASK)
        if place > len(TASKS):
            self.task.removeItem(place - 1)
            place -= 1
        self.task.insertItem(place, elide(printable(Path(path).name), _LONGEST_NAME), path)
        self.task.setItemData(place, tip(path), Qt.ItemDataRole.ToolTipRole)
