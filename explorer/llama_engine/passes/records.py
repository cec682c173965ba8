"""From what was seen of one pass, in one call of llama.cpp or several, to the trace's records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from explorer.llama_engine.passes.sources import AttentionCall, all_finite
from explorer.llama_engine.passes.watch import Seen
from explorer.trace.attention import LayerRecord, Mask

NO_ATTENTION = "This layer has no attention map: it keeps a recurrent or convolutional state."
NOT_EXACT = "Not shown: the map rebuilt from queries and keys differs from the model's own."
NOT_RECORDED = "Not recorded: this run records the attention of one layer in {0}, as you chose."
NOT_NUMBERS = "Not shown: the attention of this layer is NaN or infinite. The weights are damaged."
TOO_LARGE = "Not shown: the map of this layer is stored whole, and this text is too long for that."
OWN_MAP = "Recorded: the weights computed by llama.cpp's own attention."
MOST_MAP_BYTES = 256 << 20  # of one layer's stored map or bias


@dataclass(frozen=True, slots=True)
class Exactness:
    """What the self-test found of each layer that attends."""

    rebuilt: frozenset[int]  # exact from queries, keys and mask
    recorded: frozenset[int] = frozenset()  # llama.cpp's own weights are kept instead
    attending: frozenset[int] = frozenset()
    windows: tuple[int, ...] = ()  # by layer; 0 = none


@dataclass(slots=True)
class Pass:
    """Everything that was seen of the slots `first` to `slots`, chunk by chunk."""

    first: int
    slots: int
    seen: list[Seen] = field(default_factory=list)

    def calls(self, layer: int) -> list[AttentionCall]:
        """Of one layer, in order; empty where it was not seen in every chunk."""
        if len(self.seen) == 1:
            call = self.seen[0].calls.get(layer)
            return [] if call is None else [call]
        found = [one.calls[layer] for one in self.seen if layer in one.calls]
        return found if len(found) == len(self.seen) else []

    @property
    def copy_seconds(self) -> float:
        """That copying took while llama.cpp waited."""
        return sum(one.copy_seconds for one in self.seen)

    def records(
        self, layers: int, proven: Exactness | None, every: int = 1
    ) -> tuple[LayerRecord, ...]:
        """One record a layer; what is not proven is absent with the reason."""
        masks: dict[tuple[int, ...], Mask] = {}
        sound = self._all_finite()
        return tuple(self._record(layer, proven, every, masks, sound) for layer in range(layers))

    def _all_finite(self) -> bool:
        """True if that is known of whole arrays of all layers: no need to look at each."""
        return all(one.all_finite for one in self.seen)

    def _record(
        self,
        layer: int,
        proven: Exactness | None,
        every: int,
        masks: dict[tuple[int, ...], Mask],
        sound: bool,
    ) -> LayerRecord:
        calls = self.calls(layer)
        if not calls:
            attends = proven is not None and layer in proven.attending and layer % every
            return _absent(layer, NOT_RECORDED.format(every) if attends else NO_ATTENTION)
        if proven is not None and layer in proven.recorded:
            return self._own(layer, calls, proven, masks)
        if calls[0].flaw or (proven is not None and layer not in proven.rebuilt):
            return _absent(layer, NOT_EXACT)
        if len(calls) > 1 and any(call.flaw for call in calls):
            return _absent(layer, NOT_EXACT)
        return self._rebuilt(layer, calls, proven, masks, sound)

    def _rebuilt(
        self,
        layer: int,
        calls: Sequence[AttentionCall],
        proven: Exactness | None,
        masks: dict,
        sound: bool,
    ) -> LayerRecord:
        first = calls[0]
        dtype = first.key_dtype
        queries, keys = first.queries, first.keys
        if len(calls) > 1:
            queries = _joined([call.queries for call in calls])
            keys = _joined([call.keys for call in calls])
        if not (sound or (_finite(queries, dtype) and _finite(keys, dtype))):
            return _absent(layer, NOT_NUMBERS)
        bias = None
        if first.max_bias and first.distances is not None:
            if first.queries is None or self._map_bytes(first.queries.shape[1]) > MOST_MAP_BYTES:
                return _absent(layer, TOO_LARGE)
            bias = self._slopes(calls, first.queries.shape[1])
        return LayerRecord(
            layer=layer,
            kind="qk",
            dtype=dtype,
            queries=queries,
            keys=keys,
            scaling=first.scaling,
            mask=self._mask(calls, masks),
            window=proven.windows[layer] if proven and proven.windows else 0,
            softcap=first.softcap,
            sinks=first.sinks,
            bias=bias,
        )

    def _own(
        self, layer: int, calls: Sequence[AttentionCall], proven: Exactness, masks: dict
    ) -> LayerRecord:
        """llama.cpp's own weights, (H, Q, K)."""
        if any(call.weights is None for call in calls):
            return _absent(layer, TOO_LARGE)
        parts = [call.weights for call in calls if call.weights is not None]
        weights = np.zeros((parts[0].shape[0], self.slots - self.first, self.slots), np.float32)
        begin = 0
        for part in parts:
            weights[:, begin : begin + part.shape[1], : part.shape[2]] = part
            begin += part.shape[1]
        if not np.isfinite(weights).all():
            return _absent(layer, NOT_NUMBERS)
        return LayerRecord(
            layer=layer,
            kind="map",
            reason=OWN_MAP,
            mask=self._mask(calls, masks),
            window=proven.windows[layer] if proven.windows else 0,
            weights=weights,
        )

    def _map_bytes(self, heads: int) -> int:
        return 4 * heads * (self.slots - self.first) * self.slots

    def _mask(self, calls: Sequence[AttentionCall], masks: dict[tuple[int, ...], Mask]) -> Mask:
        """Made once for the layers that were given the same one."""
        key = tuple([id(call.mask if call.allowed is None else call.allowed) for call in calls])
        if key not in masks:
            masks[key] = self._made_mask(calls)
        return masks[key]

    def _made_mask(self, calls: Sequence[AttentionCall]) -> Mask:
        rows = self.slots - self.first
        if all(call.mask is None for call in calls):
            return Mask("none", rows, self.slots)
        if any(call.allowed is not None for call in calls):
            return self._by_head(calls)
        packed, begin, causal, open_ = [], self.first, True, True
        for call in calls:
            allowed = self._allowed(call)
            count = len(allowed)
            triangle = np.tri(count, self.slots, begin, dtype=bool)
            causal = causal and bool((allowed == triangle).all())
            open_ = open_ and bool(allowed.all())
            packed.append(np.packbits(allowed, axis=1))
            begin += count
        if open_:
            return Mask("none", rows, self.slots)
        if causal and self.first == 0:
            return Mask("causal", rows, self.slots)
        return Mask("bits", rows, self.slots, np.concatenate(packed))

    def _by_head(self, calls: Sequence[AttentionCall]) -> Mask:
        """Where cells of single heads were cut or allowed."""
        heads = max(len(call.allowed) for call in calls if call.allowed is not None)
        values = np.full((heads, self.slots - self.first, self.slots), -np.inf, np.float32)
        begin = 0
        for call in calls:
            allowed = self._allowed(call)[None] if call.allowed is None else call.allowed
            here = values[:, begin : begin + allowed.shape[1], : allowed.shape[2]]
            here[np.broadcast_to(allowed, here.shape)] = 0
            begin += allowed.shape[1]
        return Mask("values", values.shape[1], self.slots, values)

    def _allowed(self, call: AttentionCall) -> np.ndarray:
        """(n, K) bool over all slots of the pass; later ones than the call's are hidden."""
        assert call.mask is not None
        seen = np.unpackbits(call.mask, axis=1, count=min(self.slots, 8 * call.mask.shape[1]))
        allowed = np.zeros((len(seen), self.slots), bool)
        allowed[:, : seen.shape[1]] = seen
        return allowed

    def _slopes(self, calls: Sequence[AttentionCall], heads: int) -> np.ndarray:
        """(H, Q, K) float32: ALiBi's slope of each head times the distance in the mask."""
        distance = np.zeros((self.slots - self.first, self.slots), np.float32)
        begin = 0
        for call in calls:
            part = call.distances
            assert part is not None
            distance[begin : begin + len(part), : part.shape[1]] = part
            begin += len(part)
        return slopes(heads, calls[0].max_bias)[:, None, None] * distance[None]


def slopes(heads: int, max_bias: float) -> np.ndarray:
    """(H,) float32: how steeply each head's ALiBi falls with the distance."""
    power = 1 << (heads.bit_length() - 1)
    outer, inner = 2.0 ** (-max_bias / power), 2.0 ** (-max_bias / 2 / power)
    found = [
        outer ** (h + 1) if h < power else inner ** (2 * (h - power) + 1) for h in range(heads)
    ]
    return np.array(found, np.float32)


def _joined(parts: Sequence[np.ndarray | None]) -> np.ndarray | None:
    there = [part for part in parts if part is not None]
    if len(there) < len(parts):
        return None
    return np.concatenate(there)


def _finite(array: np.ndarray | None, dtype: str) -> bool:
    return array is not None and all_finite(array, dtype)


def _absent(layer: int, reason: str) -> LayerRecord:
    return LayerRecord(layer=layer, kind="absent", reason=reason)
