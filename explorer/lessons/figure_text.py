"""Sentences with live figures in them: "{p(' Paris')} of the probability", parsed and filled in."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from explorer.lessons.expressions import Expression, ExpressionError, parse
from explorer.lessons.quantities import NamedFigure, NotKnown, Quantity, Unit, Value
from explorer.wording import bytes_text, exact_percent, information, ms_text, percent, short_bytes

MOST_FIGURES = 40  # of one text
NOT_KNOWN = "[not known]"
_FORMAT = re.compile(r"%|exact|bytes|short|ms|nats|count|text|\.\d{1,2}|")


@dataclass(frozen=True, slots=True)
class LiveFigure:
    """One figure in a text, and how it is to be worded; an empty form goes by its unit."""

    expression: Expression
    form: str


@dataclass(frozen=True, slots=True)
class FigureText:
    """A text with figures in it; `parts` are in order."""

    source: str
    parts: tuple[str | LiveFigure, ...]

    @property
    def figures(self) -> tuple[LiveFigure, ...]:
        """The figures alone."""
        return tuple(part for part in self.parts if isinstance(part, LiveFigure))


@dataclass(frozen=True, slots=True)
class FilledPart:
    """A piece of a text as it is shown; `value` if it was measured, or why it was not."""

    text: str
    value: Value | None = None  # None = a piece of the text itself
    expression: str = ""


class FigureTextError(ExpressionError):
    """What is wrong with a text; `line` counts from 0 at its first line."""

    def __init__(self, words: str, line: int) -> None:
        super().__init__(words)
        self.line = line


def parse_text(source: str, names: Mapping[str, NamedFigure]) -> FigureText:
    """The text with its figures; {{ and }} are braces.  FigureTextError names the line."""
    parts: list[str | LiveFigure] = []
    plain, at = "", 0
    while at < len(source):
        letter = source[at]
        if source[at : at + 2] in ("{{", "}}"):
            plain, at = plain + letter, at + 2
        elif letter == "}":
            raise FigureTextError("A } without its {. Write }} for a brace.", _line(source, at))
        elif letter == "{":
            figure, end = _figure(source, at, names)
            parts += [plain, figure] if plain else [figure]
            plain, at = "", end
        else:
            plain, at = plain + letter, at + 1
        if len(parts) > 2 * MOST_FIGURES:
            raise FigureTextError(f"A text has at most {MOST_FIGURES} figures.", _line(source, at))
    return FigureText(source, tuple([*parts, plain] if plain else parts))


def filled(text: FigureText, facts: Any, visible: Callable[[str], str]) -> tuple[FilledPart, ...]:
    """The text with every figure worked out now; `visible` writes a token's text."""
    found = []
    for part in text.parts:
        if isinstance(part, str):
            found.append(FilledPart(part))
        else:
            value = part.expression.value(facts)
            worded = in_words(value, part.form, visible)
            found.append(FilledPart(worded, value, part.expression.source))
    return tuple(found)


def joined(parts: tuple[FilledPart, ...]) -> str:
    """The text in one piece."""
    return "".join(part.text for part in parts)


def in_words(value: Value, form: str, visible: Callable[[str], str]) -> str:
    """One value as it is shown."""
    if isinstance(value, NotKnown):
        return NOT_KNOWN
    if isinstance(value.value, str):
        return visible(value.value)
    number = float(value.value)
    if form in ("", "text"):
        return _by_unit(value, number)
    if form.startswith("."):
        return f"{number:,.{form[1:]}f}"
    return _FORMS[form](number)


def _by_unit(value: Quantity, number: float) -> str:
    if value.unit == "truth":
        return "yes" if value.value else "no"
    form = _UNITS.get(value.unit)
    if form:
        return _FORMS[form](number)
    if not math.isfinite(number):
        return "not a number" if math.isnan(number) else "∞"
    return _whole(number) if number == int(number) or abs(number) >= 1e4 else f"{number:.3g}"


def _whole(number: float) -> str:
    return f"{number:,.0f}" if math.isfinite(number) else "∞"


def _size(words: Callable[[int], str]) -> Callable[[float], str]:
    return lambda number: words(round(number)) if math.isfinite(number) else "∞"


_UNITS: dict[Unit, str] = {
    "share": "%", "count": "count", "bytes": "bytes", "ms": "ms", "nats": "nats",
}  # fmt: skip
_FORMS: dict[str, Callable[[float], str]] = {
    "%": percent, "exact": exact_percent, "count": _whole, "bytes": _size(bytes_text),
    "short": short_bytes, "ms": ms_text, "nats": information,
}  # fmt: skip


def _figure(source: str, begin: int, names: Mapping[str, NamedFigure]) -> tuple[LiveFigure, int]:
    """The figure that opens at `begin`, and where the text goes on."""
    line = _line(source, begin)
    colon, at, quote = -1, begin + 1, ""
    while at < len(source) and (quote or source[at] != "}"):
        letter = source[at]
        if quote:
            at += letter == "\\"
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == ":":
            colon = at
        elif letter in "{\n":
            break
        at += 1
    if at >= len(source) or source[at] != "}":
        raise FigureTextError("A { without its }. Write {{ for a brace.", line)
    inner = source[begin + 1 : at] if colon < 0 else source[begin + 1 : colon]
    form = "" if colon < 0 else source[colon + 1 : at].strip()
    if not _FORMAT.fullmatch(form):
        raise FigureTextError(f"“{form[:20]}” is no format. Try %, .2, bytes or ms.", line)
    try:
        return LiveFigure(parse(inner, names), form), at + 1
    except ExpressionError as error:
        raise FigureTextError(str(error), line) from error


def _line(source: str, at: int) -> int:
    return source.count("\n", 0, at)
