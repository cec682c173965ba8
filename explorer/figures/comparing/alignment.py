"""Which tokens of two runs belong together.

Where both runs use one vocabulary tokens are matched by their ids, otherwise by their bytes: then a
piece ends where both sides have a token's end at the same place of the common text.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate

from explorer.trace.step import Token
from explorer.trace.trace import Trace

MOST = 4_000_000  # pairs of units that are looked at for later matches; more take minutes
_Spans = list[tuple[int, int, int]]  # (slot, first unit, end)
_Cut = tuple[int, int]  # units to the left of it, on either side


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of text with its slots on both sides; no slots where a side lacks it."""

    text: str
    left: tuple[int, ...]
    right: tuple[int, ...]


def one_vocabulary(left: Trace, right: Trace) -> bool:
    """False if the sizes differ, or any id that both runs spell is spelt differently.

    Runs hold the bytes of the tokens they saw and of the most probable ones, not of the whole
    vocabulary: True is no proof for the others.
    """
    if left.card.vocab_size != right.card.vocab_size:
        return False
    mine, theirs = _spelling(left), _spelling(right)
    return all(mine[i] == theirs[i] for i in mine.keys() & theirs.keys())


def _spelling(trace: Trace) -> dict[int, bytes]:
    listed = [token for step in trace.steps for token in step.top]
    return {token.id: token.raw for token in (*listed, *trace.tokens)}


def aligned(
    left: Sequence[Token], right: Sequence[Token], by_id: bool, most: int = MOST
) -> tuple[Piece, ...]:
    """The pieces in order: every token but padding is in one of them, on its side.

    What follows the first difference is unmatched if it has more than `most` pairs of units.
    """
    mine, theirs = _units(left, by_id), _units(right, by_id)
    a, spans = mine
    b, other_spans = theirs
    matches = _matches(a, b, most)
    cuts = _cuts(a, b, matches, {end for _, _, end in spans}, {end for _, _, end in other_spans})
    found: list[Piece] = []
    lefts, rights = (
        iter(_grouped(spans, [i for i, _ in cuts])),
        iter(_grouped(other_spans, [j for _, j in cuts])),
    )
    start = (0, 0)
    for cut in cuts:
        on_left, on_right = next(lefts), next(rights)
        same = a[start[0] : cut[0]] == b[start[1] : cut[1]]
        if same:
            found.append(Piece(_text(left, on_left), on_left, on_right))
        else:
            found += [Piece(_text(left, on_left), on_left, ())] if on_left else []
            found += [Piece(_text(right, on_right), (), on_right)] if on_right else []
        start = cut
    return tuple(piece for piece in found if piece.left or piece.right)


def first_difference(pieces: Sequence[Piece]) -> int | None:
    """Index of the first piece that one side lacks; None if there is none."""
    return next((i for i, piece in enumerate(pieces) if not (piece.left and piece.right)), None)


def _units(tokens: Sequence[Token], by_id: bool) -> tuple[Sequence[Hashable], _Spans]:
    """What is compared, and where in it each token lies."""
    real = [(slot, token) for slot, token in enumerate(tokens) if token.origin != "padding"]
    if by_id:
        spans = [(slot, place, place + 1) for place, (slot, _) in enumerate(real)]
        return [token.id for _, token in real], spans
    ends = list(accumulate(len(token.raw) for _, token in real))
    spans = [
        (slot, end - len(token.raw), end) for (slot, token), end in zip(real, ends, strict=True)
    ]
    return b"".join(token.raw for _, token in real), spans


def _cuts(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    matches: Iterable[tuple[int, int, int]],
    ends: set[int],
    other_ends: set[int],
) -> list[_Cut]:
    """Places where both sides end a token, in order; the last is the end of both."""
    whole = len(a), len(b)
    found = [
        (i + k, j + k)
        for i, j, size in matches
        for k in range(size + 1)
        if (i + k == 0 or i + k in ends) and (j + k == 0 or j + k in other_ends)
    ]
    return sorted({*found, whole} - {(0, 0)}) or [whole]


def _matches(
    a: Sequence[Hashable], b: Sequence[Hashable], most: int
) -> Iterator[tuple[int, int, int]]:
    """(place in a, place in b, length) of equal stretches, in order."""
    first = 0
    while first < min(len(a), len(b)) and a[first] == b[first]:
        first += 1
    yield 0, 0, first
    rest_a, rest_b = a[first:], b[first:]
    if len(rest_a) * len(rest_b) <= most:
        for match in SequenceMatcher(None, rest_a, rest_b, autojunk=False).get_matching_blocks():
            yield first + match.a, first + match.b, match.size


def _grouped(spans: _Spans, ends: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The slots up to each end."""
    place = 0
    for end in ends:
        first = place
        while place < len(spans) and spans[place][2] <= end:
            place += 1
        yield tuple(slot for slot, _, _ in spans[first:place])


def _text(tokens: Sequence[Token], slots: Sequence[int]) -> str:
    return b"".join(tokens[slot].raw for slot in slots).decode("utf-8", errors="replace")
