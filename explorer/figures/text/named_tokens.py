"""Which tokens a user means by a text or a number."""

from __future__ import annotations

from collections.abc import Mapping

from explorer.figures.text.characters import from_pictures
from explorer.trace.step import Token
from explorer.trace.vocabulary import Vocabulary


def named(
    text: str, size: int, names: Vocabulary | None, known: Mapping[int, Token] | None = None
) -> list[int]:
    """Ids below `size`: the number itself, then every entry with that text, or a space before it.

    Without a vocabulary only `known` tokens have a text.
    """
    found = []
    number = text.strip().removeprefix("#")
    if number.isascii() and number.isdigit() and len(number) < 12 and int(number) < size:
        found.append(int(number))
    for data in _spellings(text):
        if names is not None:
            found += names.spelled(data)
        else:
            found += [i for i, token in sorted((known or {}).items()) if token.raw == data]
    return [i for i in dict.fromkeys(found) if i < size]


def beginning(text: str, names: Vocabulary, most: int) -> list[int]:
    """At most so many ids: those that `text` names, then those that begin with it."""
    found = named(text, len(names), names)
    for data in _spellings(text) if text else ():
        found += names.beginning(data, most)
    return list(dict.fromkeys(found))[:most]


def _spellings(text: str) -> tuple[bytes, bytes]:
    """As typed, and after a space."""
    typed = from_pictures(text).encode("utf-8", "surrogatepass")
    return typed, b" " + typed
