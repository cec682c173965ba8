"""0 %, masked, not computed and the surface around a map: four things, four looks."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication

from explorer.figures.drawing.colormaps import COLOUR_MAPS, difference, lut
from explorer.figures.text.tokens import Label
from explorer.ui.canvases.maps.heatmap import Frame, Heatmap
from explorer.ui.canvases.maps.lut_image import FIRST_LEVEL
from explorer.ui.look.apply_theme import apply
from explorer.ui.look.theme import THEMES, Theme, contrast
from tests.ui.painted import contrasts, luminance, pixels

EVERY = pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
SIDE = 96


def areas(theme: Theme, colours: str, signed: bool) -> dict[str, np.ndarray]:
    """Pixels of each of the four, as a map paints them."""
    levels = np.ones((3, 3), np.uint8)  # masked
    levels[:, 0] = 129 if signed else FIRST_LEVEL
    levels[:, 2] = 0
    chart = Heatmap(theme)
    chart.resize(3 * SIDE + 80, 3 * SIDE + 40)
    chart.set_frame(Frame(10, 10))
    chart.set_colours(colours)
    chart.set_map(levels, [Label("a", False, False, 0, 0)] * 3, signed=signed)
    chart.view.fit()
    seen = pixels(chart)
    drawn = chart.drawn_area()
    cell = int(drawn.width() / 3)
    top, left = int(drawn.top()) + 12, int(drawn.left())
    found = {
        name: seen[top : top + cell - 24, left + place * cell + 12 : left + (place + 1) * cell - 12]
        for place, name in enumerate(("zero", "masked", "absent"))
    }
    return {**found, "around": seen[-12:-2, -12:-2]}


def differs(first: np.ndarray, second: np.ndarray) -> bool:
    """By surface, or one is patterned where the other is plain."""
    plain = [float(np.median(luminance(area))) for area in (first, second)]
    if (max(plain) + 0.05) / (min(plain) + 0.05) >= 1.35:
        return True
    patterned = [patterned_by(area) for area in (first, second)]
    return max(patterned) >= 2 and min(patterned) <= 1.1


def patterned_by(area: np.ndarray) -> float:
    """The contrast of its pattern to its surface."""
    light = luminance(area)
    return float((light.max() + 0.05) / (light.min() + 0.05))


@EVERY
@pytest.mark.parametrize("colours", [*COLOUR_MAPS, "difference"])
def test_each_is_told_from_the_others(qapp: QApplication, theme: Theme, colours: str) -> None:
    apply(qapp, theme)
    signed = colours == "difference"
    found = areas(theme, COLOUR_MAPS[0] if signed else colours, signed)
    for (one, first), (other, second) in combinations(found.items(), 2):
        told = differs(first, second)
        # Lines and dots: patterns of two kinds, on surfaces of two shades.
        patterns = {one, other} == {"masked", "absent"}
        assert told or patterns, (one, other)
    assert patterned_by(found["zero"]) <= 1.1
    assert patterned_by(found["absent"]) >= 3
    share = [(contrasts(found[n], np.median(found[n], axis=(0, 1))) > 1.5).mean()
             for n in ("absent", "masked")]  # fmt: skip
    assert share[0] < 0.06 < share[1]  # dots, and lines


@EVERY
def test_both_ends_of_a_difference_stand_out_and_apart(theme: Theme) -> None:
    table = lut(difference(theme.dark))
    less, none, more = ("#" + bytes(table[i]).hex() for i in (0, 127, 255))
    for end in (less, more):
        assert contrast(end, theme.card) >= 3
        assert contrast(end, none) >= 3
    # Blue and orange, not two kinds of white.
    assert np.abs(table[0].astype(int) - table[255]).sum() > 200
    away = np.abs(table.astype(int) - table[127]).sum(axis=1)
    assert (np.diff(away[127:]) >= -2).all()
    assert (np.diff(away[:128]) <= 2).all()
