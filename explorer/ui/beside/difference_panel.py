"""What differs between the two sides: every step, the next token, and the map of one head."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QHeaderView, QMenu, QPushButton, QSplitter, QWidget

from explorer.figures.attention.map_blocks import MASKED, READ
from explorer.figures.comparing import pair_difference
from explorer.figures.comparing.differences import StepDifference
from explorer.figures.comparing.pair_difference import KnownSteps, PairDifference
from explorer.figures.inside.lens import nats
from explorer.figures.prediction.comparison import TokenPair
from explorer.figures.text import tokens as spelling
from explorer.sampling import SamplingError
from explorer.session.linked.linked_runs import LinkedRuns
from explorer.session.selection import Shown
from explorer.session.session import Session
from explorer.session.state import State
from explorer.ui.access import mnemonics
from explorer.ui.canvases.maps.heatmap import Heatmap
from explorer.ui.kit import boxes, forms
from explorer.ui.kit.elided import ResultLabel
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.look.theme import Theme
from explorer.ui.panel.head_menu import patch_menu_of
from explorer.ui.panel.panel import Panel, View
from explorer.ui.panels.attention import scales
from explorer.ui.panels.attention.comparison_tray import NextTokenBox
from explorer.ui.threads.worker import TURN, Worker
from explorer.wording import exact_percent, in_unit, information, percent, unit

_ROWS = 12  # next tokens that are compared


class DifferencePanel(Panel):
    """Follows what both sides look at; every number is of the models' own distributions."""

    ID = "difference"
    TITLE = QT_TRANSLATE_NOOP("DifferencePanel", "Difference")
    EXPLANATION = QT_TRANSLATE_NOOP("DifferencePanel", "Right side minus left side")
    EMPTY = QT_TRANSLATE_NOOP(
        "DifferencePanel", "Press Step: there is a difference once both sides have a run."
    )

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self._worker = Worker(self)
        self._asked: tuple[Shown, Shown, bool] | None = None  # with `by_id`
        self._pair: tuple[Shown, Shown] | None = None  # that `_found` is about
        self._found: PairDifference | None = None
        self._known = KnownSteps()  # used in the worker's thread only
        self._links: LinkedRuns | None = None
        self.line = ResultLabel()
        self.steps = forms.table(self.tr("Every step of both sides"), 4)
        for column in (1, 2):
            header = self.steps.horizontalHeader()
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Stretch)
        self.steps.cellClicked.connect(self._pick)
        self.steps.cellActivated.connect(self._pick)
        self.next = NextTokenBox(theme)
        self.next.set_names((self.tr("left"), self.tr("right"), self.tr("right − left")))
        self.why_no_bars = SentenceLabel(look="muted")
        self.why_no_bars.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.map = Heatmap(theme, self._cell_words)
        self.map.setAccessibleName(self.tr("Difference of the attention maps"))
        self.read = ResultLabel(look="small")
        self.map.hovered.connect(self._on_hovered)
        middle = QWidget()
        boxes.column(middle, (self.next, 1), self.next.token_line, (self.why_no_bars, 1), gap=2)
        last = QWidget()
        boxes.column(last, (self.map, 1), self.read, gap=2)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.setChildrenCollapsible(False)
        for part in (self.steps, middle, last):
            split.addWidget(part)
        split.setSizes([300, 380, 320])
        self.patch = QPushButton(self.tr("Patch…"))
        self.patch.setToolTip(
            self.tr("Put what a part gave in the run of one side into the run of the other side")
        )
        self.patch.clicked.connect(self._show_patches)
        self.patches: QMenu | None = None  # the last one
        self.content.addLayout(boxes.line(None, (self.line, 1), self.patch))
        self.content.addWidget(split, 1)

    @property
    def busy(self) -> bool:
        return self._worker.busy or self.next.busy

    def draw(self, new: State) -> None:
        """Nothing: it shows two states, see `show_links`."""

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self.map.set_theme(theme)

    def show_links(self, links: LinkedRuns) -> None:
        """Bring it up to date with what both sides look at now."""
        left, right, matching = links.left.state.shown, links.right.state.shown, links.matching
        if left is None or right is None or matching is None:
            self._worker.drop("difference")
            self._asked = self._pair = self._found = None
            self._known = KnownSteps()
            self.show_empty()
            return
        self._links = links
        asked = left, right, matching.by_id
        if self._asked is not None and _same(self._asked, asked):
            return
        self._asked = asked
        work = partial(_in_turns, *asked, self._known)
        self._worker.follow(
            "difference", work, partial(self._have, (left, right)), self._show_reason
        )

    def redraw(self) -> None:
        """The same figures again: they have another unit."""
        if self._found is not None:
            self._show(self._found)

    def views(self) -> Mapping[str, View]:
        found = self._found
        if found is None:
            return {}
        views = {self.tr("Steps"): View(self.steps, self._table)}
        if found.next_tokens is not None:
            views[self.tr("Next token")] = View(self.next.bars, self.next.table)
        if found.map is not None:
            views[self.tr("Map")] = View(self.map, array=self._array)
        return views

    def _pick(self, row: int, _: int) -> None:
        if self._links is not None:
            self._links.select_steps(row)

    def _show_patches(self) -> None:
        """What can be put into either side: parts of the layer and head that it looks at."""
        if self._links is None:
            return
        if self.patches is not None:
            self.patches.deleteLater()
        menu = self.patches = QMenu(self)
        left, right = self._links.left, self._links.right
        for into, source, words in (
            (left, right, self.tr("From the right side into the left")),
            (right, left, self.tr("From the left side into the right")),
        ):
            if source.state.trace is not None:
                inner = patch_menu_of(into, menu, source.state.trace)
                inner.setTitle(words)
                menu.addMenu(inner)
        mnemonics.follow(menu)
        menu.popup(self.patch.mapToGlobal(QPoint(0, self.patch.height())))

    def _have(self, pair: tuple[Shown, Shown], found: PairDifference) -> None:
        self._pair = pair
        self._show(found)

    def _show(self, found: PairDifference) -> None:
        self._found = found
        assert self._pair is not None
        left, right = self._pair
        self.line.setText(self._words(found))
        self._show_steps(found.steps)
        compared = found.next_tokens is not None
        self.next.setVisible(compared)
        self.next.token_line.setVisible(compared)
        self.why_no_bars.setVisible(not compared)
        if compared:
            self.next.show_steps(left.last_pass, right.last_pass, "")
            self.next.show_token(left.last_pass.draw.token_id, chosen=True)
        else:
            self.why_no_bars.setText(self._texts(left, right))
        self._show_map(found, left)
        self.show_content()

    def _show_reason(self, error: Exception) -> None:
        if not isinstance(error, SamplingError):
            raise error
        self._pair = self._found = None
        self.show_empty(str(error))

    def _words(self, found: PairDifference) -> str:
        if found.next_tokens is None or found.kl_bits is None:
            return self.tr(
                "The vocabularies differ: distributions and maps can't be subtracted. Texts can be "
                "compared."
            )
        first, second = found.next_tokens.tops
        top, other = map(_label, (first, second))
        same = self.tr("{0} on both sides").format(top)
        change = self.tr("{0} left, {1} right").format(top, other)
        return self.tr(
            "Most likely next token: {0} · KL (left ‖ right) {1} · total variation {2}"
        ).format(
            same if first.token_id == second.token_id else change,
            information(nats(found.kl_bits)),
            f"{found.next_tokens.total_variation:.3g}",
        )

    def _texts(self, left: Shown, right: Shown) -> str:
        """What both sides chose, where their vocabularies differ."""
        a, b = (
            spelling.in_quotes(spelling.written(look.trace.chosen[look.step]))
            for look in (left, right)
        )
        return self.tr(
            "Left chose {0}, right chose {1}. Their probabilities are over different vocabularies."
        ).format(a, b)

    def _show_steps(self, steps: Sequence[StepDifference]) -> None:
        heads = (
            self.tr("Token"), self.tr("left"), self.tr("right"),
            self.tr("KL {0}").format(unit()),
        )  # fmt: skip
        forms.fill(self.steps, heads, [self._step_cells(one) for one in steps])
        assert self._pair is not None
        if self._pair[0].step < len(steps):
            self.steps.selectRow(self._pair[0].step)

    def _step_cells(self, one: StepDifference) -> tuple[str, ...]:
        assert self._pair is not None
        left, right = (look.trace.chosen[one.index] for look in self._pair)
        return (
            f"{one.index + 1}" if one.same_choice else f"{one.index + 1} ≠",
            spelling.written(left),
            spelling.written(right),
            "–" if one.kl_bits is None else f"{in_unit(nats(one.kl_bits)):.3g}",
        )

    def _show_map(self, found: PairDifference, left: Shown) -> None:
        drawn = found.map
        self.read.setText("")
        if drawn is None:
            self.map.set_note(self.tr("No difference of maps: {0}.").format(found.why_no_map))
            return
        tokens = left.trace.tokens
        padding = [slot for slot, token in enumerate(tokens) if token.origin == "padding"]
        key = scales.key("max", drawn.top, signed=True)
        self.map.set_map(
            drawn.levels, spelling.labels(tokens), padding, key, drawn.pooled, signed=True
        )
        both = drawn.map.weights[drawn.map.kinds == READ]
        largest = float(np.abs(both).max(initial=0))
        words = self.tr("Layer {0}, head {1}: the largest change is {2}")
        if not both.size:
            words = self.tr("Layer {0}, head {1}: no cell is recorded on both sides")
        elif not largest:
            words = self.tr("Layer {0}, head {1}: no cell differs")
        self.read.setText(words.format(left.layer, left.head, exact_percent(largest)))

    def _on_hovered(self, cell: tuple[int, int] | None) -> None:
        if cell is not None:
            self.read.setText(self._cell_words(*cell))

    def _cell_words(self, query: int, key: int) -> str:
        found, pair = self._found, self._pair
        if found is None or found.map is None or pair is None:
            return ""
        weights, tokens = found.map.map.weights, pair[0].trace.tokens
        if query >= weights.shape[0] or key >= weights.shape[1]:
            return ""
        change, kind = float(weights[query, key]), found.map.map.kinds[query, key]
        words = f"{'−' if change < 0 else '+'}{percent(abs(change))}"
        if kind != READ:
            words = self.tr("masked") if kind == MASKED else self.tr("not recorded on both sides")
        first, second = (spelling.in_quotes(spelling.written(tokens[i])) for i in (query, key))
        return self.tr("{0} ({1}) to {2} ({3}): {4}").format(first, query, second, key, words)

    def _array(self) -> Callable[[], np.ndarray]:
        assert self._found is not None
        assert self._found.map is not None
        shown = self._found.map.map
        return lambda: np.where(shown.kinds == READ, shown.weights, np.nan)

    def _table(self) -> Iterator[Sequence[object]]:
        yield "step", "left", "right", "same_choice", "kl_bits", "total_variation", "logits"
        if self._found is None or self._pair is None:
            return
        for one in self._found.steps:
            left, right = (spelling.written(look.trace.chosen[one.index]) for look in self._pair)
            figures = (one.kl_bits, one.total_variation, one.logits)
            yield (
                one.index, left, right, one.same_choice,
                *("" if figure is None else figure for figure in figures),
            )  # fmt: skip


def _in_turns(left: Shown, right: Shown, by_id: bool, known: KnownSteps) -> Iterator[object]:
    """The difference, giving others their turn after each step that is compared."""
    for part in pair_difference.between(left, right, by_id, _ROWS, known):
        yield TURN if isinstance(part, float) else part


def _same(before: tuple[Shown, Shown, bool], now: tuple[Shown, Shown, bool]) -> bool:
    """True if both sides look at the same head of the same passes, matched in the same way."""
    return before[2] == now[2] and all(
        (a.layer, a.head) == (b.layer, b.head)
        and a.same_passes(b)
        and a.trace.chosen_ids == b.trace.chosen_ids
        for a, b in zip(before[:2], now[:2], strict=True)
    )


def _label(pair: TokenPair) -> str:
    return (
        f"id {pair.token_id}"
        if pair.token is None
        else spelling.in_quotes(spelling.written(pair.token))
    )
