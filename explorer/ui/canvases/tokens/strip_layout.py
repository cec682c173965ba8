"""Boxes wrapped like text: which are in a row, and where a key moves among them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from PySide6.QtCore import Qt

_row_of = attrgetter("row")


@dataclass(frozen=True, slots=True)
class Box:
    """Where one token stands."""

    left: float
    row: int
    width: float


def first_change(old: Sequence[object], new: Sequence[object]) -> int:
    """The first place where two sequences differ; the shorter one's length if nowhere before."""
    if new[: len(old)] == old:
        return len(old)
    pairs = zip(old, new, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))


def span_of_row(boxes: Sequence[Box], row: int) -> tuple[int, int]:
    """The slots of a row: the first, and the one behind the last."""
    return bisect_left(boxes, row, key=_row_of), bisect_left(boxes, row + 1, key=_row_of)


def moved(boxes: Sequence[Box], start: int, key: Qt.Key) -> int | None:
    """The slot to which a key leads from `start`; None for a key that moves nothing."""
    last = len(boxes) - 1
    if key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
        move = 1 if key == Qt.Key.Key_Right else -1
        return min(max(start + move, 0), last)
    if key in (Qt.Key.Key_Home, Qt.Key.Key_End):
        return 0 if key == Qt.Key.Key_Home else last
    if key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
        box = boxes[start]
        first, end = span_of_row(boxes, box.row + (1 if key == Qt.Key.Key_Down else -1))
        if first == end:
            return start
        return min(range(first, end), key=lambda slot: abs(boxes[slot].left - box.left))
    return None
