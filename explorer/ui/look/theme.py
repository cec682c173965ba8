"""Light, dark and high-contrast: every colour of the program, and how it reaches Qt.

Colours are plain "#rrggbb" strings, so that this file is the one place to look for them.  Text
reaches a contrast of 4.5 on everything it stands on, 7 in the high-contrast theme (WCAG 2.2).
Sizes follow the application's font: `unit(widget)` is 1.0 at a zoom of 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
    system: Ink  # roles of a conversation
    user: Ink
    assistant: Ink
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
    mark: str  # on cells that are cut or allowed, whatever colour they have
    mark_halo: str

    def origin(self, origin: str) -> Ink:
        """Colours of a token by its origin: prompt, generated, forced or padding."""
        ink: Ink = getattr(self, origin)
        return ink

    def role(self, role: str) -> Ink:
        """Colours of a token by the role of its turn; other roles are like any prompt."""
        roles = {"system": self.system, "user": self.user, "assistant": self.assistant}
        return roles.get(role, self.prompt)

    def phase(self, phase: str) -> str:
        """Colour of a pass: prefill, decode or recompute."""
        colour: str = getattr(self, phase)
        return colour


# Each colour in the light, the dark and the high-contrast theme.
_COLOURS = (
    ("window", "#eff1f5", "#12151b", "#000000"),
    ("card", "#ffffff", "#1b1f27", "#000000"),
    ("field", "#f7f8fa", "#14181f", "#000000"),
    ("raised", "#ffffff", "#262b36", "#000000"),
    ("hover", "#eceff5", "#2c323f", "#2b2b00"),
    ("pressed", "#dfe4ee", "#363d4c", "#4d4d00"),
    ("border", "#d8dde6", "#2f3644", "#ffffff"),
    ("strong_border", "#76809a", "#7a869d", "#ffffff"),
    ("text", "#1a2130", "#e9ecf2", "#ffffff"),
    ("muted", "#566074", "#a4adbd", "#e6e6e6"),
    ("disabled", "#9aa3b2", "#667085", "#a0a0a0"),
    ("off", "#d8dde6", "#2f3644", "#5a5a5a"),
    ("accent", "#3355cc", "#8fa8ff", "#ffe000"),
    ("accent_hover", "#2743ab", "#abbeff", "#fff27a"),
    ("on_accent", "#ffffff", "#0f1424", "#000000"),
    ("selection", "#dfe6fb", "#2c3966", "#ffe000"),
    ("on_selection", "#1a2130", "#f2f4fa", "#000000"),
    ("good", "#1d7044", "#6fd0a0", "#5cff9d"),
    ("warning", "#8a5a00", "#f0c060", "#ffc400"),
    ("danger", "#b3261e", "#ff8f85", "#ffa39c"),
    ("danger_soft", "#fbe9e7", "#3d2224", "#330000"),
    ("prefill", "#3355cc", "#8fa8ff", "#8fd3ff"),
    ("decode", "#1b8a66", "#4cc79b", "#5cff9d"),
    ("recompute", "#c25708", "#f0954a", "#ffb066"),
    ("raw", "#7488bd", "#6c7aa5", "#9a9a9a"),
    ("final", "#3355cc", "#8fa8ff", "#ffe000"),
    ("rest", "#878fa0", "#6f7a90", "#7a7a7a"),
    ("formula", "#c25708", "#f0954a", "#ffb066"),
    ("band", "#dfe6fb", "#2c3966", "#2b2b00"),
    ("grid", "#e4e8ef", "#2a303c", "#5a5a5a"),
    ("masked", "#e6e9ef", "#5a5550", "#5e564b"),
    ("absent", "#f7f8fa", "#171b22", "#000000"),
    ("hatch", "#7f899b", "#a39d94", "#b4b4b4"),
    ("cursor", "#ffffff", "#ffffff", "#ffffff"),
    ("cursor_halo", "#d4380d", "#ff7043", "#ff4d00"),
    ("mark", "#111827", "#0b0e14", "#000000"),
    ("mark_halo", "#ffffff", "#ffffff", "#ffffff"),
)
# The same of inks: fill, edge and text.
_INKS = (
    ("prompt", "#eaeef6 #7583a2 #1a2130", "#2a303d #78849c #e9ecf2", "#000000 #ffffff #ffffff"),
    ("generated", "#d6efe5 #1b8a66 #10291f", "#17392f #4cc79b #e2f6ee", "#00341f #5cff9d #ffffff"),
    ("forced", "#fbe3d0 #c25708 #3a1c05", "#45290f #f0954a #fdeee1", "#3d1d00 #ffb066 #ffffff"),
    ("padding", "#f4f5f7 #7b8599 #5a6376", "#1b1f27 #76829a #a4adbd", "#000000 #a0a0a0 #e6e6e6"),
    ("system", "#f0e4fb #7a3fb5 #241338", "#3a2a55 #b99bf0 #f3ecff", "#2a0040 #d9a6ff #ffffff"),
    ("user", "#dfe6fb #3355cc #1a2130", "#2c3966 #8fa8ff #f2f4fa", "#001f3d #8fd3ff #ffffff"),
    ("assistant", "#d6efe5 #1b8a66 #10291f", "#17392f #4cc79b #e2f6ee", "#00341f #5cff9d #ffffff"),
)


def _theme(column: int, name: str, title: str) -> Theme:
    parts: dict[str, Any] = {row[0]: row[column] for row in _COLOURS}
    parts.update((row[0], Ink(*row[column].split())) for row in _INKS)
    return Theme(name=name, title=title, dark=name != "light", **parts)


LIGHT = _theme(1, "light", "Light")
DARK = _theme(2, "dark", "Dark")
HIGH_CONTRAST = _theme(3, "high_contrast", "High contrast")

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
