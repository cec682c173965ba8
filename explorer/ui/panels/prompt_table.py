"""Prompts: a list of them, run one after the other, as a table to sort and to open rows from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFileDialog,
    QHeaderView,
    QPlainTextEdit,
    QPushButton,
    QSplitter,
    QTableWidgetItem,
    QWidget,
)

from explorer import disk
from explorer.figures.prediction.prompt_pairs import RowPair, pairs
from explorer.figures.text import tokens
from explorer.figures.text.characters import elide, printable
from explorer.session.session import Session
from explorer.session.state import Measured, State
from explorer.trace.experiments import MOST_PROMPTS, PromptTable, ScoredPrompt, ScorePrompts
from explorer.ui.access.tips import tip
from explorer.ui.files.caption import model_name
from explorer.ui.files.dropped_files import IgnoreFileDrops
from explorer.ui.kit import boxes, forms
from explorer.ui.kit.flow import Flow
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.look.theme import Theme, unit
from explorer.ui.panel.panel import Panel, View
from explorer.wording import exact_percent, ms_text

BEFORE_ANSWER = "=>"  # in a line, between a prompt and the answer to it, exactly as it follows
EXAMPLES = (
    f"The capital of France is{BEFORE_ANSWER} Paris",
    f"The capital of Italy is{BEFORE_ANSWER} Rome",
    "Once upon a time",
)
PROMPT, NEXT, SHARE, ANSWER, SURPRISAL, TIME = range(6)
_LONGEST = 300  # characters of a cell
_NAME = 16  # of a model's name in a head
_PROMPT_WIDTH = 170  # pixels at a zoom of 1, beside two models
_FIGURES = (
    "tokens", "next_id", "next_text", "probability", "answer_probability", "mean_surprisal_nats",
    "ms", "problem",
)  # fmt: skip


def read_lines(text: str) -> tuple[tuple[str, str], ...]:
    """(prompt, answer) of each line that holds something; "" where no answer is given.

    Both are taken as they are written: a space before the answer belongs to it.
    """
    found = []
    for line in text.split("\n"):
        prompt, parted, answer = line.rpartition(BEFORE_ANSWER)
        if line.strip():
            found.append((prompt, answer) if parted and prompt and answer else (line, ""))
    return tuple(found)


class PromptTablePanel(Panel):
    """Needs a model and nothing else; the run on screen stays."""

    ID = "prompts"
    BESIDE = "attention"
    TITLE = QT_TRANSLATE_NOOP("PromptTablePanel", "Prompts")
    TERM = "prompt"
    EXPLANATION = QT_TRANSLATE_NOOP(
        "PromptTablePanel", "Many prompts, run one after the other on the open model"
    )
    EMPTY = QT_TRANSLATE_NOOP(
        "PromptTablePanel",
        "Open a model to run a list of prompts here. A prompt of your own runs with Step (Space).",
    )
    NEEDS = ("measured", "card", "opened", "request", "status.activity", "status.experiment")

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self._shown: PromptTable | None = None
        self._kept: Measured[PromptTable] | None = None  # of the model of before
        self._now: Measured[PromptTable] | None = None
        self._pairs: tuple[RowPair, ...] = ()
        self.edit = QPlainTextEdit("\n".join(EXAMPLES))
        self.edit.setAccessibleName(self.tr("Prompts, one per line"))
        self.edit.setTabChangesFocus(True)
        self.edit.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        IgnoreFileDrops(self.edit)
        self.run_button = QPushButton(self.tr("Run"))
        self.run_button.setToolTip(
            self.tr("One pass per prompt, read as raw text or as a chat, as chosen for the prompt")
        )
        self.run_button.clicked.connect(self._run)
        self.stop_button = QPushButton(self.tr("Stop"))
        self.stop_button.clicked.connect(session.cancel)
        self.load_button = QPushButton(self.tr("From a file…"))
        self.load_button.setToolTip(
            self.tr("A text file with one prompt per line; {0} comes before an answer").format(
                BEFORE_ANSWER
            )
        )
        self.load_button.clicked.connect(self._ask_file)
        self.open_button = QPushButton(self.tr("Open row"))
        self.open_button.setToolTip(self.tr("Run this prompt in the window, with all panels"))
        self.open_button.clicked.connect(self._open_row)
        self.compare_button = QPushButton(self.tr("Compare models"))
        self.compare_button.setCheckable(True)
        self.compare_button.setToolTip(
            self.tr(
                "Keep these figures. Open another model and press Run: each row then shows both."
            )
        )
        self.compare_button.clicked.connect(self._keep)
        self.words = forms.words()
        self.table = forms.table(self.tr("Prompts and what the model makes of them"), TIME + 1)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self._lay_out()
        self.table.itemActivated.connect(lambda _: self._open_row())
        self.table.itemSelectionChanged.connect(self._on_selected)
        self.table.setSortingEnabled(True)
        self.table.sortItems(-1)
        buttons = Flow()
        for button in (
            self.run_button, self.stop_button, self.load_button, self.open_button,
            self.compare_button,
        ):  # fmt: skip
            buttons.addWidget(button)
        typed, found = QWidget(), QWidget()
        boxes.column(typed, (self.edit, 1), gap=4)
        boxes.column(found, self.words, (self.table, 1), gap=4)
        split = QSplitter(Qt.Orientation.Vertical)
        split.setChildrenCollapsible(False)
        split.addWidget(typed)
        split.addWidget(found)
        split.setStretchFactor(0, 1)
        split.setStretchFactor(1, 3)
        self.content.addLayout(buttons)
        self.content.addWidget(split, 1)

    def _lay_out(self) -> None:
        """Columns for one model, or two for each figure: the model of before, then that of now."""
        heads = self._heads()
        two = [(head, name) for head in heads[1:] for name in self._names()]
        self.table.setSortingEnabled(False)
        self.table.setColumnCount(1 + len(two) if self._kept else len(heads))
        if self._kept is not None:
            heads = [heads[0], *(f"{head}\n{elide(name, _NAME)}" for head, name in two)]
        self.table.setHorizontalHeaderLabels(heads)
        for column, (head, name) in enumerate(two if self._kept else (), start=1):
            cell = self.table.horizontalHeaderItem(column)
            assert cell is not None
            cell.setToolTip(tip(f"{head}, {name}"))
        header = self.table.horizontalHeader()
        if self._kept is None:
            header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
            header.setSectionResizeMode(PROMPT, QHeaderView.ResizeMode.Stretch)
        else:
            header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self.table.setSortingEnabled(True)

    def _fit_columns(self) -> None:
        """Two models' columns may be wider than the panel; Qt would measure a head as one line."""
        header = self.table.horizontalHeader()
        header.resizeSection(PROMPT, round(_PROMPT_WIDTH * unit(self)))
        for column in range(NEXT, self.table.columnCount()):
            cell = self.table.horizontalHeaderItem(column)
            lines = [] if cell is None else cell.text().split("\n")
            head = max(map(header.fontMetrics().horizontalAdvance, lines), default=0)
            room = max(head + round(14 * unit(self)), self.table.sizeHintForColumn(column))
            header.resizeSection(column, room)

    def _names(self) -> tuple[str, str]:
        """Of the models of before and of now; with the dtype if that is all that differs."""
        before = None if self._kept is None else self._kept.card
        now = None if self._now is None else self._now.card
        if self._now is self._kept:
            now = None
        names = ["–" if card is None else model_name(card) for card in (before, now)]
        if before is not None and now is not None and names[0] == names[1]:
            return f"{names[0]} {before.dtype}", f"{names[1]} {now.dtype}"
        return names[0], names[1]

    def _heads(self) -> list[str]:
        return [
            self.tr("prompt"),
            self.tr("next token"),
            self.tr("probability"),
            self.tr("answer"),
            self.tr("nats/token"),
            self.tr("time"),
        ]

    # -- showing

    def draw(self, new: State) -> None:
        ready = new.model_is_free and not new.other_model
        going = new.status.experiment is ScorePrompts
        self.run_button.setEnabled(ready)
        self.stop_button.setEnabled(going)
        found = new.measured_of(PromptTable)
        whole = found is not None and len(found.result.rows) == found.result.asked
        self.compare_button.setEnabled(self._kept is not None or (whole and not going))
        if found is not self._now:
            self._take(found)
        self._on_selected()
        if new.card is None and found is None:
            self.show_empty()
        else:
            self.show_content()

    def _sentence(self, state: State, going: bool) -> str:
        table = self._shown
        if table is None and self._kept is not None:
            return self.tr("Open another model, then press Run.")
        if table is None:
            return self.tr(
                "Each line is a prompt. What follows {0} is an answer to it, its space included."
            ).format(BEFORE_ANSWER)
        count, asked = len(table.rows), table.asked
        if count < asked:
            words = self.tr("{0} of {1} prompts so far") if going else self.tr("{0} of {1} prompts")
            return words.format(f"{count:,}", f"{asked:,}")
        chosen = self._selected()
        said = [] if chosen is None else [row.problem for row in chosen if row is not None]
        if any(said):
            return " ".join(dict.fromkeys(filter(None, said)))
        failed = sum(bool(row.problem) for row in table.rows)
        return (
            self.tr("{0} prompts, {1} with something to say: select a row to read it.").format(
                f"{count:,}", f"{failed:,}"
            )
            if failed
            else self.tr("{0} prompts. Nats/token: mean surprisal of the prompt.").format(
                f"{count:,}"
            )
        )

    def _take(self, found: Measured[PromptTable] | None) -> None:
        """Other figures of the model of now."""
        self._now = found
        self._shown = None if found is None or found is self._kept else found.result
        if self._kept is not None:
            self._lay_out()
        self._show_rows()

    def _keep(self, on: bool) -> None:
        """These figures are those of the model of before, or there is none."""
        self._kept = self._now if on else None
        self._shown = None if on or self._now is None else self._now.result
        self._pairs = ()
        self.table.setRowCount(0)
        self.table.sortItems(-1)  # a column of that number is another one now
        self._lay_out()
        self._show_rows()
        self._on_selected()

    def _show_rows(self) -> None:
        """Rows in the order that is chosen; the selected one stays the same, where it is there."""
        before, selected = self._pairs, self._selected_place()
        now = None if self._shown is None else self._shown.rows
        if self._kept is None:
            rows = pairs((), now or ())
        else:
            rows = pairs(self._kept.result.rows, now)
        self._pairs = rows
        same = 0  # rows that were there
        while same < min(len(before), len(rows)) and before[same] == rows[same]:
            same += 1
        with QSignalBlocker(self.table):
            self.table.setSortingEnabled(False)  # a row must not move while it is filled
            if not before or same < len(before):
                same = 0
                self.table.clearSelection()
                self.table.setCurrentCell(-1, -1)
                self.table.setRowCount(0)
            self.table.setRowCount(len(rows))
            for place in range(same, len(rows)):
                for column, cell in enumerate(self._cells(place, rows[place])):
                    self.table.setItem(place, column, cell)
            self.table.setSortingEnabled(True)
            if self._kept is not None:
                self._fit_columns()
            if same and selected is not None:
                self._select(selected)

    def _cells(self, place: int, pair: RowPair) -> list[QTableWidgetItem]:
        row = pair.either
        problem = next((one.problem for one in pair if one is not None and one.problem), "")
        first = _Cell(elide(printable(row.prompt), _LONGEST), place, tip(problem or row.prompt))
        first.setData(_PLACE, place)
        if self._kept is None:
            return [first, *self._figures(row)]
        both = zip(*(self._figures(one) for one in pair), strict=True)
        return [first, *(cell for cells in both for cell in cells)]

    def _figures(self, row: ScoredPrompt | None) -> list[QTableWidgetItem]:
        """The cells of one model, from the next token on."""
        if row is None:
            return [_Cell("", None) for _ in range(NEXT, TIME + 1)]
        said = bool(row.tokens)  # else it was not run
        next_token = tokens.visible(row.raw) if said else self.tr("not run")
        cells: list[QTableWidgetItem] = [
            _Cell(next_token, next_token, tip(row.problem)),
            _Cell(
                exact_percent(row.probability) if said else "", row.probability if said else None
            ),
            _Cell("" if row.answer is None else exact_percent(row.answer), row.answer),
            _Cell("" if row.mean_nats is None else f"{row.mean_nats:.2f}", row.mean_nats),
            _Cell(ms_text(row.ms) if said else "", row.ms if said else None),
        ]
        for cell in cells[1:]:
            cell.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        return cells

    # -- wishes

    def _run(self) -> None:
        lines = read_lines(self.edit.toPlainText())
        if not 1 <= len(lines) <= MOST_PROMPTS:
            self.session.report(
                self.tr("There are {0} prompts. Type 1 to {1}, one per line.").format(
                    f"{len(lines):,}", f"{MOST_PROMPTS:,}"
                )
            )
            return
        self.session.measure(ScorePrompts, prompts=lines)

    def _ask_file(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, self.tr("Prompts from a file"))
        if name:
            self.take_file(name)

    def take_file(self, name: str) -> None:
        """The lines of a file in place of those that are there; one sentence if it is no text."""
        try:
            text = disk.read_text(name)
        except disk.TextError as error:
            self.session.report(str(error))
            return
        self.edit.setPlainText(text.replace("\r\n", "\n").removesuffix("\n"))

    def _on_selected(self) -> None:
        self.open_button.setEnabled(self._selected() is not None)
        state = self.session.state
        self.words.setText(self._sentence(state, state.status.experiment is ScorePrompts))

    def _selected_place(self) -> int | None:
        """Which prompt of the list the selected row is of."""
        row = self.table.currentRow()
        cell = self.table.item(row, PROMPT) if row >= 0 else None
        return None if cell is None else int(cell.data(_PLACE))

    def _select(self, place: int) -> None:
        for row in range(self.table.rowCount()):
            cell = self.table.item(row, PROMPT)
            if cell is not None and cell.data(_PLACE) == place:
                self.table.setCurrentCell(row, PROMPT)

    def _selected(self) -> RowPair | None:
        place = self._selected_place()
        return None if place is None or place >= len(self._pairs) else self._pairs[place]

    def _open_row(self) -> None:
        pair = self._selected()
        if pair is not None:
            self.session.set_prompt(pair.either.prompt)
            self.session.step()

    # -- export

    def views(self) -> Mapping[str, View]:
        if not self._pairs:
            return {}
        return {self.tr("Prompts"): View(self.table, self._rows)}

    def _rows(self) -> Iterator[Sequence[object]]:
        """In the order of the list; with two models, the figures of both by their names."""
        if self._kept is None:
            yield "prompt", *_FIGURES
        else:
            names = [f"_{name}_{place + 1}" for place, name in enumerate(self._names())]
            yield "prompt", *(figure + name for name in names for figure in _FIGURES)
        for pair in self._pairs:
            shown = (pair.now,) if self._kept is None else pair
            yield pair.either.prompt, *(figure for one in shown for figure in _figures(one))


def _figures(one: ScoredPrompt | None) -> Sequence[object]:
    if one is None:
        return ("",) * len(_FIGURES)
    text = one.raw.decode("utf-8", "replace")
    return (one.tokens, one.id, text, one.probability, one.answer, one.mean_nats, one.ms,
            one.problem)  # fmt: skip


_PLACE = Qt.ItemDataRole.UserRole


class _Cell(QTableWidgetItem):
    """Sorted by its value, not by how it is written; what is not known comes last."""

    def __init__(self, text: str, value: str | float | None, said: str = "") -> None:
        super().__init__(text)
        self._value = value
        self.setToolTip(said)

    def __lt__(self, other: QTableWidgetItem) -> bool:
        mine, theirs = self._value, getattr(other, "_value", None)
        if mine is None or theirs is None:
            header = self.tableWidget().horizontalHeader()
            falling = header.sortIndicatorOrder() == Qt.SortOrder.DescendingOrder
            return mine is not theirs and (mine is None) == falling
        return bool(mine < theirs)
