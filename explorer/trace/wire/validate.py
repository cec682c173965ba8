"""Do the parts of a trace fit each other?  Asked of what comes from a file or an engine."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from explorer.trace.attention import LayerRecord, Mask
from explorer.trace.step import Step, Token
from explorer.trace.trace import Trace
from explorer.trace.wire.bounds import require_bounded

_FLOATS = {"float32", "float16", "bfloat16"}
_ORIGINS = {"prompt", "generated", "forced", "padding"}


def require_sound(trace: Trace) -> None:
    """ValueError naming the first thing that does not fit."""
    _require(len(trace.chosen) == len(trace.steps), "steps and chosen tokens differ in number")
    require_bounded((trace.request, trace.card, trace.self_check, trace.turns))
    require_bounded((trace.prompt, trace.chosen))
    if trace.prompt:
        _require(trace.request.pad <= len(trace.prompt), "more padding is asked for than there is")
    for turn in trace.turns:
        inside = 0 <= turn.first_slot <= turn.last_slot < len(trace.prompt)
        _require(inside, "a turn lies outside the prompt")
    for token in trace.tokens:
        _require(token.origin in _ORIGINS, "a token is odd")
    for i, (step, chosen) in enumerate(zip(trace.steps, trace.chosen, strict=True)):
        try:
            _require(step.index == i, "is out of order")
            require_sound_step(step, chosen)
            _require(len(step.layers) == len(trace.steps[0].layers), "has other layers")
            _require_step(step, trace)
        except ValueError as error:
            raise ValueError(f"step {i} {error}") from error
    for layer in range(len(trace.steps[0].layers) if trace.steps else 0):
        _require_layer(trace, layer)


def _require(true: object, words: str) -> None:
    if not true:
        raise ValueError(words)


def require_sound_step(step: Step, chosen: Token) -> None:
    """ValueError naming what of one step does not fit, whatever trace it belongs to."""
    rows = step.positions_processed
    end = step.first_slot + rows
    logits = step.logits
    left_out = all(0 <= first <= last <= step.readout for first, last in step.left_out)
    _require(left_out, "leaves out slots that are not there")
    _require(step.phase in ("prefill", "decode", "recompute"), "has an unknown phase")
    _require(rows > 0 and len(step.position_ids) == rows, "has no positions, or odd ones")
    _require(0 <= step.first_slot <= step.readout < end, "has its readout outside the pass")
    _require(0 <= step.keys_from <= step.index, "reads keys of a later step")
    _require(logits.ndim == 1 and logits.dtype == np.float32, "has odd logits")
    _require(len(logits) and np.isfinite(logits.max()), "has logits that are no numbers")
    _require(0 <= chosen.id < len(logits), "chose no token of the vocabulary")
    _require(0 <= step.draw.token_id < len(logits), "picked no token of the vocabulary")
    _require(all(0 <= token.id < len(logits) for token in step.top), "has odd top tokens")
    times = [step.layer_ms, step.attention_ms, step.mlp_ms]
    shapes = {array.shape for array in times if array is not None}
    _require(step.layer_ms.ndim == 1 and len(shapes) == 1, "has odd layer times")
    hidden = step.hidden
    _require(hidden is None or (hidden.ndim == 2 and len(hidden) == rows), "has odd hidden states")


def _require_step(step: Step, trace: Trace) -> None:
    end = step.first_slot + step.positions_processed
    _require(end <= len(trace.tokens), "reads tokens that are not there")
    _require(len(step.logits) == len(trace.steps[0].logits), "has another vocabulary")


def _require_layer(trace: Trace, layer: int) -> None:
    """One layer over all steps, so that the keys each pass could read can be counted."""
    records = [step.layers[layer] for step in trace.steps]
    counts = [0 if r.keys is None or r.keys.ndim != 3 else len(r.keys) for r in records]
    before = [0, *accumulate(counts)]
    widths = {r.keys.shape[1:] for r in records if r.keys is not None}
    for step, record in zip(trace.steps, records, strict=True):
        try:
            _require(record.layer == layer, "is out of order")
            _require(record.kind in ("qk", "map", "absent"), "is of an unknown kind")
            _require(len(widths) <= 1, "has keys of changing shape")
            if record.kind == "map":
                _require_map(record, step.positions_processed)
            if record.kind == "qk":
                begin = trace.steps[step.keys_from]
                kept = counts[step.keys_from] or begin.positions_processed
                start = begin.first_slot + begin.positions_processed - kept
                keys = before[step.index + 1] - before[step.keys_from]
                _require(record.first_key >= 0, "has odd keys")
                _require(0 <= record.evicted[0] <= record.evicted[1], "has odd evicted slots")
                read = step.positions_processed
                own = counts[step.index]
                earlier = step.index == step.keys_from and own <= step.first_slot + read
                _require(own == read or (earlier and own > read), "has odd keys")
                _require_record(record, read, keys - max(record.first_key - start, 0))
        except ValueError as error:
            raise ValueError(f"step {step.index} layer {layer} {error}") from error


def require_sound_part(record: LayerRecord, rows: int) -> None:
    """ValueError naming what of a layer's record does not fit a pass of so many rows."""
    _require(record.kind in ("qk", "map"), "is of an unknown kind")
    if record.kind == "map":
        _require_map(record, rows)
        return
    keys = record.keys
    _require(keys is not None and keys.ndim == 3 and len(keys), "has odd keys")
    assert keys is not None
    _require_record(record, rows, len(keys) if record.mask is None else record.mask.keys)


def _require_map(record: LayerRecord, rows: int) -> None:
    weights = record.weights
    fits = weights is not None and weights.ndim == 3 and weights.shape[1] == rows
    _require(fits and weights is not None and weights.dtype == np.float32, "has an odd map")


def _require_record(record: LayerRecord, rows: int, keys: int) -> None:
    q, k = record.queries, record.keys
    _require(record.dtype in _FLOATS, "has an unknown type")
    stored = np.dtype(np.uint16 if record.dtype == "bfloat16" else record.dtype)
    if q is None or k is None:
        raise ValueError("lacks queries or keys")
    _require(q.dtype == stored and k.dtype == stored, "holds another type than it says")
    _require(q.ndim == 3 and k.ndim == 3 and len(q) == rows, "has odd shapes")
    _require(q.shape[2] == k.shape[2] > 0, "has queries and keys of different width")
    _require(k.shape[1] > 0 and q.shape[1] % k.shape[1] == 0, "has odd numbers of heads")
    _require(keys > 0, "has no keys to read")
    heads = q.shape[1]
    sinks, bias = record.sinks, record.bias
    _require(sinks is None or sinks.shape == (heads,), "has odd sinks")
    fits = bias is None or (
        bias.ndim == 3
        and bias.shape[0] in (1, heads)
        and bias.shape[1] == rows
        and bias.shape[2] <= keys
    )
    _require(fits, "has an odd bias")
    if record.mask is not None:
        _require(_mask_fits(record.mask, rows, keys, heads), "has an odd mask")


def _mask_fits(mask: Mask, rows: int, keys: int, heads: int) -> bool:
    data = mask.data
    if mask.queries != rows or mask.keys != keys:
        return False
    if mask.kind in ("causal", "none"):
        return data is None
    if data is None:
        return False
    if mask.kind == "bits":
        return data.dtype == np.uint8 and data.shape == (rows, (keys + 7) // 8)
    fits = data.shape in ((1, rows, keys), (heads, rows, keys))
    return mask.kind == "values" and data.dtype == np.float32 and fits
