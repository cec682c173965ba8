"""Sampling controls: sliders and spin boxes together, the seed, the model's own defaults."""

from __future__ import annotations

import random

import msgspec
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QPushButton, QSizePolicy, QWidget

from explorer.sampling import model_defaults
from explorer.session.changes import changed
from explorer.session.session import Session
from explorer.session.state import State
from explorer.ui.glossary.labels import TermBox, TermLabel
from explorer.ui.kit import boxes
from explorer.ui.kit.longspin import LongSpinBox
from explorer.ui.kit.scrolled import Snug
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.wheel_guard import DoubleSpinBox, Slider, SpinBox

_MOST_QT = 2**31 - 1  # of a QSpinBox


class SliderNumber(QObject):
    """One number with a slider and a spin box; the slider may reach less far than the box."""

    moved = Signal(float)

    def __init__(
        self,
        parent: QObject,
        name: str,
        tip: str,
        *,
        term: str,
        most: float,
        slider_most: float,
        decimals: int,
    ) -> None:
        super().__init__(parent)
        self._ticks = 10**decimals
        self._most = most
        self.label = TermLabel(name, term=term)
        self.slider = Slider()
        self.slider.setRange(0, round(slider_most * self._ticks))
        self.slider.setMinimumWidth(40)
        self.spin: SpinBox | DoubleSpinBox
        if decimals:
            self.spin = DoubleSpinBox()
            self.spin.setDecimals(decimals)
            self.spin.setSingleStep(0.05)
            self.spin.setRange(0, most)
        else:
            self.spin = SpinBox()
            self.spin.setRange(0, int(most))
        self.spin.setKeyboardTracking(False)
        self.spin.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        for widget in (self.slider, self.spin):
            widget.setAccessibleName(name)
            widget.setToolTip(tip)
        self.label.setToolTip(tip)
        self.label.setBuddy(self.spin)
        self.slider.valueChanged.connect(lambda tick: self.moved.emit(tick / self._ticks))
        self.spin.valueChanged.connect(lambda value: self.moved.emit(float(value)))

    def show_value(self, value: float) -> None:
        """Both at one value, without telling anyone.

        A value from elsewhere that is larger than one can set here is shown as it is, too.
        """
        tick = round(min(value * self._ticks, float(self.slider.maximum())))
        blocked = self.slider.blockSignals(True), self.spin.blockSignals(True)
        self.slider.setValue(tick)
        if isinstance(self.spin, DoubleSpinBox):
            self.spin.setMaximum(max(self._most, value))
            self.spin.setValue(value)
        else:
            shown = int(min(value, _MOST_QT))
            self.spin.setMaximum(max(int(self._most), shown))
            self.spin.setValue(shown)
        self.slider.blockSignals(blocked[0])
        self.spin.blockSignals(blocked[1])

    def set_active(self, on: bool) -> None:
        for widget in (self.label, self.slider, self.spin):
            widget.setEnabled(on)


