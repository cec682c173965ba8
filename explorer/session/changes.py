"""What changed between two states: how a part of the window says what it depends on."""

from __future__ import annotations

from functools import cache
from operator import attrgetter

from explorer.session.state import State, Status
from explorer.trace.chat import ChatParts
from explorer.trace.request import RunRequest, Sampling, Stops

# What is compared by value; of all else another object is a change, whatever it holds.
_VALUES = (int, str, tuple, Status, RunRequest, Sampling, Stops, ChatParts)
_getter = cache(attrgetter)


def changed(old: State | None, new: State, *parts: str) -> bool:
    """True if one of these attributes changed ("trace", "selection.key"), or `old` is None."""
    return old is None or any(_differ(get(old), get(new)) for get in map(_getter, parts))


def _differ(old: object, new: object) -> bool:
    if old is new:
        return False
    return not isinstance(new, _VALUES) or old != new


def only_points(old: State, new: State) -> bool:
    """True if nothing changed but what of the selected step is looked at: the mouse moved."""
    return old.selection.step == new.selection.step and all(
        getattr(old, name) is getattr(new, name) for name in _BUT_SELECTION
    )


_BUT_SELECTION = tuple(name for name in State.__dataclass_fields__ if name != "selection")
