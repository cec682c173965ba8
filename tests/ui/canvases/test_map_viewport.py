"""Zoom, pan, and the cells behind each pixel."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.drawing.map_viewport import CellView, smaller


def _view(cells: int, size: float = 300.0) -> CellView:
    view = CellView()
    view.set_cells(cells, cells)
    view.set_size(size, size, 56)
    return view


@pytest.mark.parametrize("cells", [1, 2, 24, 299, 300, 301, 2048])
def test_everything_fits_at_first(cells: int) -> None:
    view = _view(cells)
    assert view.fitted
    assert 0 < view.drawn_width <= 300
    assert view.cell_at(view.drawn_width - 0.01, view.drawn_height - 0.01) == (cells - 1, cells - 1)
    assert view.cell_at(0, 0) == (0, 0)


def test_one_token_is_a_cell_of_sensible_size() -> None:
    assert _view(1).scale == 56


def test_an_empty_map_has_no_cells() -> None:
    view = _view(0)
    assert view.cell_at(5, 5) is None
    assert view.pixels(np.zeros((0, 0), np.uint8), 1.0).size == 0


def test_zooming_keeps_the_cell_under_the_mouse() -> None:
    view = _view(100)
    before = view.cell_at(120, 180)
    for factor in (2.0, 2.0, 1.5, 0.7):
        view.zoom(factor, 120, 180)
        assert view.cell_at(120, 180) == before


def test_zooming_out_ends_at_the_whole_map() -> None:
    view = _view(100)
    view.zoom(4, 10, 10)
    assert not view.fitted
    view.zoom(0.01, 200, 200)
    assert view.fitted
    assert (view.left, view.top) == (0, 0)


def test_panning_stops_at_the_edges() -> None:
    view = _view(100)
    view.zoom(4, 0, 0)
    view.pan(-1e6, -1e6)
    assert view.cell_at(299.9, 299.9) == (99, 99)
    view.pan(1e6, 1e6)
    assert view.cell_at(0, 0) == (0, 0)


@pytest.mark.parametrize("cell", [(0, 0), (99, 99), (3, 90), (50, 50)])
def test_a_revealed_cell_is_in_view(cell: tuple[int, int]) -> None:
    view = _view(100)
    view.zoom(8, 150, 150)
    view.reveal(*cell)
    assert 0 <= view.x_of(cell[1]) <= 300 - view.scale + 1e-6
    assert 0 <= view.y_of(cell[0]) <= 300 - view.scale + 1e-6


def test_a_growing_map_stays_fitted_and_a_zoomed_one_stays_put() -> None:
    view = _view(100)
    view.set_cells(150, 150)
    assert view.drawn_width == pytest.approx(300)
    view.zoom(4, 0, 0)
    scale = view.scale
    view.set_cells(151, 151)
    assert view.scale == scale


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0])
def test_enlarged_cells_are_themselves(ratio: float) -> None:
    levels = np.random.default_rng(0).integers(0, 255, (24, 24)).astype(np.uint8)
    view = _view(24)
    pixels = view.pixels(levels, ratio)
    assert pixels.shape == (round(300 * ratio * 288 / 300),) * 2
    for y, x in np.random.default_rng(1).integers(0, len(pixels), (200, 2)):
        assert pixels[y, x] == levels[view.cell_at((x + 0.5) / ratio, (y + 0.5) / ratio)]


@pytest.mark.parametrize("cells", [301, 640, 1000, 2048])
@pytest.mark.parametrize("ratio", [1.0, 1.25, 2.0])
def test_no_hot_cell_is_lost_wherever_it_is(cells: int, ratio: float) -> None:
    view = _view(cells)
    for seed in range(8):
        row, column = np.random.default_rng(seed).integers(0, cells, 2)
        levels = np.full((cells, cells), 2, np.uint8)
        levels[row, column] = 255
        assert view.pixels(levels, ratio).max() == 255


@pytest.mark.parametrize("zoom", [1.0, 1.7, 3.1])
def test_a_hot_cell_in_view_is_never_lost_while_zoomed(zoom: float) -> None:
    view = _view(2048)
    view.zoom(zoom, 77, 210)
    first_row, first_column = view.cell_at(0, 0) or (0, 0)
    last_row, last_column = view.cell_at(299.5, 299.5) or (0, 0)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        row = rng.integers(first_row, last_row + 1)
        column = rng.integers(first_column, last_column + 1)
        levels = np.full((2048, 2048), 2, np.uint8)
        levels[row, column] = 255
        assert view.pixels(levels, 1.0).max() == 255


def test_labels_thin_out_so_that_they_never_overlap() -> None:
    for cells in (4, 24, 100, 500, 3000):
        view = _view(cells)
        stride = view.stride(14)
        assert stride * view.scale >= 14
        assert stride == 1 or view.scale < 14


def test_small_maps_need_no_smaller_copy() -> None:
    assert smaller(np.zeros((512, 512), np.uint8)) == ()


@pytest.mark.parametrize("zoom", [1.0, 2.3, 30.0])
def test_a_huge_map_from_its_smaller_copies_loses_nothing(zoom: float) -> None:
    for seed in range(6):
        row, column = np.random.default_rng(seed).integers(0, 2999, 2)
        levels = np.full((2999, 2999), 2, np.uint8)
        levels[row, column] = 255
        pooled = smaller(levels)
        assert [(one.stride, len(one.levels)) for one in pooled] == [(2, 1500), (4, 750), (8, 375)]
        view = _view(2999)
        view.zoom(zoom, view.x_of(column), view.y_of(row))
        assert view.pixels(levels, 1.0, pooled).max() == 255
        assert view.pixels(levels, 1.0, pooled).shape == view.pixels(levels, 1.0).shape


def test_a_map_of_thousands_is_painted_from_its_smaller_copies_alone() -> None:
    levels = np.random.default_rng(0).integers(2, 255, (2048, 2048)).astype(np.uint8)
    pooled = smaller(levels)
    shown = _view(2048).pixels(np.zeros_like(levels), 1.0, pooled)
    assert shown.shape == (300, 300)
    assert set(np.unique(shown)) <= set(np.unique(pooled[1].levels))
    assert shown.min() > 0
