"""What can be wrong with a text before any model has seen it."""

from __future__ import annotations


def encoding_problem(text: str) -> str:
    """One sentence if the text is not valid Unicode (a lone surrogate); else empty."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        return (
            f"The prompt holds half of a character (lone surrogate U+{code:04X}, character "
            f"{error.start + 1}), which no text file can hold; delete it and try again."
        )
    return ""
