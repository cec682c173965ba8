"""The charts: what is drawn is what was given, and reading, zooming and exporting it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QImage, QWheelEvent
from PySide6.QtTest import QSignalSpy, QTest
from PySide6.QtWidgets import QApplication, QToolButton

from explorer.ui.access.accessible import line_of
from explorer.ui.canvases.charts.axis import Axis, round_values
from explorer.ui.canvases.charts.chart import Chart, ChartReading
from explorer.ui.canvases.charts.column_chart import ColumnChart, Columns, Part
from explorer.ui.canvases.charts.marks import Figure, LegendEntry, Line, Paint, legend_of
from explorer.ui.files import export
from explorer.ui.look.apply_theme import apply
from explorer.ui.look.theme import LIGHT, THEMES, Theme
from tests.ui import pointer
from tests.ui.waiting import settle, show

EVERY = pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)


@pytest.fixture(autouse=True)
def light(qapp: QApplication) -> Iterator[None]:
    apply(qapp, LIGHT)
    yield
    apply(qapp, LIGHT)


def read(chart: Chart) -> ChartReading:
    found = chart.drawn
    assert found is not None
    return found


def column_chart(
    data: Columns, size: tuple[int, int] = (260, 120), theme: Theme = LIGHT,
    selected: int | None = None,
) -> ColumnChart:  # fmt: skip
    """One that is on screen."""
    axes = Axis("step", whole=True), Axis("time", "{:g} ms".format)
    chart = ColumnChart(theme, *axes, "column {}".format)
    chart.resize(*size)
    chart.set_columns(data, selected)
    show(chart)
    return chart


def line_chart(*values: list[float], x: Axis | None = None, y: Axis | None = None) -> Chart:
    chart = Chart(LIGHT, "place {}".format)
    chart.resize(300, 160)
    chart.show_figure(line_figure(*values, x=x, y=y))
    show(chart)
    return chart


def line_figure(*values: list[float], x: Axis | None = None, y: Axis | None = None) -> Figure:
    places = np.arange(len(values[0]), dtype=np.float64)
    lines = [
        Line(f"s{i}", places, np.array(one), Paint("raw"), dots="round")
        for i, one in enumerate(values)
    ]
    return Figure(
        x or Axis("layer", whole=True), y or Axis("change", switch=True, least=0.01), places,
        (-0.5, len(places) - 0.5), (0.0, max(map(max, values)) or 1.0), lines=lines,
        legend=legend_of(*lines),
    )  # fmt: skip


def height_of(chart: Chart, place: int, colour: str) -> int:
    """Pixels of a colour in the column of the picture that goes through a place."""
    image = chart.grab().toImage()
    x = round(chart.point_of(place).x())
    wanted = QColor(colour).name()
    return sum(image.pixelColor(x, y).name() == wanted for y in range(image.height()))


def test_nothing_of_the_window_imports_pyqtgraph_before_a_chart_is_seen() -> None:
    """Half a second, and the window is there that much sooner without it."""
    code = (
        "import sys; sys.path.insert(0, '.'); import explorer.app; import explorer.ui.window; "
        "import explorer.ui.panels.timings.panel, explorer.ui.panels.kv_cache.panel; "
        "print(sorted(set(sys.modules) & {'pyqtgraph', 'torch'}))"
    )
    root = Path(__file__).parents[4]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


# -- axes


def test_ticks_are_round_and_no_more_than_were_asked_for() -> None:
    assert round_values(0, 97, 5, Axis("")) == [0, 20, 40, 60, 80]
    assert round_values(0, 3, 9, Axis("", whole=True)) == [0, 1, 2, 3]
    assert round_values(0, 3000, 4, Axis("", binary=True)) == [0, 1024, 2048]
    assert round_values(5, 5, 4, Axis("")) == [5]
    for most in range(1, 12):
        for top in (0.003, 1, 7, 1e6, 3e9):
            for axis in (Axis(""), Axis("", binary=True)):
                assert 1 <= len(round_values(0, top, most, axis)) <= most + 1


def test_ten_times_more_is_one_decade_higher_and_an_exact_0_has_its_place() -> None:
    axis = Axis("", log=True, zero=True, least=0.01)
    low, middle, high, nothing = axis.place(np.array([0.01, 0.1, 1.0, 0.0])).tolist()
    assert middle - low == pytest.approx(high - middle)
    assert nothing < low
    np.testing.assert_allclose(axis.value(np.array([nothing, low, high])), [0, 0.01, 1])
    assert [round(place, 6) for place, _ in axis.ticks(nothing, high, 9)] == [-2, -1, 0, -2.7]


def test_bytes_have_ticks_at_powers_of_1024() -> None:
    axis = Axis("", binary=True)
    for top in (10_000, 700_000, 5_000_000, 3e9):
        step = np.diff([place for place, _ in axis.ticks(0, top, 5)])
        assert len(set(step.tolist())) == 1
        assert step[0] % 1024 == 0


# -- columns


def test_columns_are_as_high_as_their_values() -> None:
    chart = column_chart(Columns(np.array([100.0, 50.0, 25.0, 0.0]), ("decode",)))
    heights = [height_of(chart, i, LIGHT.decode) for i in range(4)]
    assert heights[1] == pytest.approx(heights[0] / 2, abs=1)
    assert heights[2] == pytest.approx(heights[0] / 4, abs=1)
    assert heights[3] == 0


def test_parts_stand_on_one_another_in_their_own_colours() -> None:
    values = np.array([100.0, 50.0])
    parts = (Part("below", values * 0.75), Part("above", values * 0.25, "rest"))
    chart = column_chart(Columns(values, ("decode",), parts))
    for place in (0, 1):
        below, above = height_of(chart, place, LIGHT.decode), height_of(chart, place, LIGHT.rest)
        assert below == pytest.approx(3 * above, abs=4)  # pixels are whole
    assert height_of(chart, 0, LIGHT.decode) > height_of(chart, 1, LIGHT.decode)
    assert read(chart).series["above"][1].tolist() == [25, 12.5]


def test_kinds_of_pass_have_their_colours_and_read_as_one_series() -> None:
    values = np.array([9.0, 8.0, 7.0])
    kinds = ("prefill", "decode", "prefill")
    chart = column_chart(Columns(values, kinds, (Part("pass", values),)))
    assert height_of(chart, 0, LIGHT.prefill) > 20
    assert height_of(chart, 1, LIGHT.decode) > 20
    places, heights = read(chart).series["pass"]
    assert (places.tolist(), heights.tolist()) == ([0, 1, 2], [9, 8, 7])


def test_more_columns_than_pixels_keep_the_highest() -> None:
    values = np.ones(5000)
    values[2501] = 100.0
    chart = column_chart(Columns(values, ("decode",), (Part("pass", values),)))
    assert read(chart).series["pass"][1].max() == 100
    chart.zoom(200, chart.point_of(2501))
    places, heights = read(chart).series["pass"]
    assert places[heights == 100].tolist() == [2501]


def test_a_column_beyond_the_axis_says_how_high_it_is() -> None:
    chart = column_chart(Columns(np.array([500.0, 9.0, 8.0, 9.0, 8.0]), ("decode",), cap=14.4))
    assert read(chart).notes == ("↑ 500 ms",)
    assert read(chart).ranges[1][1] < 16
    chart.zoom(2, chart.point_of(4))  # the column is no longer seen
    assert read(chart).notes == ()


@EVERY
def test_the_band_of_a_selected_column_is_seen_around_it(qapp: QApplication, theme: Theme) -> None:
    apply(qapp, theme)
    chart = column_chart(Columns(np.array([5.0, 9.0]), ("decode",)), (400, 200), theme, selected=0)
    image = chart.grab().toImage()
    top, inside = chart.point_of(0, 8.0).toPoint(), chart.point_of(0, 2.0).toPoint()
    assert image.pixelColor(top).name() == QColor(theme.band).name()
    assert image.pixelColor(inside).name() == QColor(theme.decode).name()
    assert image.pixelColor(chart.width() - 2, 100).name() == QColor(theme.card).name()


@EVERY
def test_a_change_of_theme_reaches_every_part(qapp: QApplication, theme: Theme) -> None:
    """Compared with a chart that was made in that theme."""
    data = Columns(
        np.array([9.0, 5.0, 7.0]), ("decode",), marks=np.array([8.0, 8.0, 8.0]), level=3.0,
        level_words="level", legend=[LegendEntry("pass", "decode")],
    )  # fmt: skip
    changed = column_chart(data, (360, 200), selected=1)
    changed.close()
    apply(qapp, theme)
    changed.set_theme(theme)
    made = column_chart(data, (360, 200), theme, selected=1)
    made.close()
    pictures = []
    for chart in (changed, made):
        show(chart)
        pictures.append(chart.grab().toImage().convertToFormat(QImage.Format.Format_RGB32))
        chart.close()
    assert pictures[0] == pictures[1]


def test_flat_and_empty_data_draw() -> None:
    for values in (np.zeros(3), np.array([5.0])):
        assert read(column_chart(Columns(values))).ticks[1]
    assert column_chart(Columns(np.zeros(0))).drawn is None


def test_other_data_come_into_the_same_items() -> None:
    """Made once and updated: a plot that is built anew for each step takes three times as long."""
    chart = column_chart(Columns(np.array([3.0, 4.0]), ("prefill", "decode")))
    scene = chart.plot.scene()
    before = {id(item) for item in scene.items()}
    for count in range(2, 40):
        chart.set_columns(Columns(np.arange(count) + 1.0, ("prefill", "decode")), count - 1)
        settle()
    assert {id(item) for item in scene.items()} == before


# -- reading


def test_keys_walk_over_the_places_and_say_each() -> None:
    chart = line_chart([0.1, 0.2, 0.3])
    heard = QSignalSpy(chart.hovered)
    for _ in range(5):
        QTest.keyClick(chart, Qt.Key.Key_Right)
    assert (chart.over, line_of(chart)) == (2, "place 2")
    QTest.keyClick(chart, Qt.Key.Key_Left)
    assert read(chart).cursor == 1
    QTest.keyClick(chart, Qt.Key.Key_Home)
    assert line_of(chart) == "place 0"
    QTest.keyClick(chart, Qt.Key.Key_End)
    assert line_of(chart) == "place 2"
    assert [heard.at(i)[0] for i in range(heard.count())] == [
        "place 0", "place 1", "place 2", "place 1", "place 0", "place 2",
    ]  # fmt: skip


def test_the_first_key_goes_to_the_column_that_is_marked() -> None:
    chart = column_chart(Columns(np.arange(9) + 1.0), selected=6)
    QTest.keyClick(chart, Qt.Key.Key_Right)
    assert chart.over == 6
    picked = QSignalSpy(chart.picked)
    QTest.keyClick(chart, Qt.Key.Key_Return)
    assert picked.at(0) == [6]


def test_the_mouse_reads_the_nearest_place_and_a_click_picks_it() -> None:
    chart = column_chart(Columns(np.arange(9) + 1.0))
    pointer.move(chart, chart.point_of(4).toPoint() + QPoint(3, 0))
    assert line_of(chart) == "column 4"
    picked = QSignalSpy(chart.picked)
    QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=chart.point_of(7).toPoint())
    assert picked.at(0) == [7]
    pointer.move(chart, QPoint(2, 2))
    assert chart.over is None


def test_before_anything_is_looked_at_a_screen_reader_hears_how_much_there_is() -> None:
    assert line_of(line_chart([1.0, 2.0, 3.0])) == "3 places; first: place 0"
    assert line_of(line_chart([1.0])) == "place 0"


# -- zoom


def wheel(chart: Chart, at: QPointF, steps: int, key: Qt.KeyboardModifier) -> QWheelEvent:
    event = QWheelEvent(
        at, chart.mapToGlobal(at), QPoint(), QPoint(0, 120 * steps), Qt.MouseButton.NoButton, key,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(chart, event)
    return event


def test_the_wheel_zooms_about_the_place_under_it_and_0_puts_it_back() -> None:
    chart = column_chart(Columns(np.arange(40) + 1.0), (400, 160))
    whole = read(chart).ranges
    at = chart.point_of(10)
    wheel(chart, at, 3, Qt.KeyboardModifier.NoModifier)
    assert chart.zoomed
    assert chart.over == 10
    assert chart.point_of(10).x() == pytest.approx(at.x(), abs=1)
    (left, right), up = read(chart).ranges
    assert right - left < 25
    assert up == whole[1]
    QTest.keyClick(chart, Qt.Key.Key_0)
    assert not chart.zoomed
    assert read(chart).ranges == whole
    ctrl = wheel(chart, at, 1, Qt.KeyboardModifier.ControlModifier)
    assert not ctrl.isAccepted()  # it zooms the whole program
    assert not chart.zoomed


def test_keys_zoom_and_the_cursor_takes_what_is_seen_along() -> None:
    chart = column_chart(Columns(np.arange(60) + 1.0), (400, 160))
    for _ in range(8):
        QTest.keyClick(chart, Qt.Key.Key_Plus)
    QTest.keyClick(chart, Qt.Key.Key_End)
    left, right = read(chart).ranges[0]
    assert left < 59 < right
    QTest.keyClick(chart, Qt.Key.Key_Home)
    left, right = read(chart).ranges[0]
    assert left < 0 < right
    for _ in range(9):
        QTest.keyClick(chart, Qt.Key.Key_Minus)
    assert not chart.zoomed


def test_dragging_moves_what_is_seen_within_its_limits_and_picks_nothing() -> None:
    chart = column_chart(Columns(np.arange(40) + 1.0), (400, 160))
    chart.zoom(4, chart.point_of(20))
    before = read(chart).ranges[0]
    picked = QSignalSpy(chart.picked)
    left = Qt.MouseButton.LeftButton
    QTest.mousePress(chart, left, pos=QPoint(200, 60))
    pointer.move(chart, QPoint(260, 60), left)
    QTest.mouseRelease(chart, left, pos=QPoint(260, 60))
    after = read(chart).ranges[0]
    assert after[0] < before[0]
    assert after[1] - after[0] == pytest.approx(before[1] - before[0])
    assert picked.count() == 0
    chart.pan(1e6, 0)
    assert read(chart).ranges[0][0] == pytest.approx(-0.5)


def test_a_button_goes_home_and_is_there_only_while_something_is_zoomed() -> None:
    chart = column_chart(Columns(np.arange(40) + 1.0), (400, 160))
    (home,) = (b for b in chart.findChildren(QToolButton) if "all of the chart" in b.toolTip())
    assert not home.isVisible()
    chart.zoom(4)
    assert home.isVisible()
    QTest.mouseClick(home, Qt.MouseButton.LeftButton)
    assert not chart.zoomed
    assert not home.isVisible()


def test_what_was_zoomed_into_stays_when_a_step_arrives() -> None:
    chart = column_chart(Columns(np.arange(40) + 1.0), (400, 160))
    chart.zoom(4, chart.point_of(20))
    before = read(chart).ranges[0]
    chart.set_columns(Columns(np.arange(41) + 1.0))
    assert read(chart).ranges[0] == pytest.approx(before)
    chart.set_columns(Columns(np.arange(5) + 1.0))
    assert read(chart).ranges[0][1] <= 4.5


def test_the_logarithm_is_switched_on_and_off() -> None:
    chart = line_chart([100.0, 10.0, 1.0])
    (log,) = (b for b in chart.findChildren(QToolButton) if b.text() == "log")
    assert log.isVisible()
    straight = [chart.point_of(i, v).y() for i, v in enumerate((100, 10, 1))]
    assert straight[1] - straight[0] > 5 * (straight[2] - straight[1])
    QTest.mouseClick(log, Qt.MouseButton.LeftButton)
    even = [chart.point_of(i, v).y() for i, v in enumerate((100, 10, 1))]
    assert even[1] - even[0] == pytest.approx(even[2] - even[1])
    np.testing.assert_allclose(read(chart).series["s0"][1], [100, 10, 1])
    QTest.mouseClick(log, Qt.MouseButton.LeftButton)
    assert [chart.point_of(i, v).y() for i, v in enumerate((100, 10, 1))] == straight


def test_nothing_but_zeros_and_one_place_can_be_drawn() -> None:
    up = Axis("change", log=True, zero=True, least=1e-3)
    for values in ([0.0, 0.0], [3.0], [float("nan"), 1.0]):
        chart = line_chart(values, y=up)
        assert not chart.grab().isNull()


# -- legend, export, words


def test_the_legend_is_a_part_of_the_picture_where_there_is_room() -> None:
    chart = line_chart([1.0, 2.0], [2.0, 1.0])
    assert read(chart).legend == ("s0", "s1")
    tall = chart.grab().toImage()
    chart.resize(300, 90)
    settle()
    assert read(chart).ticks[0] == ["0", "1"]
    assert len(read(chart).ticks[1]) >= 2
    assert tall.height() == 160


def test_a_drawing_has_its_words_and_its_bars_as_vectors() -> None:
    data = Columns(np.array([3.0, 4.0]), ("decode",), level=2.0, level_words="a level")
    chart = column_chart(data, (300, 160))
    drawing = export.svg(chart, "title").decode()
    assert "<image" not in drawing
    assert "a level" in drawing
    assert "2 ms" in drawing
    assert LIGHT.decode in drawing.lower()
    assert drawing.count("<rect") + drawing.count("<path") + drawing.count("<poly") > 4


def test_a_picture_for_a_document_is_the_one_on_screen_at_twice_its_size() -> None:
    chart = column_chart(Columns(np.array([3.0, 4.0]), ("decode",)), (300, 160))
    picture = export.picture(chart)
    assert (picture.width(), picture.height()) == (600, 320)
    point = chart.point_of(1, 1.0).toPoint()
    assert picture.pixelColor(point * 2).name() == QColor(LIGHT.decode).name()


def test_the_font_of_the_window_reaches_the_ticks(qapp: QApplication) -> None:
    chart = column_chart(Columns(np.array([3.0, 4.0]), ("decode",)), (400, 300))
    small = chart.point_of(0).x()
    apply(qapp, LIGHT, 2.0)
    settle()
    assert chart.point_of(0).x() > small
    apply(qapp, LIGHT)


def test_fewer_dashes_than_columns_are_drawn_as_far_as_they_go() -> None:
    chart = column_chart(
        Columns(values=np.array([1.0, 2.0, 3.0]), marks=np.array([2.0]), marks_name="formula")
    )
    assert read(chart).series["formula"][1].tolist() == [2.0, 2.0]


def test_a_fault_while_a_chart_is_shown_is_told_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    monkeypatch.setattr(sys, "excepthook", lambda _kind, error, _trace: told.append(str(error)))

    def broken() -> Figure:
        raise ValueError("no such figure")

    chart = Chart(LIGHT, "place {}".format)
    chart.show_made(broken)
    show(chart)
    assert "no such figure" in told[0]
