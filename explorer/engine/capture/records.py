"""From live tensors of one pass to the frozen records of the trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from explorer.engine.capture.attention_sites import Site, sites
from explorer.engine.capture.probe import Call, Recorder
from explorer.trace.attention import LayerRecord, Mask

NOT_EXACT = "Not shown: the map rebuilt from queries and keys differs from the model's own."
NOT_TOKENS = "Not shown: this layer also attends to summaries of several tokens."
NOT_STEADY = "Not shown: with the cache on, the keys of this layer can't be assigned to tokens."
NOT_NUMBERS = (
    "Not shown: the attention of this layer is NaN or infinite. The weights are damaged "
    "or too large for this dtype."
)
OWN_MAP = (
    "Recorded: the model's own weights, from its eager attention. "
    "A cell that is 0 in every head counts as masked."
)
CALL_MAP = "Recorded: the weights computed by the model's own eager attention."


@dataclass(frozen=True, slots=True)
class Proven:
    """What the self-test found: the layers whose maps are the model's own."""

    layers: frozenset[int]
    decoded: frozenset[int]  # those whose maps are right in cached steps, too


@dataclass(slots=True)
class _Pass:
    """One pass while it is turned into records."""

    recorder: Recorder
    slots: int  # that exist after the pass: the kernel's last key is slot `slots - 1`
    row: int  # of the batch
    all_keys: bool  # those of slots that were read before, too
    masks: dict[tuple[int, ...], Mask] = field(default_factory=dict)
    copies: dict[int, np.ndarray] = field(default_factory=dict)  # by id of a call's tensor

    def copy_together(self) -> None:
        """One copy for all layers of a pass that reads one slot, instead of two for each."""
        if self.recorder.rows != 1 or self.all_keys:
            return
        groups: dict[Any, list[torch.Tensor]] = {}
        for call in self.recorder.calls:
            for tensor in (call.query, call.key):
                shape = tensor.shape
                kind = (shape[1], shape[3], tensor.dtype, tensor.device)
                groups.setdefault(kind, []).append(tensor)
        for group in groups.values():
            copied, _ = to_numpy(torch.stack([tensor.select(2, -1) for tensor in group]))
            rows = copied[:, self.row, None]  # (layers, 1, H, d)
            self.copies.update(zip(map(id, group), rows, strict=True))

    @property
    def cached(self) -> bool:
        """True if it read on from a cache."""
        return self.recorder.rows < self.slots

    def first_key(self, keys: int) -> int:
        """The slot of a record's first key, of so many that the kernel saw."""
        evicted = self.recorder.key_slots
        return self.slots - keys if evicted is None else int(evicted[0])

    @property
    def evicted(self) -> tuple[int, int]:
        """Slots from..to between those of the kernel's keys."""
        evicted = self.recorder.key_slots
        if evicted is None:
            return 0, 0
        gaps = np.flatnonzero(np.diff(evicted) > 1)
        return (int(evicted[gaps[0]]) + 1, int(evicted[gaps[0] + 1])) if len(gaps) else (0, 0)

    def by_slot(self, keys: np.ndarray) -> np.ndarray:
        """(K, H_kv, d_h) of the kernel with zeros for the slots between that were evicted."""
        evicted = self.recorder.key_slots
        if evicted is None or len(keys) != len(evicted):
            return keys
        first = int(evicted[0])
        found = np.zeros((self.slots - first, *keys.shape[1:]), keys.dtype)
        found[evicted - first] = keys
        return found

    def over_slots(self, weights: np.ndarray) -> np.ndarray:
        """(H, Q, K) of the kernel's keys with zeros for the slots between that were evicted."""
        evicted = self.recorder.key_slots
        if evicted is None or weights.shape[2] != len(evicted):
            return weights
        first = int(evicted[0])
        found = np.zeros((*weights.shape[:2], self.slots - first), weights.dtype)
        found[..., evicted - first] = weights
        return found


def to_numpy(tensor: torch.Tensor) -> tuple[np.ndarray, str]:
    """The tensor's bits on the CPU and its dtype name; bfloat16 as uint16."""
    tensor = tensor.detach().cpu()
    name = str(tensor.dtype).removeprefix("torch.")
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(np.uint16), name
    return tensor.numpy(), name


def records(
    recorder: Recorder,
    slots: int,
    row: int = 0,
    proven: Proven | None = None,
    all_keys: bool = False,
) -> tuple[LayerRecord, ...]:
    """One record per site, in order; sites without a map are absent with the reason.

    `slots` is how many slots exist after the pass.  With `proven`, what is not in it is absent,
    too.  `all_keys`: a record has every key that the kernel saw, for no earlier pass of the run
    has them.
    """
    this = _Pass(recorder, slots, row, all_keys)
    this.copy_together()
    return tuple(_site_record(site, this, proven) for site in sites(recorder))


def hidden(recorder: Recorder) -> np.ndarray | None:
    """(Q, d) float32 final hidden states; None where the model gives none of that shape."""
    found = recorder.hidden
    if found is None or found.ndim != 3:
        return None
    return np.asarray(found[0].float().cpu().numpy())


def _site_record(site: Site, this: _Pass, proven: Proven | None) -> LayerRecord:
    reason = site.reason or _flaw(site, this, proven)
    if reason:
        return LayerRecord(layer=site.layer, kind="absent", reason=reason)
    if site.own is not None:
        return _own_record(site.layer, site.own, this)
    assert site.call is not None
    if site.call.module in this.recorder.map_modules or not rebuildable(site.call):
        return _call_map(site.layer, site.call, this)
    return _record(site.layer, site.call, this)


