"""The small language of live figures: names, numbers, texts, fixed functions, comparisons.

    p(' Paris') > 0.5        kv_bytes / token_count        when(rank('red') == 1, 'red', 'another')

An expression is parsed here into frozen nodes and worked out by walking them.  It can only name
what its table of names holds; nothing of it is ever run as code.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from explorer.lessons.quantities import (
    COMPARISONS,
    NamedFigure,
    NotKnown,
    Quantity,
    Value,
    operated,
)

MOST_LETTERS = 400
MOST_NODES = 60
MOST_DEPTH = 12
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d{1,15}(?:\.\d{0,15})?|\.\d{1,15}))"
    r"|(?P<text>'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign><=|>=|==|!=|[-+*/<>(),]))"
)
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}


class ExpressionError(ValueError):
    """Why a text is no expression, as one sentence."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A number or a text as it was written."""

    value: Quantity


@dataclass(frozen=True, slots=True)
class FigureCall:
    """A name with its arguments."""

    figure: NamedFigure
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """A sign or a word between two parts; "not" and "negative" have one part."""

    sign: str
    parts: tuple[Node, ...]


Node = Constant | FigureCall | Operation


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression."""

    source: str
    root: Node

    def value(self, facts: Any) -> Value:
        """Its value for these facts; NotKnown with the reason if a part of it can't be had."""
        return _value(self.root, facts)


def parse(source: str, names: Mapping[str, NamedFigure]) -> Expression:
    """The expression that `source` spells; ExpressionError if it is none or is too large."""
    if len(source) > MOST_LETTERS:
        raise ExpressionError(f"An expression has at most {MOST_LETTERS} characters.")
    return Expression(source.strip(), _Parser(source, names).whole())


class _Parser:
    """Recursive descent; counts nodes and depth."""

    def __init__(self, source: str, names: Mapping[str, NamedFigure]) -> None:
        self._names = names
        self._parts = _parts(source)
        self._at = self._nodes = self._depth = 0

    def whole(self) -> Node:
        node = self._any_of()
        if self._at < len(self._parts):
            raise ExpressionError(f"“{self._parts[self._at][1]}” is not expected there.")
        return node

    def _any_of(self) -> Node:
        return self._chain(("or",), self._all_of)

    def _all_of(self) -> Node:
        return self._chain(("and",), self._comparison)

    def _comparison(self) -> Node:
        if self._take("not"):
            self._deeper()
            node = self._made(Operation("not", (self._comparison(),)))
            self._depth -= 1
            return node
        left = self._sum()
        sign = self._take(*COMPARISONS)
        if not sign:
            return left
        node = self._made(Operation(sign, (left, self._sum())))
        if self._peek() in COMPARISONS:
            raise ExpressionError("Compare two values at a time; join comparisons with “and”.")
        return node

    def _sum(self) -> Node:
        return self._chain(("+", "-"), self._product)

    def _product(self) -> Node:
        return self._chain(("*", "/"), self._unary)

    def _chain(self, signs: tuple[str, ...], part: Callable[[], Node]) -> Node:
        node = part()
        while sign := self._take(*signs):
            node = self._made(Operation(sign, (node, part())))
        return node

    def _unary(self) -> Node:
        if self._take("-"):
            self._deeper()
            node = self._made(Operation("negative", (self._unary(),)))
            self._depth -= 1
            return node
        return self._atom()

    def _atom(self) -> Node:
        if self._at >= len(self._parts):
            raise ExpressionError("The expression ends too early.")
        kind, text = self._parts[self._at]
        self._at += 1
        if kind == "number":
            number = float(text) if "." in text else int(text)
            return self._made(Constant(Quantity(number)))
        if kind == "text":
            return self._made(Constant(Quantity(_unescaped(text[1:-1]), "text")))
        if kind == "name" and text not in ("and", "or", "not"):
            return self._call(text)
        if text != "(":
            raise ExpressionError(f"“{text}” is not expected there.")
        self._deeper()
        node = self._any_of()
        self._expect(")")
        self._depth -= 1
        return node

    def _call(self, name: str) -> Node:
        figure = self._names.get(name)
        if figure is None:
            raise ExpressionError(_unknown(name, self._names))
        arguments: list[Node] = []
        if self._take("("):
            self._deeper()
            while not self._take(")"):
                if arguments:
                    self._expect(",")
                arguments.append(self._any_of())
            self._depth -= 1
        if not figure.least <= len(arguments) <= figure.most:
            raise ExpressionError(_wrong_count(figure, len(arguments)))
        return self._made(FigureCall(figure, tuple(arguments)))

    def _peek(self) -> str:
        known = self._at < len(self._parts) and self._parts[self._at][0] != "text"
        return self._parts[self._at][1] if known else ""

    def _take(self, *texts: str) -> str:
        found = self._peek()
        if found and found in texts:
            self._at += 1
            return found
        return ""

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise ExpressionError(f"A “{text}” is missing.")

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise ExpressionError(f"Brackets are nested more than {MOST_DEPTH} deep.")

    def _made(self, node: Node) -> Node:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise ExpressionError(f"An expression has at most {MOST_NODES} parts.")
        return node


def _parts(source: str) -> list[tuple[str, str]]:
    """The words, numbers, texts and signs, each with its kind."""
    found, at = [], 0
    source = source.rstrip()
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            rest = source[at:].lstrip()[:20]
            if rest[:1] in "'\"":
                raise ExpressionError(f"The text that begins with {rest} has no closing quote.")
            if rest[:1] == "=":
                raise ExpressionError("Write == to compare two values.")
            raise ExpressionError(f"“{rest}” is not part of the language.")
        found.append((str(match.lastgroup), match[str(match.lastgroup)]))
        at = match.end()
    if not found:
        raise ExpressionError("The expression is empty.")
    return found


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), text)


def _unknown(name: str, names: Mapping[str, NamedFigure]) -> str:
    close = difflib.get_close_matches(name, names, 1)
    hint = f"Did you mean “{close[0]}”?" if close else "The guide lists the names there are."
    return f"There is no figure called “{name[:60]}”. {hint}"


def _wrong_count(figure: NamedFigure, count: int) -> str:
    wanted = str(figure.least) if figure.least == figure.most else f"{figure.least}–{figure.most}"
    return f"“{figure.name}” takes {wanted} values in brackets, not {count}."


def _value(node: Node, facts: Any) -> Value:
    if isinstance(node, Constant):
        return node.value
    if isinstance(node, FigureCall):
        return _called(node, facts)
    values: list[Quantity] = []
    for part in node.parts:
        value = _value(part, facts)
        if isinstance(value, NotKnown):
            return value
        if node.sign in ("and", "or") and bool(value.value) is (node.sign == "or"):
            return Quantity(node.sign == "or", "truth")
        values.append(value)
    return operated(node.sign, values)


def _called(node: FigureCall, facts: Any) -> Value:
    if node.figure.name == "when":  # only the part that counts has to be known
        condition = _value(node.arguments[0], facts)
        if isinstance(condition, NotKnown):
            return condition
        return _value(node.arguments[1 if condition.value else 2], facts)
    arguments = []
    for part in node.arguments:
        value = _value(part, facts)
        if isinstance(value, NotKnown):
            return value
        arguments.append(value)
    return node.figure.work(facts, *arguments)
