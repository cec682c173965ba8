"""Words that stand in one place and are translated in another."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["QT_TRANSLATE_NOOP"]

if TYPE_CHECKING:

    def QT_TRANSLATE_NOOP(context: str, text: str, /) -> str:
        """Mark `text` for pyside6-lupdate and return it; in Qt's stubs it is any object."""
else:
    from PySide6.QtCore import QT_TRANSLATE_NOOP
