"""What a page points at, as a widget of the window and the part of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QRect
from PySide6.QtWidgets import QWidget

from explorer.lessons.lesson import LookAt
from explorer.ui.access.outline import PartOutline
from explorer.ui.canvases.maps.atlas import AtlasView
from explorer.ui.canvases.maps.heatmap import Heatmap
from explorer.ui.canvases.tokens.token_strip import TokenStrip
from explorer.ui.frame.docks import Docks
from explorer.ui.frame.token_area import TokenArea
from explorer.ui.frame.topbar import TopBar
from explorer.ui.inputs.prompt import PromptBox
from explorer.ui.inputs.sampling_controls import SamplingControls
from explorer.ui.inputs.stop_rules import StopControls
from explorer.ui.panels.attention.panel import AttentionPanel

TOKENS = "tokens"  # the strip of all tokens, as what a question hides
translate = QCoreApplication.translate
Target = tuple[QWidget, Callable[[], QRect | None] | None]  # and the part of it


@dataclass(frozen=True, slots=True)
class WindowParts:
    """The parts of the window that a lesson can point into."""

    docks: Docks
    topbar: TopBar
    tokens: TokenArea
    prompt: PromptBox
    sampling: SamplingControls
    stops: StopControls
    show_settings: Callable[[bool], None]


def not_there() -> str:
    """Why nothing is outlined."""
    return translate("Targets", "What this page points at is not on screen now.")


def settings(parts: WindowParts) -> Mapping[str, QWidget]:
    """The controls of the column of settings, by the names that a lesson calls them."""
    return {
        "prompt": parts.prompt,
        "sampling": parts.sampling,
        **parts.sampling.controls,
        "stops": parts.stops,
    }


def others(parts: WindowParts) -> Mapping[str, QWidget]:
    """Controls that are always in sight."""
    return {
        "tokens": parts.tokens.strip,
        "timeline": parts.tokens.timeline,
        **parts.topbar.controls,
    }


def names(parts: WindowParts) -> frozenset[str]:
    """Every name that may follow “control:”."""
    return frozenset([*settings(parts), *others(parts)])


def point(outline: PartOutline, parts: WindowParts, target: LookAt) -> bool:
    """Surround what a page points at; False if it is not on screen."""
    if in_settings(parts, target):
        parts.show_settings(True)
    found = _found(parts, target)
    if found is None or not found[0].isVisible():
        outline.clear()
        return False
    outline.point_at(*found)
    return True


def in_settings(parts: WindowParts, target: LookAt) -> bool:
    """True for a control of the column of settings, which may be folded away."""
    return target.kind == "control" and target.name in settings(parts)


def place_of(target: LookAt) -> str:
    """The ID of what a question may hide and the target is in; "" = always in sight."""
    if target.kind == "panel":
        return target.name
    if target.kind == "control":
        return TOKENS if target.name in (TOKENS, "timeline") else ""
    return TOKENS if target.kind == "token" else AttentionPanel.ID


def covered(parts: WindowParts) -> list[tuple[str, QWidget, str, tuple[QWidget, ...]]]:
    """What a question can hide: ID, widget, title, and what is disabled meanwhile."""
    docks = parts.docks.docks
    return [
        *((d.place.id, d, d.place.words, (d.panel,) if d.made else ()) for d in docks),
        (TOKENS, parts.tokens, translate("Targets", "The list of tokens"), ()),
    ]


def _found(parts: WindowParts, target: LookAt) -> Target | None:
    if target.kind == "panel":
        docks = {dock.place.id: dock for dock in parts.docks.docks}
        if target.name in docks:
            parts.docks.bring_up(target.name)
        return None if target.name not in docks else (docks[target.name], None)
    if target.kind == "token" or target.name == TOKENS:
        parts.tokens.as_text.setChecked(False)  # the boxes are what is pointed at
    if target.kind == "control":
        control = settings(parts).get(target.name) or others(parts).get(target.name)
        return None if control is None else (control, None)
    if target.kind == "token":
        return _token(parts.tokens.strip, target.first)
    panel = parts.docks.bring_up(AttentionPanel.ID)
    assert isinstance(panel, AttentionPanel)
    if target.kind == "head":
        return _head(panel.heads.atlas, target.first, target.second)
    panel.tools.view.setCurrentIndex(panel.tools.view.findData("maps"))
    return _cell(panel.pages.maps.maps[0], target.first, target.second)


def _token(strip: TokenStrip, slot: int) -> Target | None:
    if slot >= len(strip.boxes):
        return None
    strip.reveal(slot)

    def area() -> QRect | None:
        return strip.box_rect(slot).toAlignedRect() if slot < len(strip.boxes) else None

    return strip.viewport(), area


def _head(atlas: AtlasView, layer: int, head: int) -> Target | None:
    def area() -> QRect | None:
        found = atlas.head_rect(layer, head)
        return None if found is None else found.toAlignedRect()

    atlas.reveal(layer, head)
    return None if area() is None else (atlas.viewport(), area)


def _cell(heatmap: Heatmap, query: int, key: int) -> Target | None:
    if not heatmap.has_map or query >= heatmap.view.rows or key >= heatmap.view.columns:
        return None
    heatmap.view.reveal(query, key)
    heatmap.redraw()
    return heatmap, lambda: heatmap.cell_rect(query, key).toAlignedRect()
