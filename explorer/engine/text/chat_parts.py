"""Finds a user's message, and where the answer begins, among the tokens of a chat prompt."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from explorer.engine.errors import BadInput
from explorer.trace.chat import ChatParts
from explorer.trace.step import Token

Letters = Callable[[str], list[int]]
OTHERS = tuple(map(chr, range(0x2600, 0x2700)))  # messages to compare with


def of(
    rendered: str, text: str, tokens: Sequence[Token], render: Callable[[str, bool], str]
) -> ChatParts | None:
    """The parts of `rendered`, the template's text of the message `text`; None if in doubt.

    What differs when another message is rendered is the message; what goes when no answer is
    asked for is its opening.
    """
    starts, place = _starts(rendered, tokens), place_of(rendered, text, render)
    if starts is None or place is None:
        return None
    try:
        closed = render(text, False)
    except BadInput:
        return None
    first, last = (len(rendered[:n].encode()) for n in place)
    end = len(closed.encode()) if rendered.startswith(closed) else len(rendered.encode())
    message = max(0, bisect_right(starts, first) - 1)
    return ChatParts(
        message=message,
        message_end=max(message, bisect_left(starts, last)) if last > first else message,
        answer=bisect_left(starts, end),
    )


def place_of(
    rendered: str, text: str, render: Callable[[str, bool], str]
) -> tuple[int, int] | None:
    """First character of the message in `rendered`, and the one behind its last."""
    other = next((o for o in OTHERS if o not in text), "")
    try:
        compared = render(other, True)
    except BadInput:
        return None
    before = shared(rendered, compared)
    behind = shared(rendered[before:][::-1], compared[before:][::-1])
    if not other or compared[before : len(compared) - behind] != other:
        return None  # the template writes messages in a way of its own
    return before, len(rendered) - behind


def letters_within(
    rendered: str, place: tuple[int, int], tokens: Sequence[Token], letters: Letters
) -> list[int] | None:
    """Ids with the control tokens of the template alone; None where that cannot be told.

    `tokens` spell `rendered` as usual; `letters` reads a text without any control token.  A
    control token parts what stands before it from what stands behind it, so that each piece can
    be read by itself.
    """
    first, last = place
    data, starts = rendered.encode(), _starts(rendered, tokens)
    if starts is None:
        return None
    begin, end = len(rendered[:first].encode()), len(rendered[:last].encode())
    found: list[int] = []
    at = 0
    for start, token in zip(starts, tokens, strict=True):
        if token.special and not begin <= start < end:
            found += letters(data[at:start].decode()) if start > at else []
            found.append(token.id)
            at = start + len(token.raw)
    return found + (letters(data[at:].decode()) if at < len(data) else [])


def character_starts(text: str, tokens: Sequence[Token]) -> list[int] | None:
    """The character in which each token begins; None if the tokens do not spell the text.

    Some vocabularies put a space in front of every text, and after every control token.
    """
    data, starts, at, fresh = text.encode(), list[int](), 0, True
    for token in tokens:
        starts.append(at)
        raw = token.raw
        if fresh and raw[:1] == b" " and not data.startswith(raw, at):
            raw = raw[1:]
        if not data.startswith(raw, at):
            return None
        at += len(raw)
        fresh = token.special
    if at != len(data):
        return None
    ends = list(accumulate(len(character.encode()) for character in text))  # in bytes
    return [bisect_right(ends, start) for start in starts]


def shared(one: str, two: str) -> int:
    """Length of the common beginning."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(two)))


def _starts(rendered: str, tokens: Sequence[Token]) -> list[int] | None:
    """The byte at which each token begins; None if the tokens do not spell the text."""
    starts, at = [], 0
    for token in tokens:
        starts.append(at)
        at += len(token.raw)
    return starts if b"".join(t.raw for t in tokens) == rendered.encode() else None
