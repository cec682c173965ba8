"""What the frame needs of the table of actions, which stands above it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from PySide6.QtGui import QAction


class OfferedActions(Protocol):
    """The rows of the table as Qt actions."""

    @property
    def by_id(self) -> Mapping[str, QAction]: ...

    def names(self, row_id: str) -> list[str]:
        """What an action is called, on and off."""

    def set_presenting(self, on: bool) -> None:
        """Lock what could be hit by accident in front of a class."""
