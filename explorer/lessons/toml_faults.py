"""What is wrong with a text that is no TOML, in words for people who do not write it often."""

from __future__ import annotations

import re
from collections.abc import Sequence

PAGES = "Each page begins with [[page]], in two pairs of brackets."
_NO_QUOTE = "A text has no closing quote."
_PAGE = re.compile(r"\s*\[\s*page\s*\]")
_CURLY = re.compile(r"(?:^|[=\[,{])\s*[“”„‘’‚]")
_TEXT = re.compile(r"\"(?:\\.|[^\"\\])*\"|'[^']*'")
_UNFINISHED = ("Unterminated string", 'Expected "\'"', "Expected \"'''\"")


def explained(text: str, line: int, said: str) -> tuple[int, str]:
    """The line, from 1, and a sentence for what a parser `said` about this line."""
    rows = text.splitlines() or [""]
    row = rows[min(line, len(rows)) - 1]
    bare = _TEXT.sub("", row).partition("#")[0]
    if _CURLY.search(bare):
        return line, "Use straight quotes (\" or '), not curly ones."
    if _PAGE.match(row):
        return line, PAGES
    if said.startswith(_UNFINISHED):
        return _opened(rows, line)
    if said.endswith("character '\\n'") or bare.count('"') % 2:
        return line, _NO_QUOTE
    if bare.count("{") > bare.count("}"):
        return line, "Write all of { … } on one line."
    return line, f"{said}."


def _opened(rows: Sequence[str], last: int) -> tuple[int, str]:
    """Where the text begins that has no end."""
    for mark in ('"""', "'''"):
        found = [number for number, row in enumerate(rows, 1) for _ in range(row.count(mark))]
        if len(found) % 2:
            return found[-1], f"A text that begins with {mark} has no closing {mark}."
    for number, row in enumerate(rows, 1):
        if re.match(r"[^\"']*=\s*'[^']*$", row):
            return number, _NO_QUOTE
    return last, _NO_QUOTE
