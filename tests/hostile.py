"""Names and sentences as an attacker, or a careless author, would put them into a file."""

from __future__ import annotations

import re
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass, replace
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

MARKUP = "R&D <b>catnip<br> &lt; <s> <p>"
ACTING = "\x1b]0;owned\x07\x1b[31m\x9b1m\u202eRED\r"
TEXT = f"{MARKUP} {ACTING}"
WORD = "w" * 150_000

ACTS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066\u2067]")
"""What no text for people may hold: it drives a terminal, or turns the order of reading."""


def poisoned(value: T, text: str) -> T:
    """The same, with `text` added to every string in it that may be anything."""
    return _in(value, text, type(value))  # type: ignore[no-any-return]


def _in(value: Any, text: str, kind: Any) -> Any:
    if isinstance(value, str):
        return value + text if kind in (str, "str", None) else value
    if isinstance(value, tuple):
        return tuple(
            _in(part, text, str if isinstance(part, str) else type(part)) for part in value
        )
    if isinstance(value, msgspec.Struct):
        named = {f.name: f.type for f in msgspec.structs.fields(value)}
        changed = {n: _in(getattr(value, n), text, k) for n, k in named.items() if _open(k)}
        return msgspec.structs.replace(value, **changed)
    if is_dataclass(value) and not isinstance(value, type):
        kinds = {f.name: str(f.type) for f in dataclass_fields(value)}
        return replace(value, **{  # type: ignore[type-var]
            n: _in(getattr(value, n), text, k) for n, k in kinds.items() if k == "str"
        })  # fmt: skip
    return value


def _open(kind: Any) -> bool:
    """False for a field that takes a few words only."""
    return "Literal" not in str(kind)
