"""Branches: every future that was tried, as one tree; two of them compared token by token."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QInputDialog,
    QLabel,
    QPushButton,
    QScrollArea,
    QSplitter,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from explorer.figures.prediction import branches as figures
from explorer.figures.prediction.branches import BranchPair, BranchRow, Cost
from explorer.figures.text import sentences, tokens
from explorer.session.branches import LIMIT_BYTES, Branch
from explorer.session.session import Session
from explorer.session.state import State
from explorer.session.undo_history import LIMIT_BYTES as UNDO_BYTES
from explorer.ui.canvases.tokens.branch_tree import BranchTree, TreeNode
from explorer.ui.kit import boxes
from explorer.ui.kit.elided import ElidedLabel
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.kit.wheel_guard import ComboBox
from explorer.ui.look.theme import Theme
from explorer.ui.panel.head_menu import patch_menu
from explorer.ui.panel.panel import Panel, View
from explorer.wording import exact_percent, information, short_bytes, unit

_MOST_ROWS = 500  # of the comparison


class BranchesPanel(Panel):
    """Going back and choosing otherwise begins a branch; nothing that was run is lost."""

    ID = "branches"
    BESIDE = "attention"
    TITLE = QT_TRANSLATE_NOOP("BranchesPanel", "Branches")
    TERM = "branch"
    EXPLANATION = QT_TRANSLATE_NOOP("BranchesPanel", "All continuations tried from this prompt")
    EMPTY = QT_TRANSLATE_NOOP(
        "BranchesPanel",
        "Press Step (Space) a few times, go back (←) and force another token. Both "
        "continuations appear here.",
    )
    NEEDS = (*Panel.NEEDS, "branches", "branch_names", "forgotten", "undo_bytes")

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self._branches: tuple[Branch, ...] = ()
        self._rows: tuple[BranchRow, ...] = ()
        self._pair: BranchPair | None = None
        self.tree = BranchTree(theme)
        self.tree.setAccessibleName(self.tr("Tree of branches"))
        self.tree.picked.connect(self._show_node)
        self._area = QScrollArea()
        self._area.setWidget(self.tree)
        self.tree.setAutoFillBackground(False)  # the card shows through
        self._area.setFrameShape(QScrollArea.Shape.NoFrame)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.tree.moved.connect(self._scroll_to)
        self._memory = ElidedLabel(look="small")
        split = QSplitter(Qt.Orientation.Vertical)
        split.addWidget(self._area)
        split.addWidget(self._build_comparison())
        split.setChildrenCollapsible(False)
        split.setSizes([150, 200])
        self.content.setSpacing(3)
        self.content.addLayout(self._build_buttons())
        self.content.addWidget(split, 1)
        self.content.addWidget(self._memory)

    def _build_buttons(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(4)
        self._buttons: list[QPushButton] = []
        for text, tip, act in (
            (
                self.tr("Cut here"),
                self.tr("Remove the tokens after the selected one. Undo brings them back."),
                self.session.cut,
            ),
            (self.tr("Rename…"), self.tr("Rename this branch"), self._rename),
            (
                self.tr("Delete the other branch"),
                self.tr("Delete the branch that this one is compared with"),
                self._forget,
            ),
        ):  # fmt: skip
            button = QPushButton(text)
            self._buttons.append(button)
            button.setToolTip(tip)
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            button.clicked.connect(act)
            row.addWidget(button)
        row.addStretch(1)
        return row

    def _build_comparison(self) -> QWidget:
        self._other = ComboBox()
        self._other.setAccessibleName(self.tr("Compare this branch with"))
        self._other.currentIndexChanged.connect(lambda _: self._compare())
        self._summary = SentenceLabel(look="small")
        self._table = QTableWidget(0, 5)
        self._table.verticalHeader().hide()
        self._table.verticalHeader().setDefaultSectionSize(24)
        self._table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self._table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self._table.setAccessibleName(self.tr("Two branches after their fork"))
        header = self._table.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.patch = QPushButton(self.tr("Patch from it…"))
        self.patch.setToolTip(
            self.tr("Put the output of a head, an MLP or the residual stream of that branch here")
        )
        self.patch.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.patch.clicked.connect(self._show_patches)
        top = boxes.line(None, QLabel(self.tr("Compare with")), (self._other, 1), self.patch, gap=4)
        self._comparison = QWidget()
        boxes.column(
            self._comparison, top, self._summary, (self._table, 1), edges=(0, 2, 0, 0), gap=3
        )
        return self._comparison

    # -- showing

    def draw(self, new: State) -> None:
        if new.trace is None or not new.trace.steps:
            self._branches = ()
            self.show_empty()
            return
        before, self._branches = self._branches, new.tree
        if [b.trace for b in before] != [b.trace for b in self._branches] or not self._rows:
            self._rows = figures.rows([(b.number, b.trace) for b in self._branches])
        self._buttons[0].setEnabled(new.looks_back)
        self._show_tree(new)
        self._show_memory(new)
        self._offer_others(new)
        self._compare()
        self.show_content()

    def views(self) -> Mapping[str, View]:
        views = {self.tr("Tree"): View(self.tree, self._tree_table)}
        if self._pair is not None:
            views[self.tr("Comparison")] = View(self._table, self._pair_table)
        return views

    def _show_tree(self, state: State) -> None:
        assert state.trace is not None
        names = {b.number: b.name for b in self._branches}
        row_of = {row.number: i for i, row in enumerate(self._rows)}
        current = row_of.get(state.branches.current or -1)
        path = [] if current is None else self._path(current, len(state.trace.steps))
        index = state.step_index
        shown = next((node for node in path if node[1] == index), None)
        self.tree.set_tree(self._rows, [names[row.number] for row in self._rows], path, shown)
        if shown is not None:
            self._scroll_to(self.tree.rect_of(TreeNode(*shown)))

    def _path(self, row: int, steps: int) -> list[tuple[int, int]]:
        """The (row, step) nodes that a branch is drawn on, from the prompt on."""
        found: list[tuple[int, int]] = []
        at: int | None = row
        end = steps
        while at is not None:
            found += [(at, step) for step in range(self._rows[at].fork, end)]
            end = min(end, self._rows[at].fork)
            at = self._rows[at].parent
        return sorted(found, key=lambda node: node[1])

    def _show_memory(self, state: State) -> None:
        kept = state.branches
        gone = [branch for branch in kept.all if branch.number in state.forgotten]
        count = len(kept.all) - len(gone)
        many = self.tr("1 branch") if count == 1 else self.tr("{0} branches").format(count)
        held, most = short_bytes(kept.bytes), short_bytes(LIMIT_BYTES)
        parts = [self.tr("{0}, {1} of memory (limit {2})").format(many, held, most)]
        elsewhere = count - len(self._branches)
        if elsewhere:
            parts.append(self.tr("{0} from other prompts or settings").format(elsewhere))
        if gone:
            parts.append(self.tr("{0} deleted (Undo restores)").format(len(gone)))
        if state.undo_bytes:
            undo = self.tr("undo: {0} (limit {1})")
            parts.append(undo.format(short_bytes(state.undo_bytes), short_bytes(UNDO_BYTES)))
        if kept.let_go:
            dropped = (
                self.tr("1 older branch deleted to save memory")
                if kept.let_go == 1
                else self.tr("{0} older branches deleted to save memory")
            )
            parts.append(dropped.format(kept.let_go))
        self._memory.setText(" · ".join(parts))

    def _offer_others(self, state: State) -> None:
        others = [b for b in self._branches if b.number != state.branches.current]
        wanted = [(sentences.name(b.name), b.number) for b in others]
        box = self._other
        if wanted != [(box.itemText(i), box.itemData(i)) for i in range(box.count())]:
            chosen = box.currentData()
            blocked = box.blockSignals(True)
            box.clear()
            for name, number in wanted:
                box.addItem(name, number)
            box.setCurrentIndex(max(box.findData(chosen), 0) if wanted else -1)
            box.blockSignals(blocked)
        self._comparison.setVisible(bool(others))

    def _branch(self, number: int | None) -> Branch | None:
        """A branch of this tree, by the name it goes by."""
        return next((b for b in self._branches if b.number == number), None)

    def _compare(self) -> None:
        state = self.session.state
        mine = self._branch(state.branches.current)
        other = self._branch(self._other.currentData())
        if mine is None or other is None:
            self._pair = None
            return
        pair = figures.pair(mine.trace, other.trace)
        self._pair = pair
        in_unit, (first, second) = unit(), (sentences.name(b.name, 14) for b in (mine, other))
        self._table.setHorizontalHeaderLabels(
            [self.tr("after the fork"), first, in_unit, second, in_unit]
        )
        self._summary.setText(
            self.tr("Shared: {0}. After that, {1}: {2}, {3}; {4}: {5}, {6}.").format(
                self._many(pair.shared), sentences.name(mine.name), self._many(len(pair.first)),
                _sum_words(pair.first), sentences.name(other.name), self._many(len(pair.second)),
                _sum_words(pair.second),
            )
        )  # fmt: skip
        self._fill(pair)

    def _show_patches(self) -> None:
        """What can be taken from the branch that this one is compared with."""
        self.patches = patch_menu(self.session, self, self._other.currentData())
        self.patches.popup(self.patch.mapToGlobal(QPoint(0, self.patch.height())))

    def _many(self, count: int) -> str:
        return self.tr("1 token") if count == 1 else self.tr("{0} tokens").format(count)

    def _fill(self, pair: BranchPair) -> None:
        count = min(max(len(pair.first), len(pair.second)), _MOST_ROWS)
        self._table.setRowCount(count)
        for i in range(count):
            cells = [f"+{i + 1}", *_cells(pair.first, i), *_cells(pair.second, i)]
            for column, text in enumerate(cells):
                item = self._table.item(i, column)
                if item is None:
                    item = QTableWidgetItem()
                    self._table.setItem(i, column, item)
                item.setText(text)

    def _scroll_to(self, rect: QRectF) -> None:
        middle = rect.center()
        self._area.ensureVisible(round(middle.x()), round(middle.y()), 90, 30)

    def _tree_table(self) -> Iterator[Sequence[object]]:
        yield "branch", "step", "token_id", "text", "surprisal_nats"
        for branch in self._branches:
            for step, cost in enumerate(figures.costs(branch.trace)):
                text = tokens.written(cost.token)
                yield branch.name, step, cost.token.id, text, cost.nats

    def _pair_table(self) -> Iterator[Sequence[object]]:
        assert self._pair is not None
        yield "after_fork", "text", "nats", "other_text", "other_nats"
        for i in range(max(len(self._pair.first), len(self._pair.second))):
            yield (i + 1, *_plain(self._pair.first, i), *_plain(self._pair.second, i))

    # -- requests

    def _show_node(self, number: int, step: int) -> None:
        self.session.show_branch(number, select=step)

    def _rename(self) -> None:
        branch = self._branch(self.session.state.branches.current)
        if branch is None:
            return
        name, agreed = QInputDialog.getText(
            self, self.tr("Rename branch"), self.tr("Name"), text=branch.name
        )
        if agreed:
            self.session.rename_branch(branch.number, name)

    def _forget(self) -> None:
        number = self._other.currentData()
        if number is not None:
            self.session.forget_branch(number)


def _cells(costs: Sequence[Cost], i: int) -> tuple[str, str]:
    if i >= len(costs):
        return "", ""
    return tokens.written(costs[i].token), information(costs[i].nats).partition(" ")[0]


def _plain(costs: Sequence[Cost], i: int) -> tuple[str, str]:
    """The same for a file, in the unit that its columns name."""
    if i >= len(costs):
        return "", ""
    nats = costs[i].nats
    return tokens.written(costs[i].token), "∞" if math.isinf(nats) else f"{nats:.3g}"


def _sum_words(costs: Sequence[Cost]) -> str:
    nats = sum(cost.nats for cost in costs)
    return f"{information(nats, '.4g')} (p = {exact_percent(math.exp(-nats))})"
