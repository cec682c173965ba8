"""A letter of its own for each row of a menu, in whatever language: Alt and letters reach all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtWidgets import QMenu

_LITERAL = "\0"  # stands for && while the marks are taken out


def follow(menu: QMenu) -> None:
    """Give out the letters whenever the menu opens, for rows come, go and are renamed."""
    menu.aboutToShow.connect(lambda: give_out(menu))


def give_out(menu: QMenu) -> None:
    """A letter for each row that is seen, as long as there are letters."""
    rows = [row for row in menu.actions() if row.isVisible() and row.text()]
    for row, text in zip(rows, marked(row.text() for row in rows), strict=True):
        if row.text() != text:
            row.setText(text)


def marked(texts: Iterable[str]) -> list[str]:
    """The texts with & before a letter that no other has, where there is a way to give all one.

    A word's beginning is tried first.
    """
    parts = [plain(text).partition("\t") for text in texts]
    owner: dict[str, int] = {}  # of each letter
    for row in range(len(parts)):
        _claim(row, [words for words, _, _ in parts], owner, set())
    letters = {row: letter for letter, row in owner.items()}
    found = []
    for row, (words, tab, keys) in enumerate(parts):
        at = next((at for at in _order(words) if words[at].lower() == letters.get(row)), None)
        words = words if at is None else f"{words[:at]}&{words[at:]}"
        found.append((words + tab + keys).replace(_LITERAL, "&&"))
    return found


def _claim(row: int, texts: Sequence[str], owner: dict[str, int], tried: set[str]) -> bool:
    """Find a letter for a row; one that has it gives way if it can have another."""
    for free_only in (True, False):
        for at in _order(texts[row]):
            letter = texts[row][at].lower()
            if letter in tried or (free_only and letter in owner):
                continue
            tried.add(letter)
            if letter not in owner or _claim(owner[letter], texts, owner, tried):
                owner[letter] = row
                return True
    return False


def plain(text: str) -> str:
    """Without marks; a literal & is the character that stands for it here."""
    return text.replace("&&", _LITERAL).replace("&", "")


def _order(words: str) -> list[int]:
    """Places of letters, those that begin a word first."""
    begins = [at for at in range(len(words)) if at == 0 or not words[at - 1].isalnum()]
    return [at for at in dict.fromkeys((*begins, *range(len(words)))) if words[at].isalnum()]
