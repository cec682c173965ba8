"""Columns and lines of widgets, each in one call."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLayout, QVBoxLayout, QWidget

Part = QWidget | QLayout | tuple[QWidget | QLayout, int]  # with its stretch, if it has any
Box = TypeVar("Box", bound=QBoxLayout)
Edges = tuple[int, int, int, int]
_NONE = (0, 0, 0, 0)


def column(
    on: QWidget | None, *parts: Part, gap: int | None = None, edges: Edges = _NONE
) -> QVBoxLayout:
    """Parts over one another, as the layout of `on` or to be put into another layout."""
    return _filled(QVBoxLayout(), on, parts, gap, edges)


def line(
    on: QWidget | None, *parts: Part, gap: int | None = None, edges: Edges = _NONE
) -> QHBoxLayout:
    """The same beside one another."""
    return _filled(QHBoxLayout(), on, parts, gap, edges)


def _filled(
    box: Box, on: QWidget | None, parts: tuple[Part, ...], gap: int | None, edges: Edges
) -> Box:
    if on is not None:
        on.setLayout(box)
    box.setContentsMargins(*edges)
    if gap is not None:
        box.setSpacing(gap)
    for part in parts:
        what, stretch = part if isinstance(part, tuple) else (part, 0)
        if isinstance(what, QLayout):
            box.addLayout(what, stretch)
        else:
            box.addWidget(what, stretch)
    return box