def _flaw(site: Site, this: _Pass, proven: Proven | None) -> str:
    """Why this site's map must not be drawn; empty if it may."""
    if site.call is not None:
        if not _keys_are_slots(site.call.key.shape[2], this):
            return NOT_TOKENS
        if not rebuildable(site.call) and site.call.weights is None:
            return NOT_EXACT
    if not _finite(site, this):
        return NOT_NUMBERS
    if proven is None:
        return ""
    if site.layer not in proven.layers:
        return NOT_EXACT
    return NOT_STEADY if this.cached and site.layer not in proven.decoded else ""


def _finite(site: Site, this: _Pass) -> bool:
    """False if a map would hold what is no number.  A sound model's single rows are not asked."""
    if not (this.recorder.rows > 1 or this.recorder.doubtful):
        return True
    call = site.call
    parts = (site.own,) if call is None else (call.query, call.key, call.weights)
    return all(part is None or _all_numbers(part[this.row]) for part in parts)


def _all_numbers(tensor: torch.Tensor) -> bool:
    """True if nothing in it is NaN or infinite.  A finite sum shows that at a tenth of the cost."""
    if torch.isfinite(tensor.sum(dtype=torch.float32)):
        return True
    return bool(torch.isfinite(tensor).all())  # finite numbers may have a sum that is not


def _keys_are_slots(keys: int, this: _Pass) -> bool:
    """True if the kernel's keys are the last slots: all of them, or those a window keeps."""
    return keys == this.slots or (this.cached and (keys, this.slots - keys) in this.recorder.spans)


def rebuildable(call: Call) -> bool:
    """False where sinks differ from token to token, (B, H, Q, 1), which a record can't hold."""
    sinks = call.options.get("sinks")
    return sinks is None or sinks.ndim == 1


def _record(layer: int, call: Call, this: _Pass) -> LayerRecord:
    row = this.row
    queries, keys = this.copies.get(id(call.query)), this.copies.get(id(call.key))
    if queries is None or keys is None:
        queries, _ = to_numpy(_copied(call.query[row]))
        new = 0 if this.all_keys else -call.query.shape[2]
        keys, _ = to_numpy(_copied(call.key[row, :, new:]))
        keys = this.by_slot(keys) if this.all_keys else keys
    sinks = call.options.get("s_aux")
    if sinks is None:
        sinks = call.options.get("sinks")
    bias = call.options.get("position_bias") if call.bias is None else call.bias
    return LayerRecord(
        layer=layer,
        kind="qk",
        dtype=str(call.query.dtype).removeprefix("torch."),
        queries=queries,
        keys=keys,
        scaling=call.scaling,
        mask=_mask(call, this),
        first_key=this.first_key(call.key.shape[2]),
        evicted=this.evicted,
        window=int(call.options.get("sliding_window") or 0),
        softcap=float(call.options.get("softcap") or 0.0),
        sinks=None if sinks is None else sinks.detach().float().cpu().reshape(-1).numpy(),
        bias=None if bias is None else bias[min(row, len(bias) - 1)].float().cpu().numpy(),
    )


def _copied(heads_first: torch.Tensor) -> torch.Tensor:
    """(H, Q, d) as (Q, H, d) that keeps nothing else alive: a view of a whole cache is copied."""
    flipped = heads_first.transpose(0, 1)
    if flipped.untyped_storage().nbytes() == flipped.numel() * flipped.element_size():
        return flipped
    return flipped.clone(memory_format=torch.contiguous_format)


def _call_map(layer: int, call: Call, this: _Pass) -> LayerRecord:
    assert call.weights is not None
    weights = this.over_slots(call.weights[this.row].detach().float().cpu().numpy())
    return LayerRecord(
        layer=layer,
        kind="map",
        reason=CALL_MAP,
        mask=_mask(call, this),
        first_key=this.slots - weights.shape[2],
        evicted=this.evicted,
        window=int(call.options.get("sliding_window") or 0),
        weights=weights,
    )


def _own_record(layer: int, own: torch.Tensor, this: _Pass) -> LayerRecord:
    weights = this.over_slots(own[this.row].detach().float().cpu().numpy())
    if weights.shape[2] > this.slots:
        return LayerRecord(layer=layer, kind="absent", reason=NOT_TOKENS)
    return LayerRecord(
        layer=layer,
        kind="map",
        reason=OWN_MAP,
        mask=Mask.of_bits(np.asarray((weights > 0).any(axis=0))),
        first_key=this.slots - weights.shape[2],
        evicted=this.evicted,
        weights=weights,
    )


def _mask(call: Call, this: _Pass) -> Mask:
    queries, keys = call.query.shape[2], call.key.shape[2]
    key: tuple[int, ...]
    if call.mask is None:
        key = (queries, keys, int(call.causal))
        if key not in this.masks:
            made = Mask("causal" if call.causal else "none", queries, keys)
            this.masks[key] = _spread(made, this)
        return this.masks[key]
    key = (id(call.mask),)
    if key not in this.masks:
        this.masks[key] = _spread(read_mask(call.mask, this.row, queries, keys), this)
    return this.masks[key]


def _spread(mask: Mask, this: _Pass) -> Mask:
    """The mask over all slots from the first key on: those between that were evicted are hidden."""
    evicted = this.recorder.key_slots
    if evicted is None or mask.keys == this.slots - int(evicted[0]):
        return mask
    first = int(evicted[0])
    shape, places = (mask.queries, this.slots - first), evicted - first
    if mask.kind == "values":
        assert mask.data is not None
        values = np.full((len(mask.data), *shape), -np.inf, np.float32)
        values[..., places] = mask.data
        return Mask("values", *shape, values)
    allowed = np.zeros(shape, bool)
    allowed[:, places] = mask.allowed()
    return Mask.of_bits(allowed)


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
