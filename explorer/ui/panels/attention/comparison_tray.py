"""Under a comparison: what it does to the next token, and the prefix experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import floor, log10

import numpy as np
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QPushButton, QToolButton, QWidget

from explorer import wording
from explorer.figures.attention.map_request import Beside
from explorer.figures.prediction import comparison
from explorer.figures.prediction.comparison import NextTokens, TokenPair
from explorer.figures.text import tokens as spelling
from explorer.sampling import SamplingError
from explorer.trace.experiments import PrefixShift
from explorer.trace.step import Step
from explorer.ui.canvases.charts.axis import Axis
from explorer.ui.canvases.charts.chart import Chart
from explorer.ui.canvases.charts.marks import Dots, Figure, Line, Note, Paint, legend_of
from explorer.ui.canvases.tokens.token_bars import BarRow, TokenBars
from explorer.ui.kit import boxes
from explorer.ui.kit.elided import ResultLabel
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.look.theme import Theme
from explorer.ui.panels.attention import words
from explorer.ui.threads.worker import Worker
from explorer.wording import exact_percent, percent

_AT_ONCE = 20_000  # tokens of a vocabulary that are compared in the window's thread
_ROUNDING = 1e-4  # of a layer's root mean square: what float32 may leave

_LOWEST = 1e-8  # below float32's rounding nothing differs
_SERIES: tuple[tuple[str, str, str, Dots], ...] = (
    ("masked", QT_TRANSLATE_NOOP("PrefixBox", "with mask"), "raw", "ring"),
    ("unmasked", QT_TRANSLATE_NOOP("PrefixBox", "without mask"), "formula", "round"),
)


class NextTokenBox(QWidget):
    """Both runs' own distributions, before any sampling."""

    hovered = Signal(object)  # id of a token, or None

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._names = words.side_names(None)
        self.bars = TokenBars(theme, self._heads())
        self.bars.setAccessibleName(self.tr("Next token of both sides"))
        self.bars.capacityChanged.connect(self._redraw)
        self.bars.hovered.connect(self.hovered)
        tip = self.tr(
            "The most likely next token of each run, and the total variation distance "
            "of the two distributions (0: identical, 1: disjoint)"
        )
        self.line = ResultLabel(tip=tip, look="small")  # both stand in the strip above
        tip = self.tr(
            "Logit and probability of the chosen token in both runs, before any sampling. "
            "Hover over another token to see its own."
        )
        self.token_line = ResultLabel(tip=tip, look="small")
        self._token: int | None = None
        self._steps: tuple[Step, Step] | None = None
        self._figure: NextTokens | None = None
        self._worker = Worker(self)
        boxes.column(self, (self.bars, 1), gap=2)

    def name_sides(self, beside: Beside | None) -> None:
        """Which comparison it is."""
        self.set_names(words.side_names(beside))

    def set_names(self, names: tuple[str, str, str]) -> None:
        """Of the two sides and of their difference."""
        self._names = names
        self.bars.set_heads(self._heads())

    def _heads(self) -> tuple[str, ...]:
        return *self._names[:2], self.tr("change")

    def show_token(self, token_id: int, chosen: bool) -> None:
        """Say what becomes of this token; `chosen`: it is the one that the step took."""
        self._token = token_id
        self.bars.light(None if chosen else token_id)
        self._say_token()

    def show_steps(self, masked: Step | None, unmasked: Step | None, waiting: str) -> None:
        """Compare two real passes; `waiting` says why one is missing."""
        if masked is None or unmasked is None:
            self._worker.drop("figure")
            self._steps = self._figure = None
            self.bars.set_rows(())
            self.line.setText(waiting)
            self.token_line.setText("")
            return
        if self._steps is None or self._steps[0] is not masked or self._steps[1] is not unmasked:
            self._steps = masked, unmasked
            self._redraw()

    def _redraw(self) -> None:
        if self._steps is None:
            return
        rows = max(1, self.bars.rows_that_fit() - 1)
        self._worker.follow(
            "figure",
            partial(comparison.next_tokens, *self._steps, rows),
            self._have,
            self._have_none,
            at_once=len(self._steps[0].logits) <= _AT_ONCE,
        )

    @property
    def busy(self) -> bool:
        """True while the figure is still to come."""
        return self._worker.busy

    def _have(self, figure: NextTokens) -> None:
        self._figure = figure
        self.bars.set_rows(self._rows(figure))
        self.line.setText(self._words(figure))
        self._say_token()

    def _have_none(self, error: Exception) -> None:
        if not isinstance(error, SamplingError | ValueError):
            raise error
        self._figure = None
        self.bars.set_rows(())
        self.line.setText(str(error))
        self.token_line.setText("")

    def _rows(self, figure: NextTokens) -> list[BarRow]:
        rows = [
            BarRow(
                key=pair.token_id,
                label=_label(pair),
                first=pair.first,
                first_text=percent(pair.first),
                second=pair.second,
                second_text=percent(pair.second),
                change_text=words.signed(pair.change, percent),
                tip=self.tr("id {0}: {1} {2}, {3} {4}").format(
                    pair.token_id,
                    exact_percent(pair.first),
                    self._names[0],
                    exact_percent(pair.second),
                    self._names[1],
                ),
            )
            for pair in figure.pairs
        ]
        count, first, second = figure.rest
        if count:
            rows.append(
                BarRow(
                    key=-1,
                    label=self.tr("{0} others").format(f"{count:,}"),
                    first=first,
                    first_text=percent(first),
                    second=second,
                    second_text=percent(second),
                    change_text=words.signed(second - first, percent),
                    rest=True,
                )
            )
        return rows

    def _say_token(self) -> None:
        """What becomes of one token, from the first side to the second."""
        figure, token = self._figure, self._token
        if figure is None or token is None or token >= len(figure.probabilities[0]):
            self.token_line.setText("")
            return
        pair = figure.pair(token)
        pattern = self.tr(
            "{0}: logit {1} → {2} ({3}) · probability {4} → {5} ({6}) · rank {7} → {8}"
        )
        self.token_line.setText(
            pattern.format(
                _label(pair),
                f"{pair.first_logit:z.2f}".replace("-", "−"),
                f"{pair.second_logit:z.2f}".replace("-", "−"),
                wording.signed(pair.logit_change, ".2f").replace("-", "−"),
                percent(pair.first),
                percent(pair.second),
                words.signed(pair.change, percent),
                f"{pair.first_rank + 1:,}",
                f"{pair.second_rank + 1:,}",
            )
        )

    def _words(self, figure: NextTokens) -> str:
        top, other = map(_label, figure.tops)
        if top != other:
            change = self.tr("{0} → {1}").format(top, other)
        else:
            change = self.tr("{0} in both").format(top)
        distance = f"{figure.total_variation:.3g}"
        return self.tr("Next token: {0} · total variation {1}").format(change, distance)

    def table(self) -> Iterator[Sequence[object]]:
        """Both distributions, as far as they have rows."""
        sides = [name.replace(" ", "_") for name in self._names[:2]]
        figures = ("probability", "logit")
        yield "id", "text", *(f"{figure}_{side}" for figure in figures for side in sides)
        if self._figure is None:
            return
        for pair in self._figure.pairs:
            logits = pair.first_logit, pair.second_logit
            yield pair.token_id, _label(pair), pair.first, pair.second, *logits
        _, first, second = self._figure.rest
        yield "", "all others", first, second, "", ""


