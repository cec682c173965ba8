"""The view that a session's file keeps: taken from the window, and put back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from explorer.trace.files.saved_view import SavedView
from explorer.ui.look.theme import THEMES

if TYPE_CHECKING:
    from explorer.ui.frame.docks import Docks
    from explorer.ui.look.appearance import Appearance


def look_at(docks: Docks, look: Appearance) -> SavedView:
    """What of the panels is on screen, and how."""
    enlarged = docks.enlarged
    # Beside an enlarged panel the others are hidden, but only until it is back in its place.
    seen = [] if enlarged is not None else [d for d in docks.docks if not d.isHidden()]
    made = [dock.panel for dock in docks.docks if dock.made]
    return SavedView(
        theme=look.theme.name,
        zoom=look.scale,
        shown=tuple(dock.place.id for dock in seen),
        in_front=tuple(dock.place.id for dock in seen if dock.in_front),
        enlarged="" if enlarged is None else enlarged.place.id,
        choices={panel.ID: panel.choices() for panel in made if panel.choices()},
    )


def show(seen: SavedView, docks: Docks, look: Appearance) -> None:
    """Put the view back; in presenter mode panels stay where they are."""
    show_panels(seen, docks, look)
    show_choices(seen, docks)


def show_panels(seen: SavedView, docks: Docks, look: Appearance) -> None:
    """Its theme, its zoom and its panels; what it leaves out stays as it is."""
    if seen.theme in THEMES and seen.theme != look.theme.name:
        look.show_theme(seen.theme)
    if seen.zoom and not look.presenting:
        look.show_zoom(seen.zoom)
    if not look.presenting:
        docks.see(seen.shown, seen.in_front, seen.enlarged)
        return
    first = next(filter(None, [seen.enlarged, *seen.in_front, *seen.shown]), "")
    if any(dock.place.id == first for dock in docks.docks):
        docks.bring_up(first)


def show_choices(seen: SavedView, docks: Docks) -> None:
    """What the lists and pages of the panels are turned to."""
    for dock in docks.docks:
        choices = seen.choices.get(dock.place.id)
        if choices and (dock.made or not dock.isHidden()):
            dock.panel.choose(choices)
