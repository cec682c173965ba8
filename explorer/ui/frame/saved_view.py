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
        shown=tuple(dock.place.id for dock in seen),
        in_front=tuple(dock.place.id for dock in seen if dock.in_front),
        enlarged="" if enlarged is None else enlarged.place.id,
        choices={panel.ID: panel.choices() for panel in made if panel.choices()},
    )


def show(seen: SavedView, docks: Docks, look: Appearance) -> None:
    """Put the view back; in presenter mode panels stay where they are."""
    if seen.theme in THEMES and seen.theme != look.theme.name:
        look.show_theme(seen.theme)
    if not look.presenting:
        docks.see(seen.shown, seen.in_front, seen.enlarged)
    for dock in docks.docks:
        choices = seen.choices.get(dock.place.id)
        if choices and (dock.made or not dock.isHidden()):
            dock.panel.choose(choices)
