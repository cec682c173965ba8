"""Logit lens: every layer's output, read through the model's own final norm and head."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtWidgets import QLabel, QPushButton, QToolButton, QWidget

from explorer.figures.drawing.board import BoardCell, CellsFigure
from explorer.figures.inside import lens as figures
from explorer.figures.inside.lens import LensColumn, LensColumns
from explorer.figures.text import tokens
from explorer.figures.text.tokens import Label, written
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.comparison import made_for
from explorer.trace.inside.lens import LensBoard, ReadLens
from explorer.trace.trace import Trace
from explorer.ui.canvases.tokens.cell_board import CellBoard
from explorer.ui.kit import boxes, forms
from explorer.ui.kit.elided import ResultLabel
from explorer.ui.kit.ramp import Ramp
from explorer.ui.kit.scrolled import OneOf
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.kit.wheel_guard import ComboBox
from explorer.ui.look.theme import Theme
from explorer.ui.panel.asking import Asking, Question
from explorer.ui.panel.panel import Panel, View
from explorer.ui.panels.lens import words
from explorer.ui.panels.lens.charts import TokenCharts

_TOP = 5  # tokens of a cell


class LensPanel(Panel):
    """Reads the position that is looked at by itself, the whole board when it is asked to."""

    ID = "lens"
    TITLE = QT_TRANSLATE_NOOP("LensPanel", "Logit lens")
    TERM = "logit-lens"
    BESIDE = "attention"
    EXPLANATION = QT_TRANSLATE_NOOP(
        "LensPanel", "What the model would say if it ended after each of its layers"
    )
    EMPTY = QT_TRANSLATE_NOOP(
        "LensPanel",
        "Type a prompt and press Step (Space) to see what the model would say after each layer.",
    )
    NEEDS = (
        *Panel.NEEDS, "measured", "refused", "status.activity", "status.experiment",
        "selection.query", "selection.layer", "card", "opened",
    )  # fmt: skip

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self._trace: Trace | None = None
        self._read = LensColumns()  # everything of this run
        self._columns: tuple[LensColumn | None, ...] = ()  # what of it is true of this step
        self._labels: tuple[Label, ...] = ()
        self._slot = self._row = 0  # that are looked at
        self._asking = Asking(self, session, self._wanted)
        self._whole = False  # the whole board was asked for, and is being read
        self._build()

    def _build(self) -> None:
        self.colour = ComboBox()
        for by in words.BY:
            self.colour.addItem(words.by_words(by), by)
        self.colour.setAccessibleName(self.tr("Colour the cells by"))
        self.colour.setToolTip(
            self.tr(
                "Probability: of the token in the cell. Rank, KL: how far the row is from what "
                "the model really says."
            )
        )
        self.colour.currentIndexChanged.connect(self._recolour)
        self.one_token = QToolButton()
        self.one_token.setText(self.tr("One token"))
        self.one_token.setToolTip(self.tr("Show the selected token layer by layer, as lines"))
        self.one_token.setCheckable(True)
        self.one_token.toggled.connect(self._turn)
        self._low, self._high, self._ramp = QLabel(), QLabel(), Ramp()
        self.whole_button = QPushButton(self.tr("Whole board"))
        self.whole_button.clicked.connect(self._read_all)
        self.stop_button = QPushButton(self.tr("Stop"))
        self.stop_button.hide()
        self.stop_button.clicked.connect(self.session.cancel)
        scale = QWidget()
        boxes.line(scale, self._low, self._ramp, self._high, gap=4)
        row = forms.row(
            (self.tr("Colour"), self.colour), ("", scale), ("", self.whole_button),
            ("", self.one_token), ("", self.stop_button),
        )  # fmt: skip
        self._words = ResultLabel()
        self.board = CellBoard(self.theme)
        self.board.setAccessibleName(self.tr("Logit lens: layers by tokens"))
        self.board.hovered.connect(self._read_out)
        self.board.picked.connect(self._go_to)
        self.charts = TokenCharts(self.theme)
        self.charts.picked.connect(lambda row: self._go_to(row, self._slot))
        note = SentenceLabel(
            self.tr(
                "An early layer's row is a reading, not a belief. The last row is the model's "
                "real prediction; cells that agree with it are underlined."
            ),
            look="small",
        )
        board = QWidget()
        boxes.column(board, self._words, (self.board, 1), note, gap=2)
        self.pages = OneOf()
        self.pages.addWidget(board)
        self.pages.addWidget(self.charts)
        self.content.setSpacing(3)
        self.content.addLayout(row)
        self.content.addWidget(self.pages, 1)

    # -- showing

    def show_state(self, old: State | None, new: State) -> None:
        super().show_state(old, new)
        self._asking.later()

    def draw(self, new: State) -> None:
        shown = new.shown
        if shown is None:
            self._trace = None
            self.show_empty()
            return
        self._keep(shown.trace, new)
        self._columns = self._read.true_of(shown.trace, shown.step)
        self._labels = tokens.labels(shown.trace.tokens[: len(self._columns)])
        self._slot, self._row = shown.query, shown.layer + 1
        reading = new.status.experiment is ReadLens
        self._whole = self._whole and not new.model_is_free
        free = new.model_is_free and new.model_of_run
        why = new.refusal(ReadLens)
        missing = self._missing()
        self.whole_button.setEnabled(free and bool(missing))
        self.whole_button.setToolTip(
            self.tr("Read every token at every layer")
            if new.model_of_run
            else self.tr("Only the model of this run can read its layers. Open it first.")
        )
        self.stop_button.setVisible(self._whole)
        if not any(self._columns) and (why or not (new.model_of_run or reading)):
            self.show_empty(why or self.whole_button.toolTip())
            return
        self._draw_board()
        self.show_content()

    def _keep(self, trace: Trace, new: State) -> None:
        """Add what was read to what is known of this run."""
        before, self._trace = self._trace, trace
        same = before is not None and before.card is trace.card
        if not same or (before is not None and before.request != trace.request):
            self._read = LensColumns()
        found = new.measured_of(LensBoard)
        if found is not None and found.request == trace.request and made_for(found.card, trace):
            self._read = self._read.with_board(found.result, found.chosen)

    def _missing(self) -> tuple[int, ...]:
        """Slots that were not read yet, those of padding left out."""
        trace = self._trace
        known = zip(self._columns, () if trace is None else trace.tokens, strict=False)
        return tuple(
            slot for slot, (column, token) in enumerate(known)
            if column is None and token.origin != "padding"
        )  # fmt: skip

    def _draw_board(self) -> None:
        by, read, columns = words.BY[self.colour.currentIndex()], self._read, self._columns
        labels, trace = self._labels, self._trace
        assert trace is not None
        vocabulary = trace.card.vocab_size

        def cell(row: int, slot: int) -> BoardCell | None:
            column = columns[slot]
            if column is None:
                return None
            best = int(column.ids[row, 0])
            text = written(read.token(best))
            return BoardCell(text, column.level(row, by, vocabulary), best == column.final_id)

        self.board.show_figure(
            CellsFigure(
                rows=read.rows,
                columns=[label.text for label in labels],
                cell=cell,
                words=lambda row, slot: words.cell_words(
                    read, columns[slot], row, slot, labels[slot]
                ),
                corner=self.tr("tokens →"),
            )
        )
        self.board.set_selected(self._row if read.rows else None, self._slot)
        low, high = words.ends(by, vocabulary)
        self._low.setText(low)
        self._high.setText(high)
        column = columns[self._slot] if self._slot < len(columns) else None
        headline = self._headline(column)
        marked = self._row if self._row < len(read.rows) else None
        self.charts.show_column(read, column, headline, marked)
        self._words.setText(headline)

    def _headline(self, column: LensColumn | None) -> str:
        if self._whole:
            done = sum(one is not None for one in self._columns)
            return self.tr("Reading the layers: {0} of {1} tokens so far").format(
                f"{done:,}", f"{len(self._columns):,}"
            )
        if column is None:
            return self.tr("Position {0} has not been read yet.").format(self._slot)
        return words.token_words(self._read, column, self._slot, self._labels[self._slot])

    def _read_out(self, at: tuple[int, int] | None) -> None:
        if at is not None:
            self._words.setText(self.board.figure.words(*at))
        elif self._slot < len(self._columns):
            self._words.setText(self._headline(self._columns[self._slot]))

    def _turn(self, one_token: bool) -> None:
        self.pages.setCurrentIndex(int(one_token))

    def _recolour(self) -> None:
        if self._trace is not None and not self.empty:
            self._draw_board()

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self._recolour()  # the unit may be another one, too

    # -- wishes

    def _wanted(self, state: State) -> Question | None:
        """The position that is looked at, if it was not read yet."""
        shown = state.shown
        if shown is None or shown.query not in self._missing():
            return None
        return ReadLens, {"slots": (shown.query,), "top": _TOP}

    def _read_all(self) -> None:
        self.session.measure(ReadLens, slots=self._missing(), top=_TOP)
        self._whole = True  # what has the engine until now was ended first
        self.draw(self.session.state)

    def _go_to(self, row: int, slot: int) -> None:
        trace = self._trace
        assert trace is not None
        layer = figures.layer_of(row, trace.card.layers)
        self.session.select(query=slot, **({} if layer is None else {"layer": layer}))

    # -- files

    def choices(self) -> dict[str, str | float]:
        page = "token" if self.one_token.isChecked() else "board"
        return {"page": page, "colour": self.colour.currentData()}

    def choose(self, choices: Mapping[str, str | float]) -> None:
        page, colour = choices.get("page"), choices.get("colour")
        if page in ("board", "token"):
            self.one_token.setChecked(page == "token")
        if colour in words.BY:
            self.colour.setCurrentIndex(words.BY.index(colour))

    def views(self) -> Mapping[str, View]:
        if not any(self._columns):
            return {}
        read, columns = self._read, self._columns
        charts = self.charts
        return {
            self.tr("Logit lens"): View(self.board, lambda: figures.table(read, columns)),
            self.tr("Probability by layer"): View(charts.pair.first, charts.table),
            self.tr("Entropy and KL by layer"): View(charts.pair.second, charts.table),
        }