class SamplingControls(Snug):
    """How the next token is picked; nothing here needs the model."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._simple = False
        self.setProperty("look", "card")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        title = TermLabel(self.tr("Sampling"), term="sampling")
        title.setProperty("look", "title")
        self._greedy = TermBox(self.tr("Greedy"), term="greedy")
        self._greedy.setToolTip(self.tr("Always choose the most likely token. Nothing is sampled."))
        self._greedy.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._greedy.clicked.connect(lambda on: self._request(greedy=on))
        self.temperature = SliderNumber(
            self,
            self.tr("Temperature"),
            self.tr("Below 1: more predictable. Above 1: more varied. 0: greedy."),
            term="temperature",
            most=2.0,
            slider_most=2.0,
            decimals=2,
        )
        self.temperature.moved.connect(lambda value: self._request(temperature=value))
        self._top_k = SliderNumber(
            self,
            self.tr("Top-k"),
            self.tr("Keep only the k most likely tokens. 0: off."),
            term="top-k",
            most=_MOST_QT,
            slider_most=100,
            decimals=0,
        )
        self._top_k.spin.setSpecialValueText(self.tr("off"))
        self._top_k.moved.connect(lambda value: self._request(top_k=int(value)))
        self.top_p = SliderNumber(
            self,
            self.tr("Top-p"),
            self.tr("Keep the fewest tokens that together reach this probability. 1: off."),
            term="top-p",
            most=1.0,
            slider_most=1.0,
            decimals=2,
        )
        self.top_p.moved.connect(lambda value: self._request(top_p=value))
        self._dials = (self.temperature, self._top_k, self.top_p)
        self._build_seed()
        self._build_defaults()
        self._lay_out(title)

    @property
    def controls(self) -> dict[str, QWidget]:
        """Each control by the name that a lesson calls it."""
        return {
            "greedy": self._greedy,
            "temperature": self.temperature.slider,
            "top-k": self._top_k.slider,
            "top-p": self.top_p.slider,
            "seed": self.seed,
        }

    def _build_seed(self) -> None:
        self.seed = LongSpinBox()
        self.seed.setAccessibleName(self.tr("Seed"))
        self.seed.setToolTip(self.tr("The same seed gives the same tokens"))
        self.seed.changed.connect(lambda value: self._request(seed=value))
        self._seed_label = TermLabel(self.tr("Seed"), term="seed")
        self._seed_label.setBuddy(self.seed)
        self._shuffle = QPushButton(self.tr("Shuffle"))
        self._shuffle.setToolTip(self.tr("Choose a new random seed"))
        self._shuffle.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._shuffle.clicked.connect(lambda: self._request(seed=random.randrange(1_000_000)))

    def _build_defaults(self) -> None:
        self._defaults = SentenceLabel(look="small")
        self._apply = QPushButton(self.tr("Apply"))
        self._apply.setToolTip(self.tr("Use the model's recommended settings"))
        self._apply.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._apply.clicked.connect(self._apply_defaults)

    def _lay_out(self, title: QLabel) -> None:
        top = boxes.line(None, (title, 1), self._greedy)
        grid = QGridLayout()
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(1, 3)
        grid.setColumnStretch(2, 2)
        for row, dial in enumerate(self._dials):
            grid.addWidget(dial.label, row, 0)
            grid.addWidget(dial.slider, row, 1)
            grid.addWidget(dial.spin, row, 2)
        row = len(self._dials)
        grid.addWidget(self._seed_label, row, 0)
        grid.addWidget(self.seed, row, 1)
        grid.addWidget(self._shuffle, row, 2)
        defaults = boxes.line(None, (self._defaults, 1), self._apply)
        boxes.column(self, top, grid, defaults, edges=(10, 6, 10, 8), gap=4)

    def set_simple(self, on: bool) -> None:
        """Greedy or not, and the temperature; or everything."""
        self._simple = on
        self.set_snug(on)
        rest: list[QWidget] = [self._seed_label, self.seed, self._shuffle, self._defaults]
        for dial in self._dials[1:]:
            rest += (dial.label, dial.slider, dial.spin)
        for widget in rest:
            widget.setVisible(not on)
        self._show_defaults(self._session.state)

    def show_state(self, old: State | None, new: State) -> None:
        if not changed(old, new, "next_card", "sampling"):
            return
        sampling = new.sampling
        self._greedy.setChecked(sampling.greedy)
        self.temperature.show_value(sampling.temperature)
        self._top_k.show_value(sampling.top_k)
        self.top_p.show_value(sampling.top_p)
        self.seed.set_value(sampling.seed)
        for dial in self._dials:
            dial.set_active(not sampling.greedy)
        for widget in (self.seed, self._seed_label, self._shuffle):
            widget.setEnabled(not sampling.takes_best)
        self._show_defaults(new)

    def _show_defaults(self, state: State) -> None:
        card = state.next_card
        given = {} if card is None else model_defaults(card.generation_defaults)
        words = ", ".join(
            [
                *(["greedy"] if given.get("greedy") else []),
                *(
                    f"{name.replace('_', '-')} {value:g}"
                    for name, value in given.items()
                    if name != "greedy"
                ),
            ]
        )
        text = self.tr("Recommended: {0}").format(words)
        if card is not None and not words:
            text = self.tr("This model recommends no sampling settings.")
        self._defaults.setText("" if card is None else text)
        self._apply.setVisible(bool(words) and not self._simple)

    def _apply_defaults(self) -> None:
        card = self._session.state.next_card
        if card is not None:
            self._request(**model_defaults(card.generation_defaults))

    def _request(self, **changes: object) -> None:
        sampling = msgspec.structs.replace(self._session.state.sampling, **changes)
        self._session.set_sampling(sampling)
