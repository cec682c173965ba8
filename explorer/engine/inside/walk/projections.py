"""Queries, keys and values before the attention kernel, taken out of what the modules gave.

Some models make all three in one projection, some from a latent vector (MLA).  How such a vector
is laid out is found by trying: the values that come out have to be those that the kernel received.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.engine.inside.walk.stages import difference, stage
from explorer.trace.inside.walk import LayerStage

FUSED = "Q, K and V in one"
_LATENT, _FROM_LATENT, _Q_FROM_LATENT = (
    "latent K and V", "K and V from their latent", "Q from its latent",
)  # fmt: skip
_NEAR = 1e-5


@dataclass(frozen=True, slots=True, eq=False)
class Before:
    """What a vector was before position turned it: (heads, d), and the stage that says so."""

    numbers: np.ndarray
    source: str


@dataclass(frozen=True, slots=True)
class Sizes:
    """Heads of the kernel, and how wide they are."""

    heads: int
    key_heads: int
    width: int
    value_width: int


def taken_apart(
    before: Sequence[LayerStage], sizes: Sizes, value: np.ndarray | None
) -> tuple[dict[str, Before], list[LayerStage]]:
    """("Q" and "K" before RoPE, as far as they are found, and stages that only this shows).

    `value` (H_kv, d_v): what the kernel received.
    """
    named = {one.name: one for one in before}
    found: dict[str, Before] = {}
    more: list[LayerStage] = []
    if FUSED in named and value is not None:
        more = list(_of_fused(named[FUSED], sizes, value))
        named = {**{one.name: one for one in more}, **named}
    elif _FROM_LATENT in named and _LATENT in named and value is not None:
        more = list(_of_latent(named, sizes, value))
        named |= {one.name: one for one in more}
    for name, heads in (("Q", sizes.heads), ("K", sizes.key_heads)):
        for source in (f"{name} norm", name, _Q_FROM_LATENT if name == "Q" else f"{name} of both"):
            one = named.get(source)
            numbers = None if one is None else one.numbers
            if numbers is not None and numbers.size == heads * sizes.width:
                found[name] = Before(numbers.reshape(heads, sizes.width), source)
                break
    return found, more


def _of_fused(fused: LayerStage, sizes: Sizes, value: np.ndarray) -> Iterator[LayerStage]:
    """Q, K and V of one projection, by the layout whose values are the kernel's."""
    flat = fused.numbers
    if flat is None:
        return
    for words, (q, k, v) in _layouts(flat.reshape(-1), sizes):
        off = difference(v, value)
        if v.shape == value.shape and off < _NEAR:
            for name, part in (("Q", q), ("K", k), ("V", v)):
                heads = f"{part.shape[0]} heads of {part.shape[1]}"
                gap = off if name == "V" else None
                yield stage(name, f"its part of {FUSED}, {words}: {heads}", part, gap=gap)
            return


def _layouts(flat: np.ndarray, sizes: Sizes) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    heads, key_heads, width, wide = sizes.heads, sizes.key_heads, sizes.width, sizes.value_width
    counts = (heads * width, key_heads * width, key_heads * wide)
    if flat.size != sum(counts):
        return
    ends = np.cumsum(counts)[:-1]
    parts = np.split(flat, ends)
    shapes = ((heads, width), (key_heads, width), (key_heads, wide))
    shaped = tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))
    yield "one after the other", shaped
    group = heads // key_heads
    each = flat.reshape(key_heads, -1)  # a group of query heads, its key and its value
    inner = np.split(each, [group * width, (group + 1) * width], axis=1)
    yield "side by side in each head", (inner[0].reshape(heads, width), inner[1], inner[2])


def _of_latent(
    named: Mapping[str, LayerStage], sizes: Sizes, value: np.ndarray
) -> Iterator[LayerStage]:
    """MLA: a head's key is a part made from the latent, and one for position that all share."""
    whole, made = named[_LATENT].numbers, named[_FROM_LATENT].numbers
    if whole is None or made is None or made.size % sizes.key_heads:
        return
    each = made.reshape(sizes.key_heads, -1)  # (H, nope + d_v)
    plain = each.shape[1] - sizes.value_width
    turned = sizes.width - plain
    if not (plain >= 0 and 0 < turned < whole.size):
        return
    v = each[:, plain:]
    off = difference(v, value)
    if v.shape != value.shape or off >= _NEAR:
        return
    flat = whole.reshape(-1)
    latent, shared = flat[:-turned], flat[-turned:]
    yield stage(
        "latent", f"what the KV cache could keep in place of K and V: {latent.size} numbers", latent
    )
    yield stage(
        "K for position", f"one for all heads, turned by position: {turned} numbers", shared
    )
    both = np.concatenate([each[:, :plain], np.tile(shared, (sizes.key_heads, 1))], axis=1)
    words = f"{plain} numbers from the latent and {turned} for position in each head"
    yield stage("K of both", words, both)
    yield stage("V", f"from the latent: {v.shape[0]} heads of {v.shape[1]}", v, gap=off)
