"""The parts of a model in the order in which they compute, with what is known of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.trace.card import ModelCard
from explorer.trace.inside.structure import BlockPart, ModelStructure, OuterPart
from explorer.trace.step import Step

_PANELS = {
    "embedding": "stream", "norm": "block", "attention": "attention", "mixer": "block",
    "mlp": "block", "experts": "block", "other": "block", "final norm": "lens",
    "head": "next-token", "softmax": "next-token",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MapPart:
    """One row of the picture."""

    kind: str  # embedding, norm, attention, mixer, mlp, experts, other, final norm, head, softmax
    name: str  # of its module; "" = it has none
    layer: int | None  # that it is in
    reads: str = "stream"  # entered, stream, part or inside
    source: str = ""  # the part whose output it reads
    adds: bool = False  # to the stream
    shape: tuple[int, ...] = ()  # of its weight, or the numbers a token that it gives
    parameters: int = 0
    bytes: int = 0
    ms: float | None = None  # of the step that is looked at; None = it has no clock
    tied: bool = False  # it has no weights of its own: it is the embedding's table

    @property
    def panel(self) -> str:
        """The ID of the panel that shows it."""
        return _PANELS[self.kind]


def parts(found: ModelStructure, step: Step | None, layer: int) -> Iterator[MapPart]:
    """From the embedding through one layer to the softmax."""
    yield _outer("embedding", found.embedding, None if step is None else step.embedding_ms)
    for part in found.block_of(layer).parts:
        yield _inner(part, layer, step)
    if found.norm is not None:
        yield _outer("final norm", found.norm, None if step is None else step.norm_ms)
    if found.head is not None:
        ms = None if step is None else step.head_ms
        yield _outer("head", found.head, ms, tied=found.tied)
    yield MapPart("softmax", "", None, reads="part")


def _outer(kind: str, part: OuterPart, ms: float | None, tied: bool = False) -> MapPart:
    return MapPart(
        kind, part.module, None, "stream" if kind == "final norm" else "part", "", False,
        part.shape, part.parameters, part.bytes, ms, tied,
    )  # fmt: skip


def _inner(part: BlockPart, layer: int, step: Step | None) -> MapPart:
    clocks = {}
    if step is not None:
        clocks = {"attention": step.attention_ms, "mixer": step.attention_ms,
                  "mlp": step.mlp_ms, "experts": step.mlp_ms}  # fmt: skip
    return MapPart(
        part.kind, part.name, layer, part.reads, part.source, part.adds,
        (part.width,) if part.width else (), part.parameters, part.bytes,
        _at(clocks.get(part.kind), layer),
    )  # fmt: skip


def _at(clock: np.ndarray | None, layer: int) -> float | None:
    if clock is None or layer >= len(clock) or np.isnan(clock[layer]):
        return None
    return float(clock[layer])


def block_numbers(found: ModelStructure) -> list[int]:
    """Which kind of block each layer is, by its number."""
    numbers = [0] * found.layers
    for number, block in enumerate(found.blocks):
        for layer in block.layers:
            if layer < found.layers:
                numbers[layer] = number
    return numbers


def mixing(card: ModelCard, layer: int) -> tuple[str, int]:
    """What kind of attention a layer has ("" = not known), and its window in tokens (0 = none)."""
    kind = card.layer_kinds[layer] if layer < len(card.layer_kinds) else ""
    return kind, card.windows[layer] if layer < len(card.windows) else 0


def table(rows: Sequence[MapPart]) -> Iterator[Sequence[object]]:
    """Every part in full."""
    yield "part", "module", "layer", "reads", "adds", "shape", "parameters", "bytes", "ms"
    for one in rows:
        yield (
            one.kind, one.name, "" if one.layer is None else one.layer, one.source or one.reads,
            one.adds, "x".join(map(str, one.shape)), one.parameters, one.bytes,
            "" if one.ms is None else one.ms,
        )  # fmt: skip
