"""The prefix plot: a logarithmic axis on which an exact 0 still has its place."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer.ui.canvases.charts.prefix_plot import PrefixPlot, Series
from explorer.ui.look.theme import LIGHT, apply


def _plot(qapp: QApplication, *values: list[float]) -> PrefixPlot:
    apply(qapp, LIGHT)
    plot = PrefixPlot(LIGHT, lambda column: f"column {column}")
    plot.resize(260, 140)
    plot.set_series([Series(f"s{i}", "raw", v) for i, v in enumerate(values)])
    return plot


def test_ten_times_more_is_one_decade_higher(qapp: QApplication) -> None:
    plot = _plot(qapp, [0.01, 0.1, 1.0], [0.0, 0.0, 0.0])
    area = plot._plot()
    low, middle, high = (plot._y(area, v) for v in (0.01, 0.1, 1.0))
    assert abs((low - middle) - (middle - high)) < 1e-6
    assert plot._y(area, 0.0) == area.bottom() > low
    assert plot._decades() == (-2, 0)


def test_nothing_but_zeros_and_one_layer_can_be_drawn(qapp: QApplication) -> None:
    for values in ([0.0, 0.0], [3.0, 3.0], []):
        assert not _plot(qapp, values).grab().isNull()


def test_keys_walk_over_the_columns(qapp: QApplication) -> None:
    plot = _plot(qapp, [0.1, 0.2, 0.3])
    for _ in range(5):
        QTest.keyClick(plot, Qt.Key.Key_Right)
    assert plot._over == 2
    assert plot.toolTip() == "column 2"
    QTest.keyClick(plot, Qt.Key.Key_Left)
    assert plot._over == 1
