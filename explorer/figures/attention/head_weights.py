"""Weights of many heads at once: layers of one shape and mask share a call.

`trace.attention.weights` works out one head; this is the same arithmetic for all heads of some
layers, which costs a tenth per decode step.  Tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from explorer.figures.attention import map_blocks as parts
from explorer.figures.attention.map_blocks import READ, Block
from explorer.trace.attention import as_float32
from explorer.trace.trace import Trace

_WEIGHTS_AT_ONCE = 1 << 19  # per call: stays in the cache, and a new request need not wait long


def groups(
    trace: Trace, step: int, order: Sequence[int], start: int
) -> Iterator[tuple[list[int], list[Block]]]:
    """(layers, their blocks) that one call can work out together: same shapes, same mask."""
    waiting: dict[object, tuple[list[int], list[Block]]] = {}
    for layer in order:
        for block in parts.blocks(trace, step, layer, start):
            key = _signature(block)
            layers, group = waiting.setdefault(key, ([], []))
            layers.append(layer)
            group.append(block)
            size = max(block.record.heads * block.count * block.columns, block.keys.size)
            if (len(group) + 1) * size > _WEIGHTS_AT_ONCE or block.record.kind == "map":
                yield waiting.pop(key)
    yield from waiting.values()


def _signature(block: Block) -> object:
    record, mask = block.record, block.record.mask
    if record.kind == "map" or record.bias is not None:
        return id(record)
    assert record.queries is not None
    data = None if mask is None or mask.data is None else mask.data
    same_mask = data.tobytes() if data is not None and data.nbytes < 4096 else id(data)
    shape = (record.queries.shape[1:], block.keys.shape, block.rows.start, block.rows.stop)
    place = (block.first_query, block.first_key, None if mask is None else mask.kind, same_mask)
    seen = None if block.seen is None else block.seen.tobytes()
    return (
        *shape,
        *place,
        seen,
        record.dtype,
        record.scaling,
        record.softcap,
        record.sinks is None,
    )


def row_slices(block: Block, heads: int, stride: int) -> Iterator[slice]:
    """Rows of a block in portions that begin where a pooled row begins."""
    fits = max(1, _WEIGHTS_AT_ONCE // max(1, heads * block.columns))
    portion = max(stride, fits - fits % stride)
    at = 0
    while at < block.count:
        upto = min(block.count, at + portion - (block.first_query + at) % stride)
        yield slice(block.rows.start + at, block.rows.start + upto)
        at = upto


def columns_read(block: Block, rows: slice) -> slice:
    """The fewest columns that hold every key which these rows may read."""
    mask = block.record.mask
    if mask is not None and mask.kind == "values":
        return slice(0, block.columns)
    read = np.flatnonzero((parts.kinds(block, rows) == READ).any(axis=0))
    return slice(int(read[0]), int(read[-1]) + 1) if len(read) else slice(0, 0)


def weights_of_heads(group: Sequence[Block], rows: slice, columns: slice) -> np.ndarray:
    """(L, H, rows, columns) float32: all heads of some layers of one shape and mask in one go.

    The same arithmetic as `trace.attention.weights`, a test says so; `columns` must hold every
    key that these rows may read.
    """
    record = group[0].record
    if record.weights is not None:
        return np.array(record.weights[None, :, rows, columns])
    taken = [block.record.queries[rows] for block in group if block.record.queries is not None]
    queries = as_float32(np.stack(taken), record.dtype)
    parts_of_keys = [block.keys[columns] for block in group]
    keys = parts_of_keys[0][None] if len(group) == 1 else np.stack(parts_of_keys)
    keys = as_float32(keys, record.dtype)
    layers, count, heads, width = queries.shape
    kv_heads = keys.shape[2]
    grouped = queries.reshape(layers, count, kv_heads, -1, width).transpose(0, 2, 3, 1, 4)
    grouped = grouped.reshape(layers, kv_heads, -1, width)
    scores = np.matmul(grouped, keys.transpose(0, 2, 3, 1)).reshape(layers, heads, count, -1)
    scores *= np.float32(record.scaling)
    if record.softcap:
        scores = np.tanh(scores / np.float32(record.softcap)) * np.float32(record.softcap)
    if record.bias is not None:
        bias = record.bias[:, rows, columns]  # of the first keys, or all
        scores[..., : bias.shape[-1]] += bias
    mask = record.mask
    if mask is not None and mask.kind != "none":
        differ = heads if mask.kind == "values" else 1
        scores += np.stack([mask.additive(rows, head)[:, columns] for head in range(differ)])
    sinks = [block.record.sinks for block in group if block.record.sinks is not None]
    _softmax(scores, np.stack(sinks)[:, :, None, None] if sinks else None)
    return np.asarray(scores)


def _softmax(scores: np.ndarray, sinks: np.ndarray | None) -> None:
    """Along the keys, in place; rows with nothing to read become zeros, a sink takes its share."""
    top = scores.max(axis=-1, keepdims=True)
    if sinks is not None:
        np.maximum(top, sinks, out=top)
    top[np.isneginf(top)] = 0
    scores -= top
    np.exp(scores, out=scores)
    total = scores.sum(axis=-1, keepdims=True)
    if sinks is not None:
        total += np.exp(sinks - top)
    total[total == 0] = 1
    scores /= total
