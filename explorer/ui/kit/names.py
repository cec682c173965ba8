"""Names from elsewhere as the text of a button or an entry: every letter is shown."""

from __future__ import annotations

from explorer.figures.text import sentences


def literal(text: str) -> str:
    """For buttons, menus and tabs, where Qt would take & for a key and a tab for a column."""
    return sentences.name(text).replace("&", "&&")
