"""What long work is handed: a question whether to stop, and somebody to tell how far it is."""

from __future__ import annotations

from collections.abc import Callable

Stop = Callable[[], bool]  # True = end; asked often, from the thread that works
Report = Callable[[str, float | None], None]  # what is being done, and its share; None = not known


def never() -> bool:
    """A stop that nobody asks for."""
    return False


def nobody(text: str, fraction: float | None) -> None:
    """A report that nobody reads."""


def nothing() -> None:
    """What nobody asks to be done."""
