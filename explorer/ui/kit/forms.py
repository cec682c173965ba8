"""Rows of labelled controls, and plain tables under them."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QLabel,
    QLayout,
    QSpinBox,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from explorer.figures.text.characters import elide
from explorer.figures.text.tokens import MOST_LETTERS
from explorer.ui.kit.boxes import column, line
from explorer.ui.kit.flow import Flow
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.wheel_guard import SpinBox


def spin(name: str, least: int, most: int, value: int) -> QSpinBox:
    """A number, its name also its tool tip."""
    spin = SpinBox()
    spin.setRange(least, most)
    spin.setValue(value)
    spin.setAccessibleName(name)
    spin.setToolTip(name)
    return spin


def row(*parts: tuple[str | QLabel, QWidget | None]) -> QLayout:
    """Controls in a line, each after its label; in several lines where one is too short."""
    row = Flow()
    row.setSpacing(5)
    for text, widget in parts:
        if text:
            label = QLabel(text) if isinstance(text, str) else text
            row.addWidget(label)
            if widget is not None:
                label.setBuddy(widget)
        if widget is not None:
            row.addWidget(widget)
    return row


def together(*parts: QWidget) -> QWidget:
    """Controls that stay in one line."""
    whole = QWidget()
    line(whole, *parts, gap=4)
    return whole


def keep_place(widget: QWidget) -> None:
    """Hidden or not, nothing beside it moves."""
    policy = widget.sizePolicy()
    policy.setRetainSizeWhenHidden(True)
    widget.setSizePolicy(policy)


def words() -> QLabel:
    """A label for sentences."""
    return SentenceLabel()


def page(row: QLayout, *parts: QWidget) -> QWidget:
    """A row of controls over what they give; labels as high as they need."""
    page = QWidget()
    below = [(part, 0 if isinstance(part, QLabel) else 1) for part in parts]
    column(page, row, *below, gap=4, edges=(6, 4, 6, 2)).addStretch(0)
    return page


def table(name: str, columns: int) -> QTableWidget:
    """A table to read; the last column but one takes the room that is left."""
    table = QTableWidget(0, columns)
    table.setAccessibleName(name)
    table.verticalHeader().hide()
    table.verticalHeader().setDefaultSectionSize(24)
    table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    header = table.horizontalHeader()
    header.setHighlightSections(False)
    header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    header.setSectionResizeMode(columns - 2, QHeaderView.ResizeMode.Stretch)
    return table


def fill(table: QTableWidget, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Other rows, under these heads."""
    table.setHorizontalHeaderLabels(list(heads))
    table.setRowCount(len(rows))
    for i, row in enumerate(rows):
        for j, text in enumerate(row):
            table.setItem(i, j, QTableWidgetItem(elide(text, MOST_LETTERS)))