class PrefixBox(QWidget):
    """Drop the last token: what moves at the earlier ones."""

    asked = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._found: PrefixShift | None = None
        self._shown: tuple[int, bool] | None = None
        self.button = QPushButton(self.tr("Test: remove the last token"))
        self.button.setToolTip(
            self.tr("Runs the prefix with and without its last token, masked and unmasked")
        )
        self.button.clicked.connect(self.asked)
        self.line = ResultLabel(look="small")
        self.plot = Chart(theme, self._tip)
        self.plot.setAccessibleName(self.tr("Change when the last token is removed"))
        self._hint = QLabel(
            self.tr(
                "How much do the outputs of earlier tokens change when the last token is removed?"
            )
        )
        self._hint.setWordWrap(True)
        self._hint.setProperty("look", "small")
        boxes.column(self, self.line, self._hint, (self.plot, 1), gap=2)
        self.show_figures(None, current=True)

    def show_figures(self, found: PrefixShift | None, current: bool) -> None:
        """Show the experiment's figures; not `current`: they are of another step."""
        if self._shown == (id(found), current):
            return
        self._found, self._shown = found, (id(found), current)
        self._hint.setVisible(found is None)
        self.line.setVisible(found is not None)
        self.plot.show_figure(None if found is None else self._figure(found))
        self.line.setText("" if found is None else self._words(found, current))

    def _figure(self, found: PrefixShift) -> Figure:
        """Dots over layers, the logits apart at the end; an exact 0 has a place of its own."""
        lines = []
        count = len(found.masked.layers)
        for name, label, colour, dots in _SERIES:
            figures = getattr(found, name)
            if figures is not None:
                values = np.array([*figures.layers, figures.logits], np.float64)
                lines.append(_prefix_line(self.tr(label), values, colour, dots))
        known = np.concatenate([line.y for line in lines])
        known = np.maximum(known[known > 0], _LOWEST)
        least = 10.0 ** floor(log10(known.min(initial=1e-2)) + 1e-9)
        high = max(float(known.max(initial=1.0)), least * 10)
        return Figure(
            x=Axis(self.tr("layer"), whole=True, named={count + 0.5: self.tr("logits")},
                   last=count - 1),
            y=Axis(self.tr("largest change ÷ RMS"), _power, log=True, zero=True, least=least),
            places=lines[0].x,
            x_range=(-0.5, count + 1.0),
            y_range=(0.0, high * 1.5),
            lines=lines,
            notes=[
                Note(float(line.x[-1]), float(line.y[-1]), line.name, line.paint.colour, left=True)
                for line in lines
            ],
            legend=legend_of(*lines),
        )  # fmt: skip

    def _words(self, found: PrefixShift, current: bool) -> str:
        masked, unmasked = found.masked, found.unmasked
        most = masked.largest
        if most == 0:
            said = self.tr("With the mask, earlier outputs do not change at all (exactly 0)")
        elif most < _ROUNDING:
            said = self.tr(
                "With the mask, earlier outputs do not change beyond rounding ({0} of a "
                "layer's RMS)"
            )
        else:
            said = self.tr(
                "With the mask, earlier outputs change by up to {0} of a layer's RMS, more "
                "than rounding"
            )
        parts = [said.format(f"{most:.1g}")]
        if unmasked is None:
            parts.append(found.why)
        else:
            parts.append(
                self.tr("without it: by up to {0} (logits: {1})").format(
                    f"{max(unmasked.layers):.2g}", f"{unmasked.logits_abs:.3g}"
                )
            )
        if not current:
            parts.insert(0, self.tr("Measured on {0} tokens").format(found.tokens))
        return " · ".join([*parts, *filter(None, [found.note])])

    def _tip(self, column: int) -> str:
        found = self._found
        if found is None:
            return ""
        parts = []
        count = len(found.masked.layers)
        for name, label, _, _ in _SERIES:
            figures = getattr(found, name)
            if figures is not None:
                value = [*figures.layers, figures.logits][column]
                parts.append(f"{self.tr(label)} {value:.2e}" if value else f"{self.tr(label)} 0")
        place = self.tr("layer {0}").format(column) if column < count else self.tr("logits")
        return self.tr("{0}: largest change ÷ RMS: {1}").format(place, ", ".join(parts))

    def table(self) -> Iterator[Sequence[object]]:
        """The figures themselves."""
        yield "layer", "masked", "unmasked"
        if self._found is None:
            return
        masked, unmasked = self._found.masked, self._found.unmasked
        for layer, value in enumerate(masked.layers):
            yield layer, value, "" if unmasked is None else unmasked.layers[layer]
        yield "logits", masked.logits, "" if unmasked is None else unmasked.logits


