"""One row of the table of actions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from explorer.session.state import State
from explorer.ui.menus.action_window import ActionWindow
from explorer.ui.settings.preferences import Preference


def _always(state: State) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One row of the table.  Text and tip are translated in the context "actions"."""

    id: str
    menu: str
    text: str
    tip: str
    act: Callable[[ActionWindow], object]
    keys: tuple[str, ...] = ()  # a key without Ctrl or Alt never acts while something takes text
    presenter_keys: tuple[str, ...] | None = None  # in presenter mode, where they are others
    lesson_keys: tuple[str, ...] = ()  # while a lesson is open; no other row has them then
    icon: str = ""
    enabled: Callable[[State], bool] = _always
    checked: Callable[[State], bool] | None = None
    preference: Preference | None = None  # checked while it is on; to act is to switch it
    checked_text: str = ""  # what it is called and looks like while it is checked, if otherwise
    checked_icon: str = ""
    named: Callable[[State], str] | None = None  # a text that depends on the state, if any does
    locked_when_presenting: bool = False  # could be hit by accident in front of a class
    line_before: bool = False
