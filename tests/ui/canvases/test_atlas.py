"""All heads on one sheet: every one reachable, none lost, absent layers in their place."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QAccessible, QColor, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer.figures.attention import atlas as figures
from explorer.figures.attention.atlas import LEVELS, Atlas
from explorer.figures.attention.map_blocks import MASKED, READ
from explorer.figures.drawing.colormaps import lut
from explorer.ui.access.accessible import line_of
from explorer.ui.canvases.maps.atlas import AtlasView
from explorer.ui.canvases.maps.thumbnails import Sheet, SheetPlan
from explorer.ui.look.apply_theme import apply
from explorer.ui.look.theme import LIGHT, THEMES
from tests.figures.runs import Run
from tests.ui import pointer
from tests.ui.waiting import show, wait_until


@pytest.fixture
def view(qapp: QApplication) -> Iterator[AtlasView]:
    apply(qapp, LIGHT)
    view = AtlasView(LIGHT, lambda layer, head: f"layer {layer} head {head}")
    view.resize(320, 420)
    show(view)
    yield view
    view.deleteLater()
    qapp.sendPostedEvents(view, QEvent.Type.DeferredDelete.value)


def _atlas(layers: int, heads: int, size: int = 16, fill: int = READ) -> Atlas:
    levels = np.full((layers, heads, size, size), fill, np.uint16)
    return Atlas(levels, (heads,) * layers, ("",) * layers, size, 1, (), True)


def _point(view: AtlasView, layer: int, head: int) -> QPoint:
    return view.cell_rect(layer, head).center().toPoint()


def _grabbed(view: AtlasView) -> QImage:
    view.grab()
    wait_until(lambda: view._asked is None)  # a large picture is made in the background
    return view.grab().toImage()


def _colours(view: AtlasView, layer: int, head: int) -> set[str]:
    image = _grabbed(view)
    area: QImage = image.copy(view.cell_rect(layer, head).toRect())
    return {area.pixelColor(x, y).name() for x in range(area.width()) for y in range(area.height())}


HOT = QColor(*(int(c) for c in lut("viridis")[255])).name()
COLD = QColor(*(int(c) for c in lut("viridis")[0])).name()


@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (2, 4), (30, 9), (12, 12), (48, 64)])
def test_one_hot_head_is_where_it_belongs(view: AtlasView, layers: int, heads: int) -> None:
    atlas = _atlas(layers, heads)
    layer, head = layers // 2, heads // 3
    atlas.levels[layer, head, 11, 5] = READ + LEVELS
    view.set_atlas(atlas)
    view.reveal(layer, head)
    assert HOT in _colours(view, layer, head)
    if heads > 1:
        assert HOT not in _colours(view, layer, (head + 1) % heads)


@pytest.mark.parametrize("size", [1, 5, 16, 33, 64])
@pytest.mark.parametrize("corner", [(0, 0), (1, 0), (1, 1)])
def test_no_cell_of_a_thumbnail_is_lost(
    view: AtlasView, size: int, corner: tuple[int, int]
) -> None:
    atlas = _atlas(30, 9, size)
    atlas.levels[7, 3, corner[0] * (size - 1), corner[1] * (size - 1)] = READ + LEVELS
    view.set_atlas(atlas)
    assert HOT in _colours(view, 7, 3)


def test_heads_of_a_large_model_all_fit_at_a_usual_size(view: AtlasView) -> None:
    view.resize(660, 500)
    view.set_atlas(_atlas(48, 64))
    assert view.horizontalScrollBar().maximum() == 0
    assert view.verticalScrollBar().maximum() == 0


def test_masked_cells_are_not_the_colour_of_zero(view: AtlasView) -> None:
    atlas = _atlas(2, 2)
    atlas.levels[1, 1] = MASKED
    view.set_atlas(atlas)
    assert _colours(view, 0, 0) == {COLD}
    assert _colours(view, 1, 1) == {LIGHT.masked}


def test_the_scale_may_be_each_heads_own(view: AtlasView) -> None:
    atlas = _atlas(2, 2)
    atlas.levels[0, 1, 3, 3] = READ + LEVELS // 4
    view.set_atlas(atlas)
    assert HOT not in _colours(view, 0, 1)
    view.set_colours("viridis", scale="max")
    assert HOT in _colours(view, 0, 1)
    assert HOT not in _colours(view, 0, 0), "nothing is made of a head without weight"


def test_a_layer_without_attention_keeps_its_row_and_says_why(view: AtlasView) -> None:
    trace = Run(layers=4, heads=3, kv_heads=1, absent=(1,)).prefill(6)
    *_, atlas = figures.build(trace, 0)
    view.set_atlas(atlas)
    picked: list[tuple[int, int]] = []
    view.picked.connect(lambda *cell: picked.append(cell))
    for layer in range(4):
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=_point(view, layer, 1))
    assert picked == [(0, 1), (2, 1), (3, 1)]
    assert not {HOT, COLD} & _colours(view, 1, 1)


def test_heads_may_differ_by_layer(view: AtlasView) -> None:
    atlas = _atlas(2, 4)
    fewer = Atlas(atlas.levels, (4, 2), ("", ""), 16, 1, (), True)
    view.set_atlas(fewer)
    picked: list[tuple[int, int]] = []
    view.picked.connect(lambda *cell: picked.append(cell))
    for head in (1, 3):
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=_point(view, 1, head))
    assert picked == [(1, 1)]


def test_hovering_reports_and_reads(view: AtlasView) -> None:
    view.set_atlas(_atlas(3, 3))
    seen: list[object] = []
    view.hovered.connect(seen.append)
    pointer.move(view.viewport(), _point(view, 2, 1))
    QApplication.sendEvent(view.viewport(), QEvent(QEvent.Type.Leave))
    assert seen == [(2, 1), None]
    assert line_of(view) == "layer 2 head 1"


def test_keys_move_the_choice_and_keep_it_in_view(view: AtlasView) -> None:
    view.resize(200, 160)
    view.set_atlas(_atlas(40, 20))
    view.set_selected(0, 0)
    picked: list[tuple[int, int]] = []

    def follow(layer: int, head: int) -> None:
        picked.append((layer, head))
        view.set_selected(layer, head)

    view.picked.connect(follow)
    for key in (Qt.Key.Key_Left, Qt.Key.Key_Down, Qt.Key.Key_Right, Qt.Key.Key_End):
        QTest.keyClick(view, key)
    assert picked == [(0, 0), (1, 0), (1, 1), (1, 19)]
    for _ in range(10):
        QTest.keyClick(view, Qt.Key.Key_PageDown)
    assert picked[-1] == (39, 19)
    assert view.viewport().rect().contains(_point(view, 39, 19))


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_the_chosen_head_is_framed_in_every_theme(view: AtlasView, theme: object) -> None:
    view.set_theme(theme)  # type: ignore[arg-type]
    view.set_atlas(_atlas(3, 3))
    before = view.grab().toImage()
    view.set_selected(1, 1)
    assert view.grab().toImage() != before


def test_heads_in_an_order_are_drawn_picked_and_walked_in_it(view: AtlasView) -> None:
    atlas = _atlas(2, 3)
    atlas.levels[1, 0, 4, 4] = READ + LEVELS
    view.set_atlas(atlas)
    order = [(1, 0), (0, 2), (1, 1), (0, 0), (1, 2)]
    view.set_order(order)
    assert HOT in _colours(view, 0, 0)
    assert HOT not in _colours(view, 1, 0)
    picked: list[tuple[int, int]] = []

    def follow(*cell: int) -> None:
        picked.append((cell[0], cell[1]))
        view.set_selected(cell[0], cell[1])

    view.picked.connect(follow)
    for place in ((0, 0), (0, 2), (1, 1), (1, 2)):
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=_point(view, *place))
    assert picked == [(1, 0), (1, 1), (1, 2)], "there is no sixth head"
    QTest.keyClick(view, Qt.Key.Key_Up)
    assert picked[-1] == (0, 2)
    view.set_order(None)
    assert HOT in _colours(view, 1, 0)


def test_an_order_of_many_heads_fits_the_width_and_begins_at_the_top(view: AtlasView) -> None:
    view.set_atlas(_atlas(48, 64, 4))
    view.set_selected(47, 63)
    assert view.horizontalScrollBar().value() > 0
    order = [(layer, head) for head in range(64) for layer in range(48)]
    view.set_order(order)
    view.to_top()
    assert view.horizontalScrollBar().maximum() == 0
    assert view.verticalScrollBar().value() == 0
    rows, columns = view._layout.shape
    assert columns < 64
    assert rows * columns >= len(order)
    assert [view.head_of(*divmod(rank, columns)) for rank in range(len(order))] == order
    assert view._layout.place_of(*order[-1]) == divmod(len(order) - 1, columns)
    view.set_order(None)
    assert view._layout.shape == (48, 64)


def test_nothing_to_show_is_no_crash(view: AtlasView) -> None:
    view.set_atlas(None)
    view.set_selected(3, 3)
    QTest.keyClick(view, Qt.Key.Key_Down)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton)
    view.grab()
    view.set_atlas(_atlas(2, 2))
    view.grab()


def test_a_screen_reader_finds_a_picture_with_a_name(view: AtlasView) -> None:
    face = QAccessible.queryAccessibleInterface(view)
    assert face.role() == QAccessible.Role.Graphic
    assert face.text(QAccessible.Text.Name)


def test_a_large_picture_is_made_in_the_background_and_the_old_one_kept_till_then(
    view: AtlasView, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_in: list[threading.Thread] = []
    make = SheetPlan.sheet

    def noted(plan: SheetPlan, atlas: Atlas) -> Sheet:
        made_in.append(threading.current_thread())
        return make(plan, atlas)

    monkeypatch.setattr(SheetPlan, "sheet", noted)
    atlas = _atlas(48, 64)
    atlas.levels[:] = READ + LEVELS
    view.set_atlas(atlas)
    assert _colours(view, 5, 5) == {HOT}
    assert threading.main_thread() not in made_in
    first = view.sheet
    for width in (900, 1000, 1100):
        view.resize(width, 800)
        view.grab()
        assert view.sheet is first, "stretched"
    assert _colours(view, 6, 5) == {HOT}
    assert view.sheet is not first
    assert threading.main_thread() not in made_in
    view.set_atlas(_atlas(2, 2))
    view.grab()
    assert made_in[-1] is threading.main_thread(), "a small one at once"
