"""A long prompt, read in chunks through the cache and recorded as if it had been one pass."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from explorer.engine.capture import records
from explorer.engine.capture.attention_sites import sites
from explorer.engine.capture.probe import Recorder
from explorer.engine.capture.records import Proven
from explorer.trace.attention import LayerRecord, Mask

CHUNK = 512  # slots: one layer's time stays well under a second, and so does a cancel
WHOLE = 2048  # up to so many slots are read in one pass, which is as fast and needs no chunks
UNLIKE = "Not shown: this layer was not recorded the same way in every chunk of the prompt."


def spans(first: int, slots: int) -> list[tuple[int, int]]:
    """(begin, end) of the passes that read slots `first` to `slots`."""
    if slots - first <= WHOLE:
        return [(first, slots)]
    return [(begin, min(begin + CHUNK, slots)) for begin in range(first, slots, CHUNK)]


@dataclass(slots=True)
class _Layer:
    """One layer's records so far."""

    newest: LayerRecord
    queries: np.ndarray | None = None  # (T - first, H, d_h), filled from the front
    keys: np.ndarray | None = None  # (T, H_kv, d_h), likewise; None where the cache keeps all
    masks: list[tuple[Mask, int]] = field(default_factory=list)  # with the first key's slot
    biases: list[np.ndarray | None] = field(default_factory=list)  # (H, rows, n) of the first keys

    @property
    def whole(self) -> bool:
        return self.newest.kind == "qk"


class Gathered:
    """Records of consecutive passes, put together row by row."""

    def __init__(self, slots: int, windowed: bool, first: int = 0) -> None:
        """Slots `first` to `slots`; `windowed` where the cache may forget keys before the end.

        The keys of the slots before `first` are the cache's.
        """
        self._slots, self._windowed, self._first = slots, windowed, first
        self._layers: list[_Layer] = []
        self._masks: dict[tuple[tuple[int, int], ...], Mask] = {}
        self.hidden: np.ndarray | None = None  # (T, d) float32

    def add(self, recorder: Recorder, end: int, proven: Proven | None) -> None:
        """The pass that read the slots up to `end`; its tensors are freed."""
        reused = not self._layers and self._first > 0
        found = records.records(recorder, end, proven=proven, all_keys=reused)
        if not self._layers:
            self._layers = [_Layer(record) for record in found]
        for layer, record in zip(self._layers, found, strict=True):
            self._take(layer, record, end)
        self._take_hidden(recorder, end)
        if end == self._slots and not self._windowed:
            self._take_kept_keys(recorder)

    def layers(self) -> tuple[LayerRecord, ...]:
        """One record a layer, as of one pass over everything."""
        return tuple(self._joined(layer) for layer in self._layers)

    def _take(self, layer: _Layer, record: LayerRecord, end: int) -> None:
        q, k = record.queries, record.keys
        if not layer.whole:
            return
        bias = record.bias
        whole_bias = bias is not None and bias.shape[2] == (record.mask and record.mask.keys)
        if record.kind != "qk" or whole_bias or q is None or k is None:
            reason = record.reason or UNLIKE
            layer.newest = LayerRecord(layer=record.layer, kind="absent", reason=reason)
            layer.queries = layer.keys = None
            return
        if layer.queries is None:
            layer.queries = np.empty((self._slots - self._first, *q.shape[1:]), q.dtype)
            if self._windowed:
                layer.keys = np.zeros((self._slots, *k.shape[1:]), k.dtype)
        layer.queries[end - len(q) - self._first : end - self._first] = q
        if layer.keys is not None:
            layer.keys[end - len(k) : end] = k
        assert record.mask is not None
        layer.masks.append((record.mask, record.first_key))
        layer.biases.append(bias if bias is None else np.asarray(bias))
        layer.newest = replace(record, queries=None, keys=None)

    def _take_hidden(self, recorder: Recorder, end: int) -> None:
        hidden = records.hidden(recorder)
        if hidden is None:
            return
        if self.hidden is None:
            rows = self._slots - self._first
            self.hidden = np.empty((rows, hidden.shape[1]), hidden.dtype)
        self.hidden[end - len(hidden) - self._first : end - self._first] = hidden

    def _take_kept_keys(self, recorder: Recorder) -> None:
        """What the last pass's kernel saw is every key there is: no copy of it is needed."""
        for layer, site in zip(self._layers, sites(recorder), strict=True):
            if layer.whole and site.call is not None:
                keys, _ = records.to_numpy(site.call.key[0].transpose(0, 1))
                if len(keys) == self._slots:
                    layer.keys = keys

    def _joined(self, layer: _Layer) -> LayerRecord:
        if not layer.whole:
            return layer.newest
        if layer.keys is None:
            return LayerRecord(layer=layer.newest.layer, kind="absent", reason=UNLIKE)
        mask = self._mask(layer.masks)
        lowest = _lowest(layer.masks)  # what was forgotten before the first row is not there
        return replace(
            layer.newest,
            queries=layer.queries,
            keys=layer.keys[lowest:],
            mask=mask,
            first_key=lowest,
            bias=_joined_bias(layer.biases, [mask.queries for mask, _ in layer.masks]),
            evicted=(0, 0),  # of the last chunk: earlier rows saw some of them
        )

    def _mask(self, parts: list[tuple[Mask, int]]) -> Mask:
        """Of all rows together; made once for the layers that were given the same ones."""
        key = tuple((id(mask), first) for mask, first in parts)
        if key not in self._masks:
            self._masks[key] = joined_mask(parts, self._slots, self._first)
        return self._masks[key]


def joined_mask(parts: list[tuple[Mask, int]], slots: int, first: int = 0) -> Mask:
    """The mask of row blocks from slot `first` on, each with its first key's slot.

    Its columns begin at the lowest of those.  Keys that a block's kernel did not see are hidden
    from its rows.
    """
    rows: list[np.ndarray] = []
    begin, causal, lowest = first, first == 0, _lowest(parts)
    for mask, first_key in parts:
        allowed = np.zeros((mask.queries, slots), bool)
        allowed[:, first_key : first_key + mask.keys] = mask.allowed()
        causal = causal and bool((allowed == np.tri(mask.queries, slots, begin, bool)).all())
        rows.append(np.packbits(allowed[:, lowest:], axis=1))
        begin += mask.queries
    if causal:
        return Mask("causal", slots, slots)
    return Mask("bits", slots - first, slots - lowest, np.concatenate(rows))


def _joined_bias(parts: list[np.ndarray | None], rows: list[int]) -> np.ndarray | None:
    """(H, Q, n) of all chunks; zeros for those in which no key had moved yet."""
    known = next((part for part in parts if part is not None), None)
    if known is None:
        return None
    heads, _, count = known.shape
    filled = [
        np.zeros((heads, length, count), np.float32) if part is None else part
        for part, length in zip(parts, rows, strict=True)
    ]
    return np.concatenate(filled, axis=1)


def _lowest(parts: list[tuple[Mask, int]]) -> int:
    return min(first_key for _, first_key in parts)