class ComparisonTray(QWidget):
    """One line, and on request both distributions and the experiment under it."""

    def __init__(self, theme: Theme, measure: Callable[[], None]) -> None:
        super().__init__()
        self.next = NextTokenBox(theme)
        self.prefix = PrefixBox(theme)
        self.prefix.asked.connect(measure)
        self.details = QToolButton()
        self.prefix.asked.connect(lambda: self.details.setChecked(True))
        self.details.setText(self.tr("Details"))
        self.details.setToolTip(
            self.tr("Both distributions of the next token, and the prefix experiment")
        )
        self.details.setCheckable(True)
        self.details.toggled.connect(self._open)
        lines = boxes.column(None, self.next.line, self.next.token_line, gap=0)
        strip = boxes.line(None, (lines, 1), self.prefix.button, self.details, gap=4)
        self._body = QWidget()
        boxes.line(self._body, (self.next, 1), (self.prefix, 1), gap=10)
        boxes.column(self, strip, self._body, gap=3)
        self._open(False)

    def _open(self, on: bool) -> None:
        self._body.setVisible(on)


def _label(pair: TokenPair) -> str:
    return f"id {pair.token_id}" if pair.token is None else spelling.written(pair.token)


def _prefix_line(name: str, values: np.ndarray, colour: str, dots: Dots) -> Line:
    """The layers joined, the logits half a column apart from them."""
    x = np.arange(len(values), dtype=np.float64)
    x[-1] += 0.5
    return Line(name, x, values, Paint(colour), 1.2, dots)


def _power(value: float) -> str:
    """A power of ten for an axis: "10⁻³"."""
    if value <= 0:
        return "0"
    exponent = round(log10(value))
    if not exponent or abs(log10(value) - exponent) > 1e-6:
        return f"{value:.2g}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
