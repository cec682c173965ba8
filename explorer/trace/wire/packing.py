"""Steps as a header and arrays, for frames between processes and for files.

Layers of one pass that share shapes are stacked, so that a pass travels as a handful of arrays
and unpacks to views.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from explorer.trace.attention import LayerRecord, Mask
from explorer.trace.request import Sampling
from explorer.trace.step import Draw, Phase, RankShare, Step, Token

STACKED_BYTES = 1 << 16
_OPTIONAL = ("attention_ms", "mlp_ms", "hidden")
_PER_LAYER = ("queries", "keys", "sinks", "bias", "weights")


class MaskHeader(msgspec.Struct, frozen=True):
    kind: str
    queries: int
    keys: int
    has_data: bool


class LayerHeader(msgspec.Struct, frozen=True):
    layer: int
    kind: str
    reason: str
    dtype: str
    scaling: float
    mask: int  # index into the step's masks, -1 = none
    first_key: int
    window: int
    softcap: float
    arrays: dict[str, tuple[str, int]]  # field -> (array name, row in it)
    evicted: tuple[int, int] = (0, 0)  # older files lack this and what follows
    away: int = 0
    groups: int = 0


class StepHeader(msgspec.Struct, frozen=True, kw_only=True):
    index: int
    phase: str
    first_slot: int
    token_ids: tuple[int, ...]
    position_ids: tuple[int, ...]
    readout: int
    draw: Draw
    sampling: Sampling
    forward_ms: float
    capture_ms: float
    warm_up: bool
    cache_tokens: int
    cache_bytes_per_layer: tuple[int, ...]
    keys_from: int
    rebuilt_tokens: int
    note: str
    top: tuple[Token, ...]
    masks: tuple[MaskHeader, ...]
    layers: tuple[LayerHeader, ...]
    # Older files lack these.
    embedding_ms: float | None = None
    norm_ms: float | None = None
    head_ms: float | None = None
    pick_ms: float = 0.0
    engine_ms: float | None = None
    left_out: tuple[tuple[int, int], ...] = ()
    ranks: tuple[RankShare, ...] = ()
    kept_as: str = ""


_SHARED = tuple(
    name for name in StepHeader.__struct_fields__ if name not in ("masks", "layers", "phase")
)


def pack_step(step: Step) -> tuple[StepHeader, dict[str, np.ndarray]]:
    """A step as its header and named arrays."""
    arrays: dict[str, np.ndarray] = {"logits": step.logits, "layer_ms": step.layer_ms}
    for name in _OPTIONAL:
        if (array := getattr(step, name)) is not None:
            arrays[name] = array
    masks, headers, of_layers = pack_layers(step.layers)
    header = StepHeader(
        phase=step.phase,
        masks=masks,
        layers=headers,
        **{name: getattr(step, name) for name in _SHARED},
    )
    return header, arrays | of_layers


def pack_layers(
    layers: Sequence[LayerRecord],
) -> tuple[tuple[MaskHeader, ...], tuple[LayerHeader, ...], dict[str, np.ndarray]]:
    """The layers of one pass: the headers of their masks, their own, and named arrays."""
    arrays: dict[str, np.ndarray] = {}
    masks: list[Mask] = []
    groups: dict[tuple[Any, ...], list[np.ndarray]] = {}
    names: dict[tuple[Any, ...], str] = {}
    headers = []
    for record in layers:
        where: dict[str, tuple[str, int]] = {}
        for field in _PER_LAYER:
            array = getattr(record, field)
            if array is None:
                continue
            key: tuple[Any, ...] = (field, array.shape, array.dtype.str)
            if array.nbytes > STACKED_BYTES:  # a copy to stack it would double the peak
                key = (*key, len(names))
            if key not in groups:
                groups[key], names[key] = [], f"{field}.{sum(k[0] == field for k in names)}"
            where[field] = (names[key], len(groups[key]))
            groups[key].append(array)
        headers.append(_layer_header(record, _mask_index(record.mask, masks), where))
    for key, group in groups.items():
        arrays[names[key]] = group[0][None] if len(group) == 1 else np.stack(group)
    for i, mask in enumerate(masks):
        if mask.data is not None:
            arrays[f"mask.{i}"] = mask.data
    mask_headers = tuple(MaskHeader(m.kind, m.queries, m.keys, m.data is not None) for m in masks)
    return mask_headers, tuple(headers), arrays


def _mask_index(mask: Mask | None, masks: list[Mask]) -> int:
    if mask is None:
        return -1
    for i, known in enumerate(masks):
        if known is mask:
            return i
    masks.append(mask)
    return len(masks) - 1


def _layer_header(record: LayerRecord, mask: int, where: dict[str, tuple[str, int]]) -> LayerHeader:
    return LayerHeader(
        record.layer,
        record.kind,
        record.reason,
        record.dtype,
        record.scaling,
        mask,
        record.first_key,
        record.window,
        record.softcap,
        where,
        record.evicted,
        record.away,
        record.groups,
    )


def unpack_step(header: StepHeader, arrays: Mapping[str, np.ndarray]) -> Step:
    """The step again; its arrays are read-only views.  ValueError if an array is missing or odd."""
    try:
        layers = unpack_layers(header.masks, header.layers, arrays)
        phase: Phase = header.phase  # type: ignore[assignment]
        optional: dict[str, Any] = {
            name: _read_only(arrays[name]) for name in _OPTIONAL if name in arrays
        }
        return Step(
            phase=phase,
            logits=_read_only(arrays["logits"]),
            layer_ms=_read_only(arrays["layer_ms"]),
            layers=layers,
            **optional,
            **{name: getattr(header, name) for name in _SHARED},
        )
    except (KeyError, IndexError) as missing:
        raise ValueError(f"the step lacks an array: {missing}") from missing


def unpack_layers(
    masks: Sequence[MaskHeader], layers: Sequence[LayerHeader], arrays: Mapping[str, np.ndarray]
) -> tuple[LayerRecord, ...]:
    """The layers again; KeyError or IndexError if an array is missing."""
    made = [
        Mask(m.kind, m.queries, m.keys, arrays[f"mask.{i}"] if m.has_data else None)  # type: ignore[arg-type]
        for i, m in enumerate(masks)
    ]
    return tuple(_unpack_layer(layer, made, arrays) for layer in layers)


def _unpack_layer(
    layer: LayerHeader, masks: list[Mask], arrays: Mapping[str, np.ndarray]
) -> LayerRecord:
    parts: dict[str, Any] = {
        field: _read_only(arrays[name][row]) for field, (name, row) in layer.arrays.items()
    }
    unknown = parts.keys() - set(_PER_LAYER)
    if unknown:
        raise ValueError(f"unknown arrays in a layer: {', '.join(sorted(unknown))}")
    return LayerRecord(
        layer=layer.layer,
        kind=layer.kind,  # type: ignore[arg-type]
        reason=layer.reason,
        dtype=layer.dtype,
        scaling=layer.scaling,
        mask=None if layer.mask < 0 else masks[layer.mask],
        first_key=layer.first_key,
        window=layer.window,
        softcap=layer.softcap,
        evicted=layer.evicted,
        away=layer.away,
        groups=layer.groups,
        **parts,
    )


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view
