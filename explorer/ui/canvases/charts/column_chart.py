"""Columns over an index (layers, steps), stacked in parts; a click picks one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from PySide6.QtWidgets import QWidget

from explorer.ui.canvases.charts.axis import Axis
from explorer.ui.canvases.charts.chart import Chart
from explorer.ui.canvases.charts.marks import (
    Band,
    Bars,
    Figure,
    LegendEntry,
    Line,
    Look,
    Note,
    Paint,
)
from explorer.ui.look.theme import Theme

_ABOVE = 1.06  # the axis goes on beyond the highest column
_NOTED = 3  # columns beyond the axis that are named
_ENDLESS = 2.0  # how high an infinite column is drawn, in heights of the axis


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One part of every column, stacked on those before it."""

    name: str
    heights: np.ndarray  # (N,) float64
    colour: str = ""  # theme attribute; "" = the colour of the column's kind
    strength: float = 1.0  # 0..1: how much of the colour, the card's own being the rest


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """What is drawn.  `kinds` picks a colour (theme attribute) and a shape for each column."""

    values: np.ndarray  # (N,) float64; inf: beyond every axis
    kinds: Sequence[str] = ()  # (N,) theme colour names; shorter = the first for all
    parts: Sequence[Part] = ()  # what the columns are made of, from the bottom up; empty = one
    hollow: frozenset[int] = frozenset()  # drawn as outlines: not to be compared with the others
    cap: float | None = None  # the axis ends there; higher columns say how high they are
    level: float | None = None  # a line across, in the colour of computed figures
    level_words: str = ""  # what that line is
    marks: np.ndarray | None = None  # (N,) float64, a dash across each column; NaN = none
    marks_name: str = ""
    first: int = 0  # number of the first column
    places: np.ndarray | None = None  # (N,) float64 where the columns stand; None = one by one
    named: Mapping[float, str] = field(default_factory=dict)  # numbers that are not numbered
    legend: Sequence[LegendEntry] = ()

    @property
    def x(self) -> np.ndarray:
        """(N,) float64 where the columns stand."""
        if self.places is not None:
            return self.places
        return np.arange(self.first, self.first + len(self.values), dtype=np.float64)


class ColumnChart(Chart):
    """Columns with ticks on both axes; thinner than a pixel they keep their maxima."""

    def __init__(
        self, theme: Theme, x: Axis, y: Axis, tip: Callable[[int], str],
        parent: QWidget | None = None,
    ) -> None:  # fmt: skip
        """`tip` words one column, counted from 0."""
        super().__init__(theme, tip, parent)
        self._x, self._y = x, y

    def set_axes(self, x: Axis | None = None, y: Axis | None = None) -> None:
        """Other axes for the columns to come."""
        self._x, self._y = x or self._x, y or self._y

    def set_columns(
        self, data: Columns, selected: int | None = None, x: Axis | None = None
    ) -> None:
        """Draw other columns; `selected` is marked; `x`: along another axis from now on."""
        self._x = x or self._x
        x, y, some = self._x, self._y, len(data.values) > 0
        self.show_made(lambda: _figure(data, selected, x, y) if some else None)


def _figure(data: Columns, selected: int | None, along: Axis, up: Axis) -> Figure:
    x, count = data.x, len(data.values)
    room = 1.0 if data.places is None or count < 2 else float(np.diff(x).min())
    if data.named:
        numbered = [place for place in x.tolist() if place not in data.named]
        along = _with_names(along, data.named, max(numbered, default=0.0))
    ends = (float(x[0]) - room / 2, float(x[-1]) + room / 2)
    if data.places is not None:
        ends = (0.0, ends[1])
    marked = None
    if selected is not None and 0 <= selected < count:
        marked = (float(x[selected]) - room / 2, float(x[selected]) + room / 2)
    top = _top(data, float(data.values[~np.isposinf(data.values)].max(initial=0.0)))
    notes = list(_notes(data, x, top, ends, up))
    data = _finite(data, top * _ENDLESS)
    return Figure(
        x=along,
        y=up,
        places=x,
        x_range=ends,
        y_range=(0.0, top * _ABOVE),
        bars=list(_bars(data, x, room)),
        lines=list(_lines(data, x, room, ends)),
        bands=() if marked is None else (Band(*marked, "band"),),
        notes=notes,
        legend=data.legend,
        marked=marked,
        top=float(data.values.max(initial=0.0)) * _ABOVE,
    )


