"""The themes are legible, and reach everything Qt draws."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QIcon, QPalette
from PySide6.QtWidgets import (
    QApplication,
    QLabel,
    QPushButton,
    QSlider,
    QStyle,
    QStyleOptionSlider,
    QVBoxLayout,
    QWidget,
)

from explorer import places
from explorer.figures.drawing.colormaps import COLOUR_MAPS, lut
from explorer.ui.kit.wheel_guard import Slider
from explorer.ui.look import theme as themes
from explorer.ui.look.apply_theme import apply
from explorer.ui.look.icons import icon
from explorer.ui.look.theme import THEMES, Theme, contrast, unit

EVERY = pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
SURFACES = ("window", "card", "field", "raised", "hover", "pressed")


def _text_pairs(theme: Theme) -> list[tuple[str, str]]:
    pairs = [(theme.text, getattr(theme, name)) for name in SURFACES]
    pairs += [(theme.muted, getattr(theme, name)) for name in ("window", "card", "field", "hover")]
    pairs += [
        (theme.on_accent, theme.accent),
        (theme.on_accent, theme.accent_hover),
        (theme.on_selection, theme.selection),
        (theme.text, theme.danger_soft),
        (theme.danger, theme.card),
        (theme.danger, theme.window),
        (theme.warning, theme.card),
        (theme.good, theme.card),
        (theme.accent, theme.card),
        (theme.accent, theme.window),
    ]
    inks = (theme.prompt, theme.generated, theme.forced, theme.padding)
    return pairs + [(ink.text, ink.fill) for ink in inks]


def test_contrast_is_wcags() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@EVERY
def test_every_text_is_legible(theme: Theme) -> None:
    least = 7 if theme is themes.HIGH_CONTRAST else 4.5
    poor = [pair for pair in _text_pairs(theme) if contrast(*pair) < least]
    assert not poor


@EVERY
def test_what_carries_meaning_without_text_stands_out(theme: Theme) -> None:
    """WCAG asks 3 to 1 of bars, lines and marks."""
    marks = (theme.prefill, theme.decode, theme.recompute, theme.final, theme.formula)
    assert min(contrast(mark, theme.card) for mark in marks) >= 3


@EVERY
@pytest.mark.parametrize("name", COLOUR_MAPS)
def test_a_masked_cell_is_no_colour_of_a_map(theme: Theme, name: str) -> None:
    for special in (theme.masked, theme.absent):
        rgb = [int(special[i : i + 2], 16) for i in (1, 3, 5)]
        distance = np.abs(lut(name).astype(int) - rgb).sum(axis=1).min()
        assert distance > 24
    zero = "#" + bytes(lut(name)[0]).hex()
    assert contrast(theme.masked, zero) > 1.4
    assert contrast(theme.hatch, theme.absent) > 1.7


@EVERY
def test_apply_reaches_palette_style_and_fonts(qapp: QApplication, theme: Theme) -> None:
    apply(qapp, theme, 1.5)
    holder = QWidget()
    layout = QVBoxLayout(holder)
    label, button = QLabel("text"), QPushButton("press")
    layout.addWidget(label)
    layout.addWidget(button)
    holder.ensurePolished()
    label.ensurePolished()
    assert qapp.palette().color(QPalette.ColorRole.Window) == QColor(theme.window)
    assert qapp.style().name() in ("fusion", "")
    assert unit(label) == pytest.approx(1.5, abs=0.05)
    assert unit(button) == pytest.approx(1.5, abs=0.05)


def test_the_zoom_is_bounded(qapp: QApplication) -> None:
    apply(qapp, themes.LIGHT, 99)
    assert unit(QLabel()) == pytest.approx(themes.WALL_SCALE, abs=0.05)
    apply(qapp, themes.LIGHT, 0)
    assert unit(QLabel()) == pytest.approx(themes.MIN_SCALE, abs=0.05)


@EVERY
def test_no_placeholder_is_left_in_the_stylesheet(qapp: QApplication, theme: Theme) -> None:
    apply(qapp, theme, 1.0)
    assert "@" not in qapp.styleSheet()


def test_colour_maps_are_the_published_ones() -> None:
    assert lut("viridis").shape == lut("cividis").shape == (256, 3)
    assert tuple(lut("viridis")[0]) == (68, 1, 84)
    assert tuple(lut("viridis")[255]) == (253, 231, 37)
    assert tuple(lut("cividis")[0])[:2] == (0, 32)
    for name in COLOUR_MAPS:
        luminance = lut(name) @ np.array([0.2126, 0.7152, 0.0722])
        assert (np.diff(luminance) > -0.6).all(), "brighter must always mean more"


@EVERY
def test_every_icon_is_drawn_in_the_themes_colour(qapp: QApplication, theme: Theme) -> None:
    names = [path.stem for path in places.asset("icons").glob("*.svg")]
    assert {"reset", "back", "step", "run", "pause", "mask", "presenter", "save"} <= set(names)
    for name in names:
        image = icon(name, theme).pixmap(QSize(48, 48)).toImage()
        solid = [
            image.pixelColor(x, y)
            for x in range(48)
            for y in range(48)
            if image.pixelColor(x, y).alpha() == 255
        ]
        assert len(solid) > 30, name
        wanted = QColor(theme.text)
        # Where two antialiased shapes overlap, a channel may be off by one.
        assert all(abs(c.red() - wanted.red()) <= 2 for c in solid), name
        assert all(abs(c.blue() - wanted.blue()) <= 2 for c in solid), name


def test_a_disabled_icon_is_greyed(qapp: QApplication) -> None:
    picture = icon("step", themes.DARK)
    normal = picture.pixmap(QSize(32, 32)).toImage()
    greyed = picture.pixmap(QSize(32, 32), QIcon.Mode.Disabled).toImage()
    assert normal != greyed
    assert themes.DARK.disabled in {
        greyed.pixelColor(x, y).name() for x in range(32) for y in range(32)
    }


@EVERY
def test_parts_of_the_selected_column_are_told_from_its_band_and_each_other(theme: Theme) -> None:
    colours = [getattr(theme, name) for name in ("decode", "rest")]
    least = 2 if theme is themes.HIGH_CONTRAST else 1.15
    assert min(contrast(colour, theme.band) for colour in colours) >= least
    assert min(contrast(*pair) for pair in pairwise(colours)) >= 1.15


@EVERY
def test_a_disabled_control_looks_it(qapp: QApplication, theme: Theme) -> None:
    apply(qapp, theme)
    slider, primary = QSlider(Qt.Orientation.Horizontal), QPushButton(" ")
    primary.setProperty("look", "primary")
    slider.setValue(50)
    for control in (slider, primary):
        control.resize(120, 30)
        most = []
        for on in (True, False):
            control.setEnabled(on)
            image = control.grab().toImage()
            seen = {image.pixelColor(x, y).name() for x in range(120) for y in range(30)}
            most.append(max(contrast(colour, theme.window) for colour in seen))
        assert most[1] < 0.6 * most[0]


@pytest.mark.parametrize("scale", [0.8, 1.0, 1.3, 20 / 13, 1.7, 2.0, 2.5])
def test_the_handle_of_a_slider_is_round_at_every_zoom(qapp: QApplication, scale: float) -> None:
    apply(qapp, THEMES["light"], scale)
    slider, option = Slider(Qt.Orientation.Horizontal), QStyleOptionSlider()
    slider.resize(200, round(40 * scale))
    slider.setValue(50)
    slider.initStyleOption(option)
    kind, part = QStyle.ComplexControl.CC_Slider, QStyle.SubControl.SC_SliderHandle
    place = slider.style().subControlRect(kind, option, part, slider)
    image = slider.grab().toImage()
    assert image.pixelColor(place.center().x(), place.top()).name() == THEMES["light"].accent
    for corner in (place.topLeft(), place.topRight(), place.bottomLeft(), place.bottomRight()):
        assert image.pixelColor(corner).name() != THEMES["light"].accent
    apply(qapp, THEMES["light"])
