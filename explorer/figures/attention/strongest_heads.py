"""Which heads put most weight from one token on another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from explorer.figures.attention import map_blocks as parts
from explorer.figures.attention.head_weights import columns_read, weights_of_heads
from explorer.figures.attention.map_blocks import READ, Block
from explorer.trace.trace import Trace

COUNT = 12  # heads of a short list


@dataclass(frozen=True, slots=True)
class HeadWeight:
    """What one head puts from the query on the key."""

    layer: int
    head: int
    weight: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """The heads with most weight, the largest first, ties by layer and head.

    `why` says why no head may read this key; then there are none.
    """

    query: int
    key: int
    heads: tuple[HeadWeight, ...]
    why: str = ""


def rank(
    trace: Trace, step: int, query: int, key: int, count: int = COUNT
) -> Iterator[float | Ranking]:
    """How much is done after each layer, from 0 to 1, and at last the ranking."""
    owner = parts.owner_of(trace, step, query)
    layers = parts.layer_count(trace, step)
    found: list[HeadWeight] = []
    masked = recorded = False
    for layer in range(layers):
        block = parts.row_block(trace, owner, layer, query)
        if block is not None:
            recorded = True
            weights = _of_heads(block, key - block.first_key)
            masked |= not weights
            found += (HeadWeight(layer, head, weight) for head, weight in enumerate(weights))
        yield (layer + 1) / layers
    found.sort(key=lambda one: (-one.weight, one.layer, one.head))
    why = "" if found else _why(query, key, masked, recorded)
    yield Ranking(query, key, tuple(found[:count]), why)


def _of_heads(block: Block, column: int) -> list[float]:
    """The weight of each head on one column; none if no head may read it."""
    if not 0 <= column < block.columns or not _may_read(block, column):
        return []
    columns = columns_read(block, block.rows)
    weights = weights_of_heads([block], block.rows, columns)[0, :, 0]
    at = column - columns.start
    return [float(weight) for weight in weights[:, at]]


def _may_read(block: Block, column: int) -> bool:
    mask = block.record.mask
    heads = block.record.heads if mask is not None and mask.kind == "values" else 1
    return any(parts.kinds(block, block.rows, head)[0, column] == READ for head in range(heads))


def _why(query: int, key: int, masked: bool, recorded: bool) -> str:
    if not recorded:
        return parts.NOT_RECORDED
    if key > query:
        return "it is a later token, hidden by the causal mask"
    return "the mask or window of every layer hides it" if masked else ""
