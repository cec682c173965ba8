"""A board of layers by tokens: one token is read by itself, all of them when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from PySide6.QtWidgets import QPushButton, QToolButton, QWidget

from explorer.figures.drawing.board import CellsFigure
from explorer.figures.text import tokens
from explorer.figures.text.tokens import Label
from explorer.session.state import State
from explorer.trace.comparison import made_for
from explorer.trace.experiments import Experiment, Result
from explorer.trace.trace import Trace
from explorer.ui.kit import boxes, forms
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.panel.asking import Asking, Question, padding_words
from explorer.ui.panel.board_panel import BoardPanel
from explorer.ui.panel.panel import Panel

if TYPE_CHECKING:
    from explorer.session.session import Session
    from explorer.ui.look.theme import Theme

Controls = Iterable[tuple[str, QWidget]]  # each with its label


class Known(Protocol):
    """What has been read of a run so far."""

    def with_result(self, found: Any, chosen: tuple[int, ...]) -> Any:
        """With what was read when `chosen` had been generated."""

    def true_of(self, trace: Trace, step: int) -> tuple[Any | None, ...]:
        """One entry for each slot that the step has read; None = not known."""


class LayerBoardPanel(BoardPanel):
    """A subclass names its QUESTION and ANSWER, and says what the cells and lines are."""

    QUESTION: ClassVar[type[Experiment]]
    ANSWER: ClassVar[type[Result]]
    SETTINGS: ClassVar[Mapping[str, Any]] = {}  # of the question
    NEEDS = (
        *Panel.NEEDS, "measured", "refused", "status.activity", "status.experiment",
        "selection.query", "selection.layer", "card", "opened",
    )  # fmt: skip

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self.trace: Trace | None = None
        self.known = self.nothing()  # everything of this run
        self.columns: tuple[Any | None, ...] = ()  # what of it is true of this step
        self.labels: tuple[Label, ...] = ()
        self.slot = self.layer = 0  # that are looked at
        self._kept: object = None  # the answer that was added last
        self._asking = Asking(self, session, self._wanted)
        self._whole = False  # the whole board was asked for, and is being read

    def build(self, controls: Controls, lines: QWidget, note: SentenceLabel) -> None:
        """A row of controls over the board and its note, or over the lines of one token."""
        self.one_token = QToolButton()
        self.one_token.setText(self.tr("One token"))
        self.one_token.setToolTip(self.tr("Show the selected token layer by layer, as lines"))
        self.one_token.setCheckable(True)
        self.one_token.toggled.connect(lambda on: self.pages.setCurrentIndex(int(on)))
        self.whole_button = QPushButton(self.tr("Whole board"))
        self.whole_button.clicked.connect(self._read_all)
        self.stop_button = QPushButton(self.tr("Stop"))
        self.stop_button.hide()
        self.stop_button.clicked.connect(self.session.cancel)
        buttons = (self.whole_button, self.one_token, self.stop_button)
        board = QWidget()
        boxes.column(board, self.words, (self.board, 1), note, gap=2)
        self.pages.addWidget(board)
        self.pages.addWidget(lines)
        self.content.addLayout(forms.row(*controls, *(("", button) for button in buttons)))
        self.content.addWidget(self.pages, 1)

    # -- what a subclass says

    def nothing(self) -> Any:
        """A `Known` of a run of which nothing was read."""
        raise NotImplementedError

    def figure(self) -> CellsFigure:
        """What the board shows."""
        raise NotImplementedError

    def row_of(self, layer: int) -> int:
        """The row that a layer is in."""
        raise NotImplementedError

    def layer_of(self, row: int) -> int | None:
        """The layer that a row is of; None if of none."""
        raise NotImplementedError

    def column_words(self, column: Any) -> str:
        """What one token's column says."""
        raise NotImplementedError

    def draw_rest(self, column: Any | None) -> None:
        """The lines of one token, the ends of the scale, whatever else is drawn."""
        raise NotImplementedError

    # -- showing

    def show_state(self, old: State | None, new: State) -> None:
        super().show_state(old, new)
        self._asking.later()

    def draw(self, new: State) -> None:
        shown = new.shown
        if shown is None:
            self.trace = None
            self.show_empty()
            return
        self._keep(shown.trace, new)
        self.columns = self.known.true_of(shown.trace, shown.step)
        self.labels = tokens.labels(shown.trace.tokens[: len(self.columns)])
        self.slot, self.layer = shown.query, shown.layer
        reading = new.status.experiment is self.QUESTION
        self._whole = self._whole and not new.model_is_free
        free = new.model_is_free and new.model_of_run
        why = new.refusal(self.QUESTION)
        self.whole_button.setEnabled(free and bool(self._missing()))
        self.whole_button.setToolTip(
            self.tr("Read every token at every layer")
            if new.model_of_run
            else self.tr("Only the model of this run can read its layers. Open it first.")
        )
        self.stop_button.setVisible(self._whole)
        if not any(self.columns) and (why or not (new.model_of_run or reading)):
            self.show_empty(why or self.whole_button.toolTip(), refused=bool(why))
            return
        self.redraw()
        self.show_content()

    def redraw(self) -> None:
        """Draw what is known once more, where something else is to be seen of it."""
        self.board.show_figure(self.figure())
        row = self.row_of(self.layer)
        known = 0 <= row < len(self.board.figure.rows)
        self.board.set_selected(row if known else None, self.slot)
        column = self.columns[self.slot] if self.slot < len(self.columns) else None
        self.draw_rest(column)
        self.words.setText(self.headline())

    def _keep(self, trace: Trace, new: State) -> None:
        """Add what was read to what is known of this run."""
        before, self.trace = self.trace, trace
        same = before is not None and before.card is trace.card
        if not same or (before is not None and before.request != trace.request):
            self.known, self._kept = self.nothing(), None
        found = new.measured_of(self.ANSWER)
        if found is None or found.result is self._kept:
            return
        if found.request == trace.request and made_for(found.card, trace):
            self.known = self.known.with_result(found.result, found.chosen)
            self._kept = found.result

    def _missing(self) -> tuple[int, ...]:
        """Slots that were not read yet, those of padding left out."""
        known = zip(self.columns, () if self.trace is None else self.trace.tokens, strict=False)
        return tuple(
            slot for slot, (column, token) in enumerate(known)
            if column is None and token.origin != "padding"
        )  # fmt: skip

    def headline(self) -> str:
        column = self.columns[self.slot] if self.slot < len(self.columns) else None
        if self._whole:
            done = sum(one is not None for one in self.columns)
            return self.tr("Reading the layers: {0} of {1} tokens so far").format(
                f"{done:,}", f"{len(self.columns):,}"
            )
        if column is None and self.trace and self.trace.tokens[self.slot].origin == "padding":
            return padding_words(self.slot)
        if column is None:
            return self.tr("Position {0} has not been read yet.").format(self.slot)
        return self.column_words(column)

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        if self.trace is not None and not self.empty:
            self.redraw()  # the unit may be another one, too

    # -- wishes

    def _wanted(self, state: State) -> Question | None:
        """The position that is looked at, if it was not read yet."""
        shown = state.shown
        if shown is None or shown.query not in self._missing():
            return None
        return self.QUESTION, {"slots": (shown.query,), **self.SETTINGS}

    def _read_all(self) -> None:
        self.session.measure(self.QUESTION, slots=self._missing(), **self.SETTINGS)
        self._whole = True  # what has the engine until now was ended first
        self.draw(self.session.state)

    def go_to(self, row: int, column: int) -> None:
        layer = self.layer_of(row)
        self.session.select(query=column, **({} if layer is None else {"layer": layer}))

    # -- files

    def choices(self) -> dict[str, str | float]:
        return {"page": "token" if self.one_token.isChecked() else "board"}

    def choose(self, choices: Mapping[str, str | float]) -> None:
        page = choices.get("page")
        if page in ("board", "token"):
            self.one_token.setChecked(page == "token")
