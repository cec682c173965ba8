"""Which cells of attention interventions change, and what is left of them when more follow.

Of two that change the same cell, the later one counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from explorer.trace.interventions.kinds import MOST, Cells, Intervention, Scale, Silence, Span

CUT, AS_IS, ALLOWED = -1, 0, 1
_STATES = {"cut": CUT, "allow": ALLOWED, "restore": AS_IS}


def changes(
    cells: Iterable[Cells], heads: int, queries: Span, keys: Span, stride: int = 1
) -> np.ndarray:
    """(1 or H, Q, K) int8: CUT, ALLOWED or AS_IS; one for all heads where none differs.

    `queries` and `keys` are the first slot and the one after the last.  With a `stride` each cell
    stands for that many each way, and is changed if one of them is.
    """
    asked = list(cells)
    apart = heads if any(one.head is not None for one in asked) else 1
    size = [-(-(end - first) // stride) for first, end in (queries, keys)]
    found = np.zeros((apart, *size), np.int8)
    for one in asked:
        if one.head is None or one.head < heads:
            at = slice(None) if one.head is None else slice(one.head, one.head + 1)
            _write(found[at], one, queries, keys, stride)
    return found


def of_head(
    asked: Iterable[Intervention], layer: int, head: int, queries: Span, keys: Span, stride: int = 1
) -> np.ndarray:
    """(Q, K) int8 of one head, as `changes`."""
    here = [
        one
        for one in asked
        if isinstance(one, Cells) and one.layer in (None, layer) and one.head in (None, head)
    ]
    found = changes(here, head + 1, queries, keys, stride)
    return np.asarray(found[-1])


def _write(found: np.ndarray, one: Cells, queries: Span, keys: Span, stride: int) -> None:
    """Into (…, Q, K)."""
    rows, columns = _part(one.queries, queries, stride), _part(one.keys, keys, stride)
    part = found[..., rows, columns]
    value = _STATES[one.effect]
    if one.back is None:
        part[...] = value
        return
    down = queries[0] + stride * np.arange(rows.start, rows.start + part.shape[-2])
    across = keys[0] + stride * np.arange(columns.start, columns.start + part.shape[-1])
    back = down[:, None] - across[None, :]  # of the first cell of each
    least, most = one.back
    part[..., (back + stride - 1 >= least) & (back - stride + 1 <= most)] = value


def _part(span: Span | None, seen: Span, stride: int) -> slice:
    """Where a span lies in an axis that begins at `seen[0]`."""
    first, last = (0, MOST) if span is None else span
    begin, end = max(first, seen[0]) - seen[0], min(last + 1, seen[1]) - seen[0]
    begin = max(0, begin // stride)
    return slice(begin, max(begin, -(-end // stride)))


def added(now: Sequence[Intervention], *more: Intervention) -> tuple[Intervention, ...]:
    """`now` and `more`, without those of which nothing is left.

    A part is silenced in one way, a place has one scale, and cells that a later one covers are
    gone.  Nothing is restored where nothing was changed, and a scale of 1 is none.
    """
    found = list(now)
    for one in more:
        found = [other for other in found if not _replaces(one, other)]
        if isinstance(one, Scale):
            needed = one.factor != 1
        else:
            restores = isinstance(one, Cells) and one.restored
            needed = not restores or any(_meet(one, other) for other in found)
        if needed:
            found.append(one)
    return tuple(found)


def switched(now: Sequence[Intervention], one: Intervention) -> tuple[Intervention, ...]:
    """On if it is off, off if it is on; what was done otherwise to the same place is gone."""
    if one in now:
        return tuple(other for other in now if other != one)
    if not isinstance(one, Cells):
        return added(now, one)
    same = [other for other in now if isinstance(other, Cells) and _replaces(other, one)]
    return (*(other for other in now if other not in same or not _replaces(one, other)), one)


def _replaces(one: Intervention, other: Intervention) -> bool:
    """True if nothing is left of `other` once `one` follows it."""
    if isinstance(one, Silence) and isinstance(other, Silence):
        place = one.layer, one.part, one.head if one.part == "head" else 0
        return place == (other.layer, other.part, other.head if other.part == "head" else 0)
    if isinstance(one, Scale) and isinstance(other, Scale):
        return (one.layer, one.head) == (other.layer, other.head)
    return isinstance(one, Cells) and isinstance(other, Cells) and covers(one, other)


def covers(one: Cells, other: Cells) -> bool:
    """True if `one` surely takes in every cell of `other`."""
    if one.layer not in (None, other.layer) or one.head not in (None, other.head):
        return False
    if not (_within(other.queries, one.queries) and _within(other.keys, one.keys)):
        return False
    if one.back is None:
        return True
    if other.back is not None:
        return _within(other.back, one.back)
    if other.queries is None or other.keys is None:
        return False
    least, most = other.queries[0] - other.keys[1], other.queries[1] - other.keys[0]
    return one.back[0] <= least and most <= one.back[1]


def _meet(one: Intervention, other: Intervention) -> bool:
    """True if both change cells of attention, maybe the same ones."""
    if not (isinstance(one, Cells) and isinstance(other, Cells)):
        return False
    places = ((one.layer, other.layer), (one.head, other.head))
    if any(a is not None and b is not None and a != b for a, b in places):
        return False
    spans = ((one.queries, other.queries), (one.keys, other.keys), (one.back, other.back))
    return all(a is None or b is None or (a[0] <= b[1] and b[0] <= a[1]) for a, b in spans)


def _within(inner: Span | None, outer: Span | None) -> bool:
    if outer is None:
        return True
    return inner is not None and outer[0] <= inner[0] and inner[1] <= outer[1]
