"""Words a third longer, and windows that run from right to left: all is there, nothing overlaps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QRectF, QSize, Qt, QTranslator
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QWidget

from explorer.ui.canvases.charts.axis import Axis
from explorer.ui.canvases.charts.column_chart import ColumnChart, Columns
from explorer.ui.canvases.charts.legend import Legend
from explorer.ui.canvases.charts.marks import LegendEntry
from explorer.ui.canvases.tokens.token_bars import BarRow, TokenBars
from explorer.ui.look.apply_theme import apply
from explorer.ui.look.theme import LIGHT
from explorer.wording import percent
from tests.ui.painted import pixels
from tests.ui.stage import WindowStage
from tests.ui.waiting import show
from tests.ui.window.test_small_screens import cut_off, overlapping


class Longer(QTranslator):
    """A language in which everything takes a third more letters."""

    def isEmpty(self) -> bool:
        return False

    def translate(self, _context: str, text: str, _other: str = "", _n: int = -1) -> str:
        return text + "\u00e9" * round(len(text) / 3) if text.strip() else text


@pytest.fixture
def longer(qapp: QApplication, tmp_path: Path) -> Iterator[WindowStage]:
    language = Longer()
    qapp.installTranslator(language)
    stage = WindowStage(qapp, tmp_path)
    yield stage
    stage.close()
    qapp.removeTranslator(language)


@pytest.fixture
def leftward(qapp: QApplication, tmp_path: Path) -> Iterator[WindowStage]:
    qapp.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    stage = WindowStage(qapp, tmp_path)
    yield stage
    stage.close()
    qapp.setLayoutDirection(Qt.LayoutDirection.LeftToRight)


def squeezed(root: QWidget) -> list[str]:
    """Labels and buttons that show less than their words, and have no tip that tells the rest."""
    return [
        widget.text()
        for widget in root.findChildren(QWidget)
        if isinstance(widget, (QLabel, QAbstractButton))
        and widget.text()
        and widget.isVisible()
        and widget.text()
        and widget.width() < widget.minimumSizeHint().width() - 1
        and not widget.toolTip()
    ]


@pytest.mark.parametrize("size", [(1280, 720), (800, 600)])
def test_longer_words_are_all_there(longer: WindowStage, size: tuple[int, int]) -> None:
    window = longer.window
    longer.resize(*size)
    longer.loaded().ran(3)
    for dock in window.docks.docks:
        window.docks.bring_up(dock.place.id)
        longer.paint()
        assert cut_off(window) == [], dock.place.id
        assert overlapping(window) == [], dock.place.id
        assert squeezed(window) == [], dock.place.id
    assert "\u00e9" in window.prompt.findChild(QLabel).text()


def test_the_name_of_the_map_is_shown_in_every_language(longer: WindowStage) -> None:
    longer.resize(1280, 720)
    longer.loaded().ran(3)
    panel = longer.window.docks.bring_up("attention")
    longer.until_settled()
    longer.paint()
    name = panel.tools.name  # type: ignore[attr-defined]
    assert name.text()
    assert name.toolTip() == ""  # which it has while it is cut


@pytest.mark.parametrize("size", [(1280, 720), (800, 600)])
def test_nothing_overlaps_from_right_to_left(leftward: WindowStage, size: tuple[int, int]) -> None:
    window = leftward.window
    leftward.resize(*size)
    leftward.loaded().ran(3)
    leftward.paint()
    assert cut_off(window) == []
    assert overlapping(window) == []
    assert window.prompt.mapTo(window, window.prompt.rect().topLeft()).x() > size[0] / 2


def chart_of(kind: str) -> QWidget:
    if kind == "bars":
        bars = TokenBars(LIGHT, ("model", "after sampling"))
        rows = [
            BarRow(i, word, p, percent(p), p, percent(p))
            for i, (word, p) in enumerate((("at", 0.9), ("the", 0.08), ("a", 0.02)))
        ]
        bars.set_rows(rows)
        return bars
    if kind == "columns":
        axes = Axis("step", whole=True), Axis("time", "{:.0f} ms".format)
        columns = ColumnChart(LIGHT, *axes, str)
        columns.set_columns(Columns(np.array([8.0, 1.0, 2.0]), ("prefill", "decode")))
        return columns
    legend = Legend(LIGHT)
    legend.set_entries([LegendEntry("no cache", "recompute"), LegendEntry("cache", "decode")])
    return legend


@pytest.mark.parametrize("kind", ["bars", "columns", "legend"])
def test_a_chart_is_the_same_picture_in_both_directions(qapp: QApplication, kind: str) -> None:
    """Its axis, its bars and its figures run together."""
    apply(qapp, LIGHT)
    seen = []
    for direction in (Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft):
        qapp.setLayoutDirection(direction)
        chart = chart_of(kind)
        chart.resize(QSize(420, 140))
        show(chart)
        seen.append(pixels(chart))
        chart.close()
    qapp.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
    assert (seen[0] == seen[1]).all()


@pytest.mark.parametrize("width", range(120, 700, 20))
def test_figures_beside_bars_never_lie_on_labels_or_bars(qapp: QApplication, width: int) -> None:
    apply(qapp, LIGHT)
    bars = chart_of("bars")
    bars.resize(max(width, bars.minimumSizeHint().width()), 140)
    assert isinstance(bars, TokenBars)
    area, (first, second) = bars._columns(bars.fontMetrics())
    figures = bars.fontMetrics().horizontalAdvance("after sampling")
    assert area.right() <= first - bars.fontMetrics().horizontalAdvance("90.0 %")
    assert second - figures >= first
    assert QRectF(bars.rect()).contains(QRectF(area.left(), 20, area.width(), 1))
