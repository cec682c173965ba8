"""From live tensors of one pass to the frozen records of the trace."""

from __future__ import annotations

import numpy as np
import torch

from explorer.engine.probe import Call, Recorder
from explorer.trace.attention import LayerRecord, Mask

NOT_EXACT = "Not drawn: rebuilt from queries and keys, this map differs from the model's own."
NO_ATTENTION = "This layer has no attention map: it keeps a recurrent or convolutional state."


def to_numpy(tensor: torch.Tensor) -> tuple[np.ndarray, str]:
    """The tensor's bits on the CPU and its dtype name; bfloat16 as uint16."""
    tensor = tensor.detach().cpu()
    name = str(tensor.dtype).removeprefix("torch.")
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(np.uint16), name
    return tensor.numpy(), name


def records(
    recorder: Recorder, slots: int, row: int = 0, proven: set[int] | None = None
) -> tuple[LayerRecord, ...]:
    """One record per attention call, in order; layers without one are named absent.

    `slots` is how many slots exist after the pass: the kernel's last key is slot `slots - 1`.
    With `proven`, layers outside it are named absent too.
    """
    masks: dict[tuple[int, ...], Mask] = {}
    by_layer: dict[int, list[Call]] = {}
    for call in recorder.calls:
        by_layer.setdefault(call.layer, []).append(call)
    result: list[LayerRecord] = []
    for layer in dict.fromkeys(recorder.visited):
        calls = by_layer.get(layer, [])
        if calls and proven is not None and layer not in proven:
            result.append(LayerRecord(layer=layer, kind="absent", reason=NOT_EXACT))
            continue
        result += [_record(call, slots, row, masks) for call in calls]
        if not calls:
            result.append(LayerRecord(layer=layer, kind="absent", reason=NO_ATTENTION))
    return tuple(result)


def _record(call: Call, slots: int, row: int, masks: dict[tuple[int, ...], Mask]) -> LayerRecord:
    queries, dtype = to_numpy(call.query[row].transpose(0, 1).contiguous())
    new = call.key[row, :, -call.query.shape[2] :]
    keys, _ = to_numpy(new.transpose(0, 1).contiguous())
    sinks = call.options.get("s_aux")
    bias = call.options.get("position_bias")
    return LayerRecord(
        layer=call.layer,
        kind="qk",
        dtype=dtype,
        queries=queries,
        keys=keys,
        scaling=call.scaling,
        mask=_mask(call, row, masks),
        first_key=slots - call.key.shape[2],
        window=int(call.options.get("sliding_window") or 0),
        softcap=float(call.options.get("softcap") or 0.0),
        sinks=None if sinks is None else sinks.detach().float().cpu().reshape(-1).numpy(),
        bias=None if bias is None else bias[min(row, len(bias) - 1)].float().cpu().numpy(),
    )


def _mask(call: Call, row: int, masks: dict[tuple[int, ...], Mask]) -> Mask:
    queries, keys = call.query.shape[2], call.key.shape[2]
    if call.mask is None:
        key = (queries, keys, int(call.causal))
        if key not in masks:
            masks[key] = Mask("causal" if call.causal else "none", queries, keys)
        return masks[key]
    made = (id(call.mask),)
    if made not in masks:
        masks[made] = read_mask(call.mask, row, queries, keys)
    return masks[made]


def read_mask(mask: torch.Tensor, row: int, queries: int, keys: int) -> Mask:
    """A (B, 1 or H, Q, K) mask tensor of the kernel, row `row` of the batch, compactly."""
    tensor = mask[min(row, len(mask) - 1)][..., :keys].detach()
    if tensor.dtype != torch.bool:
        lowest = torch.finfo(tensor.dtype).min
        hidden = tensor <= lowest / 2
        if not bool(((tensor == 0) | hidden).all()):
            values = torch.where(hidden, -torch.inf, tensor.float())
            return Mask("values", queries, keys, values.expand(-1, queries, keys).cpu().numpy())
        tensor = ~hidden
    if len(tensor) > 1 and not bool((tensor == tensor[:1]).all()):
        values = torch.where(tensor, 0.0, -torch.inf)
        return Mask("values", queries, keys, values.expand(-1, queries, keys).cpu().numpy())
    allowed = tensor[0].expand(queries, keys).cpu().numpy()
    if queries == keys and queries > 1 and bool((allowed == np.tri(queries, dtype=bool)).all()):
        return Mask("causal", queries, keys)
    return Mask.of_bits(allowed)
