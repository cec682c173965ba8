"""Marks on changed cells: each kind is another shape, on any colour, in every theme."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage

from explorer.figures.attention.strokes import DrawnMask
from explorer.figures.drawing.map_viewport import CellView
from explorer.trace.interventions.kinds import Intervention
from explorer.trace.interventions.lines import read
from explorer.ui.canvases.maps.drawing.cell_marks import KINDS, LEAST, kinds_of, paint_marks
from explorer.ui.canvases.opaque import painter_of
from explorer.ui.look.theme import THEMES, Theme
from tests.ui.painted import luminance

NOW = tuple(map(read, ("cut *.*:1<-0", "allow *.*:1<-2", "cut *.*:2<-0")))
NEXT = tuple(map(read, ("cut *.*:1<-0", "allow *.*:1<-2", "cut *.*:2<-1", "allow *.*:0<-1")))
CELLS = {  # where each kind is
    "cut": (1, 0),
    "allowed": (1, 2),
    "cut-next": (2, 1),
    "allowed-next": (0, 1),
    "restored-next": (2, 0),
}


def painted(
    side: int,
    size: int,
    theme: Theme,
    ground: str = "#440154",
    changed: tuple[Intervention, ...] = (),
) -> tuple[np.ndarray, set]:
    """(size, size, 3) of a map of `side` × `side` cells, and the kinds it says it has."""
    image = QImage(size, size, QImage.Format.Format_RGB32)
    image.fill(QColor(ground))
    view = CellView()
    view.set_size(size, size, 56)
    view.set_cells(side, side)
    painter = painter_of(image)
    mask = DrawnMask(changed or NOW, changed or NEXT, 0, 0)
    kinds = paint_marks(painter, QRectF(0, 0, size, size), view, mask, theme, 1.0)
    painter.end()
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(size, -1, 4)
    return rows[:, :size, 2::-1].copy(), set(kinds)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
@pytest.mark.parametrize("ground", ["#440154", "#21918c", "#fde725", "#e6e9ef"])
def test_every_kind_is_another_shape_and_shows_on_any_colour(theme: Theme, ground: str) -> None:
    picture, kinds = painted(4, 96, theme, ground)
    assert kinds == set(KINDS)
    seen = {}
    for kind, (query, key) in CELLS.items():
        cell = picture[24 * query : 24 * query + 24, 24 * key : 24 * key + 24]
        light = luminance(cell)
        assert (light.max() + 0.05) / (light.min() + 0.05) > 4.5
        seen[kind] = light
    for one, other in itertools.combinations(seen, 2):
        assert np.abs(seen[one] - seen[other]).max() > 0.5, (one, other)
    untouched = picture[72:, 72:]
    assert (untouched == untouched[0, 0]).all()


@pytest.mark.parametrize("side", [16, 96, 400])
def test_small_cells_are_marked_too_and_only_they(side: int) -> None:
    picture, kinds = painted(side, 96, THEMES["light"])
    assert kinds == set(KINDS) if side <= 96 else kinds  # four cells each way are one pixel
    changed = (picture != picture[-1, -1]).any(axis=2)
    reach = int(np.ceil(3 * 96 / side)) + LEAST // 2
    assert changed[:reach, :reach].any()
    assert not changed[reach:].any()
    assert not changed[:, reach:].any()


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
@pytest.mark.parametrize("ground", ["#440154", "#21918c", "#fde725", "#e6e9ef"])
def test_a_single_cell_of_a_long_text_has_a_mark_that_shows(theme: Theme, ground: str) -> None:
    seen = {}
    for line in ("cut *.*:300<-200", "allow *.*:300<-200"):
        picture, _ = painted(512, 400, theme, ground, (read(line),))
        changed = np.argwhere((picture != picture[0, 0]).any(axis=2))
        (top, left), (bottom, right) = changed.min(axis=0), changed.max(axis=0)
        assert LEAST - 1 <= bottom - top <= LEAST + 1
        assert LEAST - 1 <= right - left <= LEAST + 1
        assert top <= 300 * 400 / 512 <= bottom
        assert left <= 200 * 400 / 512 <= right
        light = luminance(picture[top : bottom + 1, left : right + 1])
        assert (light.max() + 0.05) / (light.min() + 0.05) > 4.5
        seen[line] = picture
    one, other = seen.values()
    assert (one != other).any()


def test_the_kinds_of_a_whole_map_are_known_without_painting_it() -> None:
    mask = DrawnMask(NOW, NEXT, 0, 0)
    assert kinds_of(mask, 4, 4) == set(KINDS)
    assert kinds_of(mask, 1, 4) == {"allowed-next"}
    assert kinds_of(DrawnMask((read("cut *.*:3000<-9"),), NEXT[:1], 0, 0), 4096, 4096) == {
        "restored-next", "cut-next",
    }  # fmt: skip
    assert kinds_of(None, 4, 4) == kinds_of(mask, 0, 0) == set()
