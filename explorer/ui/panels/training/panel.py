"""Training: a small model learns before one's eyes, and what mistakes do to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QFileDialog,
    QLayout,
    QMenu,
    QPushButton,
    QSplitter,
    QToolButton,
    QWidget,
)

from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.training.run import TrainingLab
from explorer.ui.files import caption
from explorer.ui.kit import boxes, forms
from explorer.ui.kit.scrolled import OneOf
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.kit.wheel_guard import Slider
from explorer.ui.look.theme import Theme
from explorer.ui.panel.panel import Panel, View
from explorer.ui.panels.training import words
from explorer.ui.panels.training.choices import TrainingChoices
from explorer.ui.panels.training.curves import TrainingCurves
from explorer.ui.panels.training.positions import PositionChart
from explorer.ui.panels.training.run_maps import RunMaps


class TrainingPanel(Panel):
    """Needs neither a model nor a run: what is trained has an engine of its own."""

    ID = "training"
    BESIDE = "attention"
    TITLE = QT_TRANSLATE_NOOP("TrainingPanel", "Training")
    EXPLANATION = QT_TRANSLATE_NOOP(
        "TrainingPanel", "A small model learns: its loss, what it gets right, and its attention"
    )
    NEEDS = ("training",)

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self._lab = TrainingLab()
        self.choices_row = TrainingChoices()
        self.curves = TrainingCurves(theme)
        self.curves.picked.connect(session.trainings.look_at)
        self.positions = PositionChart(theme)
        self.maps = (RunMaps(theme), RunMaps(theme))
        self.headline = forms.words()
        self.problem = SentenceLabel(look="error")
        self._build_buttons()
        self.slider = Slider()
        self.slider.setAccessibleName(self.tr("Update that is looked at"))
        self.slider.setToolTip(self.tr("Drag to see the training as it was earlier"))
        self.slider.valueChanged.connect(self._on_slider)
        self._note = SentenceLabel(look="muted")
        self._note.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.body = OneOf()
        self.body.addWidget(self._note)
        self.body.addWidget(self._build_body())
        self.content.setSpacing(3)
        self.content.addLayout(self._build_tools())
        self.content.addWidget(self.choices_row)
        self.content.addWidget(self.problem)
        self.content.addWidget(self.headline)
        self.content.addWidget(self.body, 1)
        self.show_content()
        self.draw(session.state)

    # -- building

    def _build_buttons(self) -> None:
        trainings = self.session.trainings
        self.train_button = QPushButton(self.tr("Train"))
        self.train_button.setProperty("look", "primary")
        self.train_button.clicked.connect(self._train)
        self.pause_button = QPushButton(self.tr("Pause"))
        self.pause_button.setToolTip(self.tr("Pause after the update under way"))
        self.pause_button.clicked.connect(trainings.pause)
        self.go_on_button = QPushButton(self.tr("Continue"))
        self.go_on_button.clicked.connect(trainings.go_on)
        self.one_button = QPushButton(self.tr("One update"))
        self.one_button.clicked.connect(trainings.one_update)
        self.details_button = QToolButton()
        self.details_button.setText(self.tr("Settings"))
        self.details_button.setCheckable(True)
        self.details_button.setChecked(True)
        self.details_button.setToolTip(self.tr("Show or hide what is trained, and how"))
        self.details_button.toggled.connect(self.choices_row.setVisible)
        self.open_button = QPushButton(self.tr("Open"))
        self.open_button.setToolTip(
            self.tr("Open the model, as it was at the last kept point up to this update")
        )
        self.open_button.clicked.connect(self._open)
        self.save_button = QPushButton(self.tr("Save…"))
        self.save_button.setToolTip(
            self.tr("Save the model of the last kept point up to this update, as a folder")
        )
        self.save_button.clicked.connect(self._ask_folder)
        self.position_button = QToolButton()
        self.position_button.setProperty("look", "title-button")
        self.position_button.setText(self.tr("By position"))
        self.position_button.setCheckable(True)
        self.position_button.setToolTip(
            self.tr("Accuracy by position: its own output against the right tokens")
        )
        self.position_button.toggled.connect(lambda on: self.charts.setCurrentIndex(int(on)))
        self.earlier_button = QPushButton(self.tr("Earlier training"))
        self.earlier_button.clicked.connect(self._resume)

    def _build_tools(self) -> QLayout:
        self.choices_row.rate.editingFinished.connect(self._on_rate)
        return forms.row(
            ("", self.train_button), ("", self.pause_button), ("", self.go_on_button),
            ("", self.one_button), ("", self.details_button), ("", self.open_button),
            ("", self.save_button), ("", self.earlier_button),
        )  # fmt: skip

    def _build_body(self) -> QWidget:
        body, both = QWidget(), QWidget()
        boxes.line(both, *((one, 1) for one in self.maps), gap=8)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.setChildrenCollapsible(False)
        self.charts = OneOf()
        self.charts.addWidget(self.curves)
        self.charts.addWidget(self.positions)
        split.addWidget(self.charts)
        split.addWidget(both)
        split.setStretchFactor(0, 2)
        split.setStretchFactor(1, 3)
        split.setSizes([400, 600])
        scrub = boxes.line(None, (self.slider, 1), self.position_button, gap=8)
        boxes.column(body, scrub, (split, 1), gap=2)
        return body

    # -- showing

    def draw(self, new: State) -> None:
        lab, before = new.training, self._lab
        self._lab = lab
        if lab.saved and lab.saved != before.saved:
            self.saving.saved.emit(lab.saved)
        if lab.runs and not before.runs:
            self.details_button.setChecked(False)
        if lab.runs and [r.name for r in lab.runs] != [r.name for r in before.runs]:
            self.choices_row.show_settings([run.settings for run in lab.runs])
        self._show_buttons(lab)
        problems = [lab.problem, *(run.problem for run in lab.runs)]
        said = " ".join(dict.fromkeys(filter(None, problems)))
        self.problem.setText(said)
        self.problem.setVisible(bool(said))
        begun = any(run.points or run.going for run in lab.runs)
        self.headline.setVisible(begun)  # else the problem says it all
        self.body.setCurrentIndex(int(begun))
        if not begun:
            self._note.setText(self._invitation(lab))
            self.details_button.setChecked(True)
            return
        self.headline.setText(words.headline(lab))
        self._show_slider(lab)
        self.curves.show_lab(lab)
        self.positions.show_lab(lab)
        for place, maps in enumerate(self.maps):
            maps.setVisible(place < len(lab.runs))
            if place < len(lab.runs):
                maps.show_run(lab.runs[place], lab.at, alone=len(lab.runs) == 1)

    def _show_buttons(self, lab: TrainingLab) -> None:
        going, lost = lab.going, any(run.phase == "lost" for run in lab.runs)
        back = lab.at is not None and any(run.kept_before(lab.at) is not None for run in lab.runs)
        more = any(run.phase == "paused" or (run.phase == "lost" and run.name) for run in lab.runs)
        can = bool(lab.runs) and (back or (not going and more))
        self.pause_button.setEnabled(going)
        self.go_on_button.setEnabled(can)
        self.one_button.setEnabled(can and not lost)
        tip = self.tr("Go on training")
        if back and lab.at is not None:
            tip = self.tr("Go on from update {0}. What was learned after it is dropped.").format(
                f"{max(run.kept_before(lab.at) or 0 for run in lab.runs):,}"
            )
        self.go_on_button.setToolTip(tip)
        self.one_button.setToolTip(tip)
        known = (run.kept or run.savable(lab.at) is not None for run in lab.runs)
        savable = any(known) and not lab.saving
        self.open_button.setEnabled(savable)
        self.save_button.setEnabled(savable)
        self.earlier_button.setVisible(bool(lab.earlier) and not going)
        if lab.earlier:
            one = lab.earlier[0]
            self.earlier_button.setToolTip(
                self.tr("Show a training that is kept on disk, at update {0} of {1}").format(
                    f"{one.step:,}", f"{one.settings.steps:,}"
                )
            )

    def _show_slider(self, lab: TrainingLab) -> None:
        last = lab.step
        blocked = self.slider.blockSignals(True)
        self.slider.setMaximum(last)
        self.slider.setPageStep(max(1, last // 20))
        self.slider.setValue(last if lab.at is None else lab.at)
        self.slider.blockSignals(blocked)

    def _invitation(self, lab: TrainingLab) -> str:
        text = self.tr(
            "Press Train. A small model begins with random weights and learns to copy. Watch its "
            "attention: first a head that looks at the token before appears, then one that finds "
            "the token to be copied."
        )
        if not lab.earlier:
            return text
        one = lab.earlier[0]
        more = self.tr(
            "An earlier training is kept, at update {0} of {1}. Press Earlier training to see it "
            "and go on."
        ).format(f"{one.step:,}", f"{one.settings.steps:,}")
        return f"{text}\n\n{more}"

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._lab.runs:
            self.session.trainings.find()

    def set_simple(self, on: bool) -> None:
        """Without what only somebody who experiments needs."""
        self.details_button.setVisible(not on)
        self.choices_row.setVisible(not on and self.details_button.isChecked())
        self.save_button.setVisible(not on)

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self.curves.redraw()

    # -- acts

    def _train(self) -> None:
        self.session.trainings.train(self.choices_row.settings())

    def _resume(self) -> None:
        self.session.trainings.resume(self._lab.earlier)

    def _on_rate(self) -> None:
        if self._lab.runs:
            self.session.trainings.set_rate(self.choices_row.rate.value())

    def _on_slider(self, step: int) -> None:
        self.session.trainings.look_at(step)

    def _open(self) -> None:
        trainings = self.session.trainings
        self._of_run(self.open_button, lambda place: trainings.save(place, "", self._open_model))

    def _open_model(self, path: str) -> None:
        """With the prompt of the maps, where there is none yet."""
        runs = self._lab.runs
        self.session.open_model(path)
        if runs and not self.session.state.request.has_prompt:
            data = "".join(runs[0].labels).encode("latin-1")  # a letter a byte
            self.session.set_prompt(data.decode("utf-8", "ignore"))

    def _ask_folder(self) -> None:
        self._of_run(self.save_button, self._save_in_folder)

    def _save_in_folder(self, place: int) -> None:
        folder = QFileDialog.getExistingDirectory(self, self.tr("An empty folder for the model"))
        if folder:
            models = self.session.models  # the model picker finds it from now on
            self.session.trainings.save(place, folder, lambda path: models.find(add_folder=path))

    def _of_run(self, button: QPushButton, act: Callable[[int], object]) -> None:
        """Of two runs the user says which."""
        if len(self._lab.runs) == 1:
            act(0)
            return
        menu = QMenu(button)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for place, run in enumerate(self._lab.runs):
            menu.addAction(words.name(run), partial(act, place))
        menu.popup(button.mapToGlobal(button.rect().bottomLeft()))

    # -- export

    def views(self) -> Mapping[str, View]:
        if not self._lab.runs:
            return {}
        found = dict(self.curves.views())
        found[self.tr("Right by position")] = self.positions.view()
        for maps, run in zip(self.maps, self._lab.runs, strict=False):
            view = maps.view()
            if view is not None:
                name = self.tr("Attention")
                several = len(self._lab.runs) > 1
                found[f"{name}: {words.name(run)}" if several else name] = view
        return found

    @property
    def subject(self) -> str:
        if not self._lab.runs:
            return ""
        return self.tr("training {0}").format(words.task(self._lab.runs[0]))

    def caption_of(self, name: str, view: View) -> str:
        settings = self._lab.runs[0].settings
        size = self.tr("{0} layers, width {1}, seed {2}").format(
            settings.layers, settings.width, settings.seed
        )
        return caption.words(self.subject, [size, name, view.about or view.of], None, "")
