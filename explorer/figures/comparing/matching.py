"""Where something of one run is in another one: a token by its text, a layer or head by depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from explorer.figures.comparing import alignment
from explorer.figures.comparing.alignment import Piece
from explorer.trace.trace import Trace

Hand = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Matching:
    """Which tokens of two runs belong together; `by_id`: both runs use one vocabulary."""

    by_id: bool
    pieces: tuple[Piece, ...]
    on_right: Mapping[int, int]  # slot of the left: slot of the right
    on_left: Mapping[int, int]

    def other(self, slot: int, of: Hand) -> int | None:
        """The slot on the other side; None if that side lacks the token."""
        return (self.on_right if of == "left" else self.on_left).get(slot)

    @property
    def first_difference(self) -> tuple[int | None, int | None] | None:
        """The first slots, left and right, at which the runs part; None if they never do.

        A side that ends there has none.
        """
        at = alignment.first_difference(self.pieces)
        if at is None:
            return None
        rest = self.pieces[at:]
        return (
            next((piece.left[0] for piece in rest if piece.left), None),
            next((piece.right[0] for piece in rest if piece.right), None),
        )


def matched(left: Trace, right: Trace, by_id: bool, most: int = alignment.MOST) -> Matching:
    """The tokens of both runs, prompt and generated; `most` as in `alignment.aligned`."""
    pieces = alignment.aligned(left.tokens, right.tokens, by_id, most)
    on_right: dict[int, int] = {}
    on_left: dict[int, int] = {}
    for piece in pieces:
        if piece.left and piece.right:
            on_right |= _from_the_end(piece.left, piece.right)
            on_left |= _from_the_end(piece.right, piece.left)
    return Matching(by_id, pieces, on_right, on_left)


def _from_the_end(here: Sequence[int], there: Sequence[int]) -> dict[int, int]:
    """The last token of a piece has read all of it, on either side."""
    return {slot: there[max(len(there) - back, 0)] for back, slot in enumerate(reversed(here), 1)}


def by_depth(place: int, count: int, other: int) -> int:
    """A layer or head of `count` in a model that has `other` of them: first to first, last to last.

    The middle of a range goes to the later one.
    """
    if count == other:
        return place
    if count < 2:
        return 0
    return min(int(place * (other - 1) / (count - 1) + 0.5), other - 1)
