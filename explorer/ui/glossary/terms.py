"""The terms of the glossary, read from assets/glossary/<language>/glossary.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache

import msgspec

from explorer.places import asset

ENGLISH = "en"
_FILE = "glossary.toml"


class Term(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One term; `show` names the part of the window where it can be seen, "" if none does."""

    word: str
    group: str  # the ID of its group
    text: str
    show: str = ""
    also: tuple[str, ...] = ()  # other forms that a reader may look for


class Glossary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All terms by ID, in the order of the file, and the titles of their groups."""

    groups: dict[str, str]
    terms: dict[str, Term]

    def matching(self, query: str) -> Mapping[str, Term]:
        """The terms with every word of a query in their names or texts, the closest first."""
        wanted = _plain(query)
        ranked = [(_rank(term, wanted), name) for name, term in self.terms.items()]
        ranked.sort(key=lambda found: found[0])  # the order of the file among equals
        return {name: self.terms[name] for rank, name in ranked if rank < _NOT_THERE}


_NOT_THERE = 3


def _rank(term: Term, wanted: str) -> int:
    """0: the term begins so; 1: it is named so; 2: its text says so; 3: nothing of it does."""
    word, names = _plain(term.word), _plain(" ".join((term.word, *term.also)))
    whole = f"{names} {_plain(term.text)}"
    found = (
        word.startswith(wanted),
        all(part in names for part in wanted.split()),
        all(part in whole for part in wanted.split()),
    )
    return found.index(True) if True in found else _NOT_THERE


def _plain(text: str) -> str:
    """Words alone, in small letters."""
    return " ".join(text.casefold().replace("-", " ").split())


@cache
def glossary(language: str = ENGLISH) -> Glossary:
    """In this language; what it leaves out, or all if there is no such language, in English."""
    english = _read(ENGLISH)
    if language == ENGLISH:
        return english
    try:
        own = _read(language)
    except (OSError, ValueError):  # none, or one that can't be read
        return english
    return Glossary(groups=english.groups | own.groups, terms=english.terms | own.terms)


def _read(language: str) -> Glossary:
    """FileNotFoundError if there is none; ValueError if it is not as it should be."""
    text = asset("glossary", language, _FILE).read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Glossary)
