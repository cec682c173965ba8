"""Light, dark and high-contrast: every colour of the program, and how it reaches Qt.

Colours are plain "#rrggbb" strings, so that this file is the one place to look for them.  Text
reaches a contrast of 4.5 on everything it stands on, 7 in the high-contrast theme (WCAG 2.2).
Sizes follow the application's font: `unit(widget)` is 1.0 at a zoom of 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette
from PySide6.QtWidgets import QWidget

BASE_FONT_PX = 13
MIN_SCALE, MAX_SCALE = 0.75, 2.5  # at the desk
WALL_SCALE = 10.0  # on the largest screen of a class
_FAMILIES = (
    *("Inter", "Segoe UI Variable Text", "Segoe UI", "SF Pro Text", "Ubuntu", "Cantarell"),
    *("Noto Sans", "Open Sans", "DejaVu Sans"),
)


@dataclass(frozen=True, slots=True)
class Ink:
    """One kind of thing on screen: its surface, the line around it, the text on it."""

    fill: str
    edge: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """One complete palette; nothing in the program takes a colour from anywhere else."""

    name: str
    title: str
    dark: bool
    # Surfaces, from the back to the front
    window: str
    card: str
    field: str
    raised: str
    hover: str
    pressed: str
    border: str
    strong_border: str
    # Text and the one accent
    text: str
    muted: str
    disabled: str
    off: str  # lines and surfaces of what is disabled
    accent: str
    accent_hover: str
    on_accent: str
    selection: str
    on_selection: str
    # States
    good: str
    warning: str
    danger: str
    danger_soft: str
    # Kinds of token, of pass and of bar
    prompt: Ink
    generated: Ink
    forced: Ink
    padding: Ink
    prefill: str
    decode: str
    recompute: str
    raw: str  # the model's own probabilities
    final: str  # after the sampling chain
    rest: str  # everything that has no row of its own
    formula: str  # computed, not measured
    band: str  # behind the selected column, whatever colours it has
    grid: str
    # Maps
    masked: str
    absent: str
    hatch: str
    cursor: str  # lines drawn over a map of any colour
    cursor_halo: str

    def origin(self, origin: str) -> Ink:
        """Colours of a token by its origin: prompt, generated, forced or padding."""
        ink: Ink = getattr(self, origin)
        return ink

    def phase(self, phase: str) -> str:
        """Colour of a pass: prefill, decode or recompute."""
        colour: str = getattr(self, phase)
        return colour


LIGHT = Theme(
    name="light",
    title="Light",
    dark=False,
    window="#eff1f5",
    card="#ffffff",
    field="#f7f8fa",
    raised="#ffffff",
    hover="#eceff5",
    pressed="#dfe4ee",
    border="#d8dde6",
    strong_border="#76809a",
    text="#1a2130",
    muted="#566074",
    disabled="#9aa3b2",
    off="#d8dde6",
    accent="#3355cc",
    accent_hover="#2743ab",
    on_accent="#ffffff",
    selection="#dfe6fb",
    on_selection="#1a2130",
    good="#1d7044",
    warning="#8a5a00",
    danger="#b3261e",
    danger_soft="#fbe9e7",
    prompt=Ink("#eaeef6", "#7583a2", "#1a2130"),
    generated=Ink("#d6efe5", "#1b8a66", "#10291f"),
    forced=Ink("#fbe3d0", "#c25708", "#3a1c05"),
    padding=Ink("#f4f5f7", "#7b8599", "#5a6376"),
    prefill="#3355cc",
    decode="#1b8a66",
    recompute="#c25708",
    raw="#7488bd",
    final="#3355cc",
    rest="#878fa0",
    formula="#c25708",
    band="#dfe6fb",
    grid="#e4e8ef",
    masked="#e6e9ef",
    absent="#f7f8fa",
    hatch="#7f899b",
    cursor="#ffffff",
    cursor_halo="#d4380d",
)

DARK = Theme(
    name="dark",
    title="Dark",
    dark=True,
    window="#12151b",
    card="#1b1f27",
    field="#14181f",
    raised="#262b36",
    hover="#2c323f",
    pressed="#363d4c",
    border="#2f3644",
    strong_border="#7a869d",
    text="#e9ecf2",
    muted="#a4adbd",
    disabled="#667085",
    off="#2f3644",
    accent="#8fa8ff",
    accent_hover="#abbeff",
    on_accent="#0f1424",
    selection="#2c3966",
    on_selection="#f2f4fa",
    good="#6fd0a0",
    warning="#f0c060",
    danger="#ff8f85",
    danger_soft="#3d2224",
    prompt=Ink("#2a303d", "#78849c", "#e9ecf2"),
    generated=Ink("#17392f", "#4cc79b", "#e2f6ee"),
    forced=Ink("#45290f", "#f0954a", "#fdeee1"),
    padding=Ink("#1b1f27", "#76829a", "#a4adbd"),
    prefill="#8fa8ff",
    decode="#4cc79b",
    recompute="#f0954a",
    raw="#6c7aa5",
    final="#8fa8ff",
    rest="#6f7a90",
    formula="#f0954a",
    band="#2c3966",
    grid="#2a303c",
    masked="#5a5550",
    absent="#171b22",
    hatch="#a39d94",
    cursor="#ffffff",
    cursor_halo="#ff7043",
)

HIGH_CONTRAST = Theme(
    name="high_contrast",
    title="High contrast",
    dark=True,
    window="#000000",
    card="#000000",
    field="#000000",
    raised="#000000",
    hover="#2b2b00",
    pressed="#4d4d00",
    border="#ffffff",
    strong_border="#ffffff",
    text="#ffffff",
    muted="#e6e6e6",
    disabled="#a0a0a0",
    off="#5a5a5a",
    accent="#ffe000",
    accent_hover="#fff27a",
    on_accent="#000000",
    selection="#ffe000",
    on_selection="#000000",
    good="#5cff9d",
    warning="#ffc400",
    danger="#ffa39c",
    danger_soft="#330000",
    prompt=Ink("#000000", "#ffffff", "#ffffff"),
    generated=Ink("#00341f", "#5cff9d", "#ffffff"),
    forced=Ink("#3d1d00", "#ffb066", "#ffffff"),
    padding=Ink("#000000", "#a0a0a0", "#e6e6e6"),
    prefill="#8fd3ff",
    decode="#5cff9d",
    recompute="#ffb066",
    raw="#9a9a9a",
    final="#ffe000",
    rest="#7a7a7a",
    formula="#ffb066",
    band="#2b2b00",
    grid="#5a5a5a",
    masked="#5e564b",
    absent="#000000",
    hatch="#b4b4b4",
    cursor="#ffffff",
    cursor_halo="#ff4d00",
)

THEMES: dict[str, Theme] = {theme.name: theme for theme in (LIGHT, DARK, HIGH_CONTRAST)}


def ui_font(scale: float = 1.0) -> QFont:
    """The font of everything; in pixels, so that a zoom of 1 looks the same on every system."""
    installed = set(QFontDatabase.families())
    font = QFont()
    font.setFamilies([family for family in _FAMILIES if family in installed] or [font.family()])
    font.setPixelSize(max(8, round(BASE_FONT_PX * scale)))
    return font


def unit(widget: QWidget) -> float:
    """The zoom a widget is drawn at, read from its own font; sizes are multiplied by it."""
    # Asked for at every paint: what the font really is costs twenty times what it was set to.
    size = widget.font().pixelSize()
    return (size if size > 0 else widget.fontInfo().pixelSize()) / BASE_FONT_PX


def palette(theme: Theme) -> QPalette:
    """The theme as Qt's roles, for what no stylesheet reaches."""
    role = QPalette.ColorRole
    colours = {
        role.Window: theme.window,
        role.WindowText: theme.text,
        role.Base: theme.field,
        role.AlternateBase: theme.card,
        role.Text: theme.text,
        role.PlaceholderText: theme.muted,
        role.Button: theme.raised,
        role.ButtonText: theme.text,
        role.BrightText: theme.danger,
        role.ToolTipBase: theme.raised,
        role.ToolTipText: theme.text,
        role.Highlight: theme.selection,
        role.HighlightedText: theme.on_selection,
        role.Accent: theme.accent,
        role.Link: theme.accent,
        role.LinkVisited: theme.accent,
        role.Light: theme.hover,
        role.Midlight: theme.border,
        role.Mid: theme.border,
        role.Dark: theme.strong_border,
        role.Shadow: theme.strong_border,
    }
    result = QPalette()
    for which, colour in colours.items():
        result.setColor(which, QColor(colour))
    for which in (role.WindowText, role.Text, role.ButtonText, role.HighlightedText):
        result.setColor(QPalette.ColorGroup.Disabled, which, QColor(theme.disabled))
    return result


def contrast(first: str, second: str) -> float:
    """WCAG contrast of two "#rrggbb" colours, 1 to 21."""
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
