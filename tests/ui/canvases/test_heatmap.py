"""The map on screen: colours, cursor, mouse, keys, and pictures for documents."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QAccessible, QColor, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from explorer.figures.attention.map_blocks import ABSENT, MASKED, READ
from explorer.figures.drawing.colormaps import COLOUR_MAPS, lut
from explorer.figures.drawing.map_viewport import CellView
from explorer.figures.text.tokens import Label, labels
from explorer.trace.step import Token
from explorer.ui.access.accessible import line_of
from explorer.ui.canvases.maps.colour_key import swatches
from explorer.ui.canvases.maps.heatmap import Heatmap
from explorer.ui.canvases.maps.map_labels import MapLabels
from explorer.ui.files import export
from explorer.ui.look.apply_theme import apply
from explorer.ui.look.theme import DARK, LIGHT, THEMES
from tests.ui import pointer
from tests.ui.waiting import settle, show, wait_until


def _labels(count: int) -> tuple[Label, ...]:
    return labels([Token(i, f" t{i}".encode()) for i in range(count)])


def _causal(count: int) -> np.ndarray:
    levels = np.full((count, count), READ, np.uint8)
    levels[np.triu_indices(count, 1)] = MASKED
    return levels


@pytest.fixture
def heatmap(qapp: QApplication) -> Iterator[Heatmap]:
    apply(qapp, LIGHT)
    heatmap = Heatmap(LIGHT, lambda query, key: f"cell {query} {key}")
    heatmap.resize(460, 400)
    show(heatmap)
    yield heatmap
    heatmap.deleteLater()
    qapp.sendPostedEvents(heatmap, QEvent.Type.DeferredDelete.value)


def _point(heatmap: Heatmap, query: int, key: int) -> QPoint:
    return heatmap.cell_rect(query, key).center().toPoint()


def _colour(image: QImage, point: QPoint) -> str:
    ratio = image.devicePixelRatio()
    return image.pixelColor(round(point.x() * ratio), round(point.y() * ratio)).name()


def _named(rgb: np.ndarray) -> str:
    return QColor(*(int(c) for c in rgb)).name()


@pytest.mark.parametrize("name", COLOUR_MAPS)
def test_cells_have_the_colours_of_the_map(heatmap: Heatmap, name: str) -> None:
    levels = _causal(4)
    levels[3, 0], levels[3, 1], levels[3, 2] = 255, 128, READ
    heatmap.set_map(levels, _labels(4))
    heatmap.set_colours(name)
    image = heatmap.grab().toImage()
    assert _colour(image, _point(heatmap, 3, 0)) == _named(lut(name)[255])
    assert _colour(image, _point(heatmap, 3, 2)) == _named(lut(name)[0])
    middle = QColor(_colour(image, _point(heatmap, 3, 1)))
    assert abs(middle.green() - int(lut(name)[127][1])) <= 2


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_masked_absent_and_zero_look_different(heatmap: Heatmap, theme: object) -> None:
    levels = np.full((3, 3), READ, np.uint8)
    levels[0, 1], levels[0, 2] = MASKED, ABSENT
    heatmap.set_theme(theme)  # type: ignore[arg-type]
    heatmap.set_map(levels, _labels(3))
    image = heatmap.grab().toImage()
    patches = []
    for key in range(3):
        rect = heatmap.cell_rect(0, key).toRect().adjusted(4, 4, -4, -4)
        area = image.copy(rect)
        colours = {
            area.pixelColor(x, y).name() for x in range(area.width()) for y in range(area.height())
        }
        patches.append(colours)
    zero, masked, absent = patches
    assert not zero & masked
    assert not zero & absent
    assert not masked & absent
    assert len(masked) > 1, "masked cells have a pattern, not only a colour"


def test_padding_is_hatched_over_its_rows_and_columns(heatmap: Heatmap) -> None:
    levels = np.full((6, 6), READ, np.uint8)
    heatmap.set_map(levels, _labels(6))
    plain = heatmap.grab().toImage()
    heatmap.set_map(levels, _labels(6), padding=[0, 1])
    hatched = heatmap.grab().toImage()
    for cell, changed in (((0, 4), True), ((4, 1), True), ((4, 4), False)):
        rect = heatmap.cell_rect(*cell).toRect().adjusted(2, 2, -2, -2)
        assert (plain.copy(rect) != hatched.copy(rect)) is changed


def test_one_hot_cell_of_two_thousand_is_on_screen(heatmap: Heatmap) -> None:
    levels = _causal(2048)
    levels[1999, 1234] = 255
    heatmap.set_map(levels, _labels(2048))
    image = heatmap.grab().toImage()
    drawn = heatmap.drawn_area().toRect()
    hot = _named(lut("viridis")[255])
    found = {
        image.pixelColor(x, y).name()
        for x in range(drawn.left(), drawn.right())
        for y in range(_point(heatmap, 1999, 1234).y() - 2, _point(heatmap, 1999, 1234).y() + 3)
    }
    assert hot in found


def test_hovering_reports_the_cell_and_leaving_reports_none(heatmap: Heatmap) -> None:
    heatmap.set_map(_causal(8), _labels(8))
    seen: list[object] = []
    heatmap.hovered.connect(seen.append)
    pointer.move(heatmap, _point(heatmap, 5, 2))
    pointer.move(heatmap, _point(heatmap, 5, 2) + QPoint(1, 1))
    pointer.move(heatmap, _point(heatmap, 6, 2))
    QApplication.sendEvent(heatmap, QEvent(QEvent.Type.Leave))
    assert seen == [(5, 2), (6, 2), None]


def test_a_click_picks_and_a_drag_does_not(heatmap: Heatmap) -> None:
    heatmap.set_map(_causal(8), _labels(8))
    picked: list[tuple[int, int]] = []
    heatmap.picked.connect(lambda *cell: picked.append(cell))
    QTest.mouseClick(heatmap, Qt.MouseButton.LeftButton, pos=_point(heatmap, 4, 3))
    assert picked == [(4, 3)]
    heatmap.zoom(4.0)
    left = heatmap.view.left
    start = heatmap.rect().center()
    QTest.mousePress(heatmap, Qt.MouseButton.LeftButton, pos=start)
    pointer.move(heatmap, start + QPoint(30, 0), Qt.MouseButton.LeftButton)
    pointer.move(heatmap, start + QPoint(60, 0), Qt.MouseButton.LeftButton)
    QTest.mouseRelease(heatmap, Qt.MouseButton.LeftButton, pos=start + QPoint(60, 0))
    assert picked == [(4, 3)]
    assert heatmap.view.left < left


def test_arrows_walk_a_cursor_that_is_read_out(heatmap: Heatmap) -> None:
    heatmap.set_map(_causal(8), _labels(8))
    heatmap.set_marks(5, 2)
    seen: list[object] = []
    heatmap.hovered.connect(seen.append)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Home, Qt.Key.Key_End):
        QTest.keyClick(heatmap, key)
    assert seen == [(5, 2), (5, 3), (4, 3), (4, 0), (4, 7)]
    assert line_of(heatmap) == "cell 4 7"
    QTest.keyClick(heatmap, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    assert seen[-1] == (7, 7)
    QTest.keyClick(heatmap, Qt.Key.Key_Down)
    assert line_of(heatmap) == "cell 7 7", "the cursor stays on the map"


def test_the_cursor_is_kept_in_view_while_zoomed(heatmap: Heatmap) -> None:
    heatmap.set_map(_causal(200), _labels(200))
    QTest.keyClick(heatmap, Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)
    heatmap.zoom(8.0)
    QTest.keyClick(heatmap, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    assert heatmap.drawn_area().contains(heatmap.cell_rect(199, 199).center())


def test_return_picks_the_cell_under_the_cursor(heatmap: Heatmap) -> None:
    heatmap.set_map(_causal(8), _labels(8))
    picked: list[tuple[int, int]] = []
    heatmap.picked.connect(lambda *cell: picked.append(cell))
    heatmap.go_to(6, 1)
    QTest.keyClick(heatmap, Qt.Key.Key_Return)
    assert picked == [(6, 1)]


def test_plus_minus_and_nought_zoom(heatmap: Heatmap) -> None:
    heatmap.set_map(_causal(100), _labels(100))
    fitted = heatmap.view.scale
    QTest.keyClick(heatmap, Qt.Key.Key_Plus)
    assert heatmap.view.scale > fitted
    QTest.keyClick(heatmap, Qt.Key.Key_0)
    assert heatmap.view.scale == fitted


def test_a_shorter_map_takes_the_cursor_away(heatmap: Heatmap) -> None:
    heatmap.set_map(_causal(8), _labels(8))
    heatmap.go_to(7, 7)
    seen: list[object] = []
    heatmap.hovered.connect(seen.append)
    heatmap.set_map(_causal(4), _labels(4))
    heatmap.set_marks(7, 6)
    heatmap.grab()
    assert seen == [None]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_smallest_maps_are_drawn(heatmap: Heatmap, count: int) -> None:
    heatmap.set_map(_causal(count), _labels(count))
    heatmap.set_marks(0, 0)
    for key in (Qt.Key.Key_Left, Qt.Key.Key_Plus, Qt.Key.Key_Return):
        QTest.keyClick(heatmap, key)
    assert not heatmap.grab().isNull()


def test_a_tiny_widget_is_no_crash(heatmap: Heatmap) -> None:
    heatmap.set_map(_causal(50), _labels(50))
    heatmap.resize(20, 15)
    heatmap.grab()


def test_zooming_the_program_enlarges_the_labels(qapp: QApplication, heatmap: Heatmap) -> None:
    heatmap.set_map(_causal(10), _labels(10))
    room = heatmap.plot.left()
    apply(qapp, LIGHT, 1.5)
    settle()
    assert heatmap.plot.left() > room * 1.3


def test_a_saved_picture_shows_the_same_cells_in_twice_the_pixels(heatmap: Heatmap) -> None:
    levels = _causal(5)
    levels[4, 1] = 255
    heatmap.set_map(levels, _labels(5))
    saved = export.picture(heatmap, 2)
    assert saved.width() == 2 * heatmap.width()
    screen = heatmap.grab().toImage()
    for cell in ((4, 1), (4, 2), (2, 2)):
        point = _point(heatmap, *cell)
        assert _colour(saved, point) == _colour(screen, point)


def test_a_saved_drawing_keeps_its_labels_as_text(heatmap: Heatmap) -> None:
    tokens = [Token(0, "你好".encode()), Token(1, "🙂".encode()), Token(2, b" x")]
    heatmap.set_map(_causal(3), labels(tokens))
    drawing = export.svg(heatmap, "map").decode("utf-8")
    assert "你好" in drawing
    assert "🙂" in drawing
    assert "␣x" in drawing


def test_a_screen_reader_finds_a_picture_with_a_name(heatmap: Heatmap) -> None:
    face = QAccessible.queryAccessibleInterface(heatmap)
    assert face.role() == QAccessible.Role.Graphic
    assert face.text(QAccessible.Text.Name) == "Attention map"


def test_the_wheel_zooms_and_ctrl_wheel_is_left_to_the_program(heatmap: Heatmap) -> None:
    from PySide6.QtGui import QWheelEvent

    heatmap.set_map(_causal(100), _labels(100))
    scale = heatmap.view.scale

    def turn(modifier: Qt.KeyboardModifier) -> bool:
        event = QWheelEvent(
            QPointF(200, 200),
            QPointF(200, 200),
            QPoint(),
            QPoint(0, 120),
            Qt.MouseButton.NoButton,
            modifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(heatmap, event)
        return event.isAccepted()

    assert not turn(Qt.KeyboardModifier.ControlModifier)
    assert heatmap.view.scale == scale
    assert turn(Qt.KeyboardModifier.NoModifier)
    assert heatmap.view.scale > scale


def test_a_theme_changes_what_surrounds_the_cells(heatmap: Heatmap) -> None:
    levels = _causal(5)
    levels[4, 0] = 255  # the colour for 0 is lighter on a dark surface
    heatmap.set_map(levels, _labels(5))
    light = heatmap.grab().toImage()
    heatmap.set_theme(DARK)
    dark = heatmap.grab().toImage()
    assert _colour(light, _point(heatmap, 4, 0)) == _colour(dark, _point(heatmap, 4, 0))
    assert light != dark


def test_a_hidden_map_leaves_the_view_it_shares_alone(qapp: QApplication) -> None:
    """Another theme restyles the maps of a comparison too, which are hidden and tiny."""
    apply(qapp, LIGHT)
    page = QWidget()
    page.resize(460, 400)
    view = CellView()
    seen, hidden = (Heatmap(LIGHT, None, page, view) for _ in range(2))
    hidden.hide()
    seen.resize(460, 400)
    seen.set_map(_causal(100), _labels(100))
    show(page)
    scale = view.scale
    assert scale > 2
    apply(qapp, DARK)
    settle()
    assert view.scale == scale
    page.deleteLater()
    qapp.sendPostedEvents(page, QEvent.Type.DeferredDelete.value)


def test_marks_that_moved_look_as_freshly_painted_ones(
    heatmap: Heatmap, qapp: QApplication
) -> None:
    """Only where a mark comes or goes is painted again."""
    heatmap.set_map(_causal(40), _labels(40))
    heatmap.set_marks(30, 3)
    settle()
    screen = heatmap.screen()
    for column in (5, 6, 7, 20):
        heatmap.set_cursor((25, column))
        settle()
    heatmap.set_cursor((12, 9))
    heatmap.set_marks(31, 4)
    assert screen is not None
    fresh = heatmap.grab().toImage()
    kind = fresh.format()
    wait_until(lambda: screen.grabWindow(heatmap.winId()).toImage().convertToFormat(kind) == fresh)


def test_the_room_for_labels_is_measured_once_for_what_is_in_view(qapp: QApplication) -> None:
    apply(qapp, LIGHT)
    names, view = MapLabels(), CellView(rows=600, columns=600)
    names.set_font(qapp.font(), 1.0)
    names.set_labels(labels([Token(i, b"word" * (1 + i // 450)) for i in range(600)]), ())
    asked: list[str] = []
    fitted = names._fitted
    names._fitted = lambda text, width: (asked.append(text), fitted(text, width))[1]  # type: ignore[method-assign]
    short = names.room(view, least=1)
    assert [names.room(view, least=1) for _ in range(5)] == [short] * 5
    assert asked == ["word"]
    view.top = view.left = 200.0
    assert names.room(view, least=1) > short, "other labels are in view"
    names.set_labels(labels([Token(0, b"i")] * 9), ())
    assert names.room(view, least=1) < short


def test_no_label_is_left_half_covered_by_a_marked_one(heatmap: Heatmap) -> None:
    heatmap.set_map(_causal(40), _labels(40))
    names, view, plot = heatmap._names, heatmap.view, heatmap.plot
    stride = view.stride(names._line * 0.86)
    assert stride == 2

    def ink(shown: int) -> int:
        """Pixels of a query's label that lie outside the marked one's place."""
        area = names.area(view, plot, "query", shown).adjusted(0, 2, -4, -2)
        marked = names.area(view, plot, "query", 31)
        image = heatmap.grab().toImage()
        return sum(
            image.pixelColor(x, y).name() != LIGHT.card
            for x in range(area.left(), area.right())
            for y in range(area.top(), area.bottom())
            if not marked.contains(x, y)
        )

    assert all(ink(slot) for slot in (28, 30, 32))
    heatmap.set_marks(31, None)
    assert not any(ink(slot) for slot in (30, 32))
    assert ink(28), "what can be read stays"
    heatmap.set_marks(30, None)
    assert all(ink(slot) for slot in (28, 32))


def test_the_key_is_there_at_the_width_that_a_projector_leaves(heatmap: Heatmap) -> None:
    heatmap.set_map(_causal(20), _labels(20))
    ends = []
    for width in (400, 250):  # the map in a window of 1280 x 720; where a key takes too much
        heatmap.resize(width, 600)
        ends.append(width - heatmap.cell_rect(0, 19).right())
    assert ends[0] > 80
    assert ends[1] < 20


def test_the_key_names_only_the_kinds_of_cells_that_the_map_has(heatmap: Heatmap) -> None:
    levels = np.full((3, 3), READ, np.uint8)
    heatmap.set_map(levels, _labels(3))
    assert heatmap.styles == set()
    levels[0, 1] = MASKED
    heatmap.set_map(levels.copy(), _labels(3), padding=[0])
    assert heatmap.styles == {"masked", "padding"}
    levels[0, 2] = ABSENT
    heatmap.set_map(levels, _labels(3))
    assert heatmap.styles == {"masked", "absent"}
    named = [words for _, words in swatches(LIGHT, 1.0, heatmap.styles)]
    assert named == ["masked", "not computed"]