def _finite(data: Columns, height: float) -> Columns:
    """The same with infinite columns as high as can be drawn."""
    if not np.isposinf(data.values).any():
        return data
    values = np.where(np.isposinf(data.values), height, data.values)
    parts = [
        replace(part, heights=np.where(np.isposinf(part.heights), height, part.heights))
        for part in data.parts
    ]
    return replace(data, values=values, parts=parts)


def _with_names(axis: Axis, named: Mapping[float, str], last: float) -> Axis:
    return replace(axis, named=named, last=last)


def _top(data: Columns, highest: float) -> float:
    """How high the axis goes at first."""
    top = highest if data.cap is None else min(highest, data.cap)
    if data.marks is not None:
        top = max(top, float(np.nan_to_num(data.marks).max(initial=0.0)))
    return max(top, data.level or 0.0) or 1.0


def _bars(data: Columns, x: np.ndarray, room: float) -> list[Bars]:
    """One series for each colour: parts of each kind of column."""
    kinds = list(data.kinds) if len(data.kinds) == len(x) else [_first_kind(data)] * len(x)
    places: dict[str, list[int]] = {}
    for i, kind in enumerate(kinds):
        if i not in data.hollow:
            places.setdefault(kind, []).append(i)
    chosen = [(kind, np.array(where)) for kind, where in places.items()]
    found = []
    base = np.zeros(len(x))
    for part in data.parts or (Part("", data.values),):
        top = base + part.heights
        for kind, which in chosen:
            look: Look = "hatched" if kind == "recompute" and not part.colour else "filled"
            paint = Paint(part.colour or kind, part.strength)
            found.append(Bars(part.name, x[which], base[which], top[which], paint, room, look))
        base = top
    for i in sorted(data.hollow):
        if i < len(x):
            one, paint = slice(i, i + 1), Paint(kinds[i])
            values = np.zeros(1), data.values[one]
            found.append(Bars("", x[one], *values, paint, room, "outline"))
    return found


def _first_kind(data: Columns) -> str:
    return data.kinds[0] if data.kinds else "decode"


def _lines(data: Columns, x: np.ndarray, room: float, ends: tuple[float, float]) -> list[Line]:
    """Dashes across the columns, and the level."""
    found = []
    if data.marks is not None:
        marks, x = data.marks[: len(x)], x[: len(data.marks)]  # a damaged file may hold fewer
        known = ~np.isnan(marks)
        edges = np.column_stack([x - room / 2, x + room / 2])[known].ravel()
        heights = np.repeat(marks[known], 2)
        found.append(Line(data.marks_name, edges, heights, Paint("formula"), 2.0, pairs=True))
    if data.level is not None:
        across, height = np.array(ends), np.full(2, data.level)
        found.append(Line(data.level_words, across, height, Paint("formula"), 2.0, dashed=True))
    return found


def _notes(
    data: Columns, x: np.ndarray, top: float, ends: tuple[float, float], up: Axis
) -> list[Note]:
    """The level's words, and how high the first columns are that go beyond the axis."""
    found = []
    beyond = np.isposinf(data.values) if data.cap is None else data.values > data.cap
    for i in np.flatnonzero(beyond)[:_NOTED].tolist():
        words = f"↑ {up.words(float(data.values[i]))}"
        found.append(Note(float(x[i]), top * _ABOVE, words, "text", below=True))
    if data.level_words:
        height = 0.0 if data.level is None else data.level
        found.append(Note(ends[1], height, data.level_words, "formula", left=True))
    return found
