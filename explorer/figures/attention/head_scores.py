"""What each head tends to do, as one figure per head, so that special heads can be found.

Means over the query rows that have the thing asked for; padding and the first token itself are
left out:

first       weight on the first token (many heads rest there)
previous    weight on the token just before
induction   weight on the token after the latest earlier copy of the query's own token
entropy     spread of a row in nats: 0 = one key alone
effect       how much the logit of the chosen token falls without the head; measured by the engine
contribution what the head adds to a token's logit; measured by the engine
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from explorer.figures.attention import map_blocks as parts
from explorer.figures.attention.head_weights import (
    columns_read,
    groups,
    row_slices,
    weights_of_heads,
)
from explorer.figures.attention.map_blocks import Block
from explorer.figures.attention.maps import shared_rows
from explorer.figures.text.tokens import in_quotes, written
from explorer.trace.inside.attribution import Attribution
from explorer.trace.inside.heads import HeadSweep
from explorer.trace.step import Step, Token
from explorer.trace.trace import Trace

Kind = Literal["first", "previous", "induction", "entropy"]  # worked out from the maps
Order = Kind | Literal["effect", "contribution"]


@dataclass(frozen=True, slots=True, eq=False)
class HeadScores:
    """One figure per head; `complete` once every row has been looked at."""

    kind: Order
    sums: np.ndarray  # (L, H) float64 over the counted rows
    rows: int  # rows counted: the same for every head
    heads: tuple[int, ...]  # per layer; 0 where there is no attention
    slots: int
    passes: tuple[Step, ...]
    complete: bool
    done: float = 1.0  # share of the rows of all layers that was looked at
    of: tuple[str, ...] = ()  # contribution: the token in quotes, and the one it is compared with

    @property
    def means(self) -> np.ndarray:
        """(L, H) float64; NaN for heads that a layer lacks, and if no row has the thing asked."""
        result = np.full(self.sums.shape, np.nan)
        for layer, heads in enumerate(self.heads):
            if self.rows:
                result[layer, :heads] = self.sums[layer, :heads] / self.rows
        return result

    def order(self) -> list[tuple[int, int]]:
        """(layer, head) with the largest first, ties by layer and head; entropy: smallest first.

        Heads without a figure come last.
        """
        means = self.means if self.kind == "entropy" else -self.means
        means = np.where(np.isnan(means), np.inf, means)
        present = [(la, h) for la, heads in enumerate(self.heads) for h in range(heads)]
        return sorted(present, key=lambda at: (float(means[at]), at))


def of_sweep(found: HeadSweep, step: int, trace: Trace) -> HeadScores:
    """The falls of the chosen token's logit as figures; NaN for heads not silenced yet."""
    falls = np.full((len(found.heads), max(found.heads, default=0)), np.nan)
    for at, (logit, _) in found.changes.items():
        falls[at] = -logit
    passes = (trace.steps[step],)
    return HeadScores("effect", falls, 1, found.heads, trace.read_slots(step), passes, True)


def of_attribution(found: Attribution, step: int, trace: Trace) -> HeadScores:
    """What each head adds to the logit; NaN for heads that its layer's sum does not tell apart."""
    layers = parts.layer_count(trace, step)
    heads = tuple(parts.record_of(trace, step, layer).heads for layer in range(layers))
    shares = np.full((layers, max(heads, default=0)), np.nan)
    for part in found.parts:
        if part.layer is None or part.head is None:
            continue
        if part.layer < layers and part.head < heads[part.layer]:
            shares[part.layer, part.head] = part.value
    known = int(not np.isnan(shares).all())
    targets = (found.target, found.against) if found.against else (found.target,)
    return HeadScores(
        "contribution", shares, known, heads, trace.read_slots(step), (trace.steps[step],), True,
        of=tuple(in_quotes(written(Token(one.id, one.raw, "generated"))) for one in targets),
    )  # fmt: skip


def targets(tokens: tuple[Token, ...], slots: int, kind: Kind) -> np.ndarray:
    """(slots,) the key each query is asked about; -1 = this row does not count.

    For entropy any number from 0 on means that the row counts.
    """
    real = [slot for slot in range(slots) if tokens[slot].origin != "padding"]
    result = np.full(slots, -1)
    last_seen: dict[int, int] = {}
    for before, slot in zip([None, *real], real, strict=False):
        token_id = tokens[slot].id
        if before is not None:
            if kind in ("first", "entropy"):
                result[slot] = real[0]
            elif kind == "previous":
                result[slot] = before
            elif token_id in last_seen and last_seen[token_id] + 1 < slot:
                result[slot] = last_seen[token_id] + 1
        last_seen[token_id] = slot
    return result


def scores(
    trace: Trace, step: int, kind: Kind, known: HeadScores | None = None
) -> Iterator[HeadScores]:
    """Answers on the way (with `complete` False, not to be shown as figures) and the whole one.

    `known`, if complete and of the same kind, is added to where its rows are the same.
    """
    slots = trace.read_slots(step)
    passes = trace.steps[: step + 1]
    layers = parts.layer_count(trace, step)
    heads = tuple(
        0 if parts.reason(trace, step, layer) else parts.record_of(trace, step, layer).heads
        for layer in range(layers)
    )
    wanted = targets(trace.tokens, slots, kind)
    wanted[: trace.reused_tokens] = -1  # rows of the run before, which this one has not
    sums = np.zeros((layers, max(heads, default=0)))
    start = 0
    if known is not None and (known.kind, known.heads, known.complete) == (kind, heads, True):
        same = shared_rows(known.passes, passes)
        if same == known.slots <= slots:
            start = same
            sums += known.sums
    rows = int(np.count_nonzero(wanted >= 0))
    asked = max(1, sum(count > 0 for count in heads) * (slots - start))
    looked = 0
    for members, group in groups(trace, step, range(layers), start):
        for part in row_slices(group[0], len(group) * heads[members[0]], 1):
            sums[members, : heads[members[0]]] += _sums(group, part, wanted, kind)
            looked += len(members) * (part.stop - part.start)
            done = min(looked / asked, 1.0)
            yield HeadScores(kind, sums.copy(), rows, heads, slots, passes, False, done)
    yield HeadScores(kind, sums, rows, heads, slots, passes, complete=True)


def _sums(group: list[Block], rows: slice, wanted: np.ndarray, kind: Kind) -> np.ndarray:
    """(L, H) sums over some rows of some layers."""
    block = group[0]
    first = block.first_query + rows.start - block.rows.start
    asked = wanted[first : first + rows.stop - rows.start]
    columns = columns_read(block, rows)
    if columns.start == columns.stop:
        return np.zeros((len(group), block.record.heads))
    weights = weights_of_heads(group, rows, columns)
    if kind == "entropy":
        counted = weights[:, :, asked >= 0]
        logs = np.log(counted, out=np.zeros_like(counted), where=counted > 0)
        return np.asarray(-(counted * logs).sum(axis=(2, 3), dtype=np.float64))
    key = asked - block.first_key - columns.start
    # A key that a window has left behind has no weight there: it counts as 0.
    row = np.flatnonzero((asked >= 0) & (key >= 0) & (key < columns.stop - columns.start))
    return np.asarray(weights[:, :, row, key[row]].sum(axis=2, dtype=np.float64))
