"""The causal switch: transformers' own mask functions with only the causal part taken out.

A mask function in transformers is a composition of small closures: causal, window, chunk,
padding.  With the mask off each part is kept but two: causal becomes "any key", and a window
that looks back becomes one that looks both ways.  Every registered way of making a mask is
replaced while the switch is off, and put back exactly afterwards.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from transformers import masking_utils
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

MaskFunction = Callable[..., Any]


def without_causality(mask_function: MaskFunction) -> MaskFunction:
    """The same mask function, able to see the future; windows become symmetric."""
    if mask_function is masking_utils.causal_mask_function:
        return masking_utils.bidirectional_mask_function
    kind = getattr(mask_function, "__qualname__", "")
    cells = _cells(mask_function)
    if kind.startswith(("and_masks.", "or_masks.")):
        parts = [without_causality(part) for part in cells["mask_functions"]]
        join = masking_utils.and_masks if kind.startswith("and") else masking_utils.or_masks
        return join(*parts)
    if kind.startswith("sliding_window_overlay."):
        # Looking back, a window of W holds the token itself and W - 1 before it.
        return masking_utils.sliding_window_bidirectional_overlay(cells["sliding_window"] - 1)
    if kind.startswith("add_offsets_to_mask_function."):
        inner = without_causality(cells["mask_function"])
        return masking_utils.add_offsets_to_mask_function(
            inner, cells["q_offset"], cells["kv_offset"]
        )
    if kind.startswith("remap_positions_for_packed_sequence."):
        inner = without_causality(cells["mask_function"])
        return masking_utils.remap_positions_for_packed_sequence(inner, cells["position_ids"])
    return mask_function


def is_windowed(mask_function: MaskFunction) -> bool:
    """True if a sliding window or a chunk is among the parts of this mask function."""
    kind = getattr(mask_function, "__qualname__", "")
    if kind.startswith(("sliding_window_overlay.", "chunked_overlay.")):
        return True
    cells = _cells(mask_function)
    parts = [*cells.get("mask_functions", ()), cells.get("mask_function")]
    return any(is_windowed(part) for part in parts if part is not None)


def _cells(function: MaskFunction) -> dict[str, Any]:
    closure = getattr(function, "__closure__", None) or ()
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    return {name: cell.cell_contents for name, cell in zip(names, closure, strict=False)}


def _opened(make_mask: Callable[..., Any]) -> Callable[..., Any]:
    def make(*args: Any, **kwargs: Any) -> Any:
        function = kwargs.get("mask_function", masking_utils.causal_mask_function)
        kwargs["mask_function"] = without_causality(function)
        # A mask left out would be read as "causal" by the kernel: always make one.
        kwargs["allow_is_causal_skip"] = False
        kwargs["allow_is_bidirectional_skip"] = False
        return make_mask(*args, **kwargs)

    return make


@contextlib.contextmanager
def watching(model: torch.nn.Module) -> Iterator[set[str]]:
    """While inside, notes "windowed" once a mask with a window or chunks is made for `model`."""
    found = {"windowed"} if any(_is_band(buffer) for buffer in _triangles(model)) else set()

    def noting(make_mask: Callable[..., Any]) -> Callable[..., Any]:
        def make(*args: Any, **kwargs: Any) -> Any:
            if is_windowed(kwargs.get("mask_function", masking_utils.causal_mask_function)):
                found.add("windowed")
            return make_mask(*args, **kwargs)

        return make

    with _replaced(noting):
        yield found


@contextlib.contextmanager
def _replaced(wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """Every registered way of making a mask goes through `wrap`; put back exactly afterwards."""
    mapping = ALL_MASK_ATTENTION_FUNCTIONS._global_mapping
    before = dict(mapping)
    mapping.update({name: wrap(make) for name, make in before.items() if "flash" not in name})
    try:
        yield
    finally:
        mapping.clear()
        mapping.update(before)


@contextlib.contextmanager
def causal_off(model: torch.nn.Module) -> Iterator[None]:
    """While inside, `model`'s attention may read later tokens, within windows and padding."""
    buffers = [(buffer, buffer.clone()) for buffer in _triangles(model)]
    with _replaced(_opened):
        try:
            for buffer, original in buffers:  # a window stays one, looking both ways
                buffer.copy_(original.logical_or(original.transpose(-1, -2)))
            yield
        finally:
            for buffer, original in buffers:
                buffer.copy_(original)


def _triangles(model: torch.nn.Module) -> list[torch.Tensor]:
    """Lower-triangular 4-D buffers that older models keep inside their attention modules."""
    return [
        buffer
        for name, buffer in model.named_buffers()
        if name.endswith(".bias") and buffer.ndim == 4 and buffer.shape[:2] == (1, 1)
    ]


def _is_band(triangle: torch.Tensor) -> bool:
    return not bool(triangle[0, 0, -1].all())
