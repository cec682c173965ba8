"""How a model is put together: what is asked, and what was seen while it computed."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from explorer.trace.experiments import AtLeastOne, Count, Experiment, Result

Words = Annotated[str, Meta(max_length=400)]
Size = Annotated[int, Meta(ge=0, le=2**53)]
BlockKind = Literal["norm", "attention", "mixer", "mlp", "experts", "other"]
# entered: the stream as it came into the layer.  stream: with what the layer has added so far.
# part: what another part of the layer gave.  inside: what no part gave as it is.
Reads = Literal["entered", "stream", "part", "inside"]


class BlockPart(msgspec.Struct, frozen=True, kw_only=True):
    """One module of a layer, in the order in which they compute."""

    name: Words
    module: Words  # its class
    kind: BlockKind
    reads: Reads
    source: Words = ""  # the part whose output it reads
    adds: bool  # it, or a module in it, adds to the stream
    width: Count  # numbers a token that it gives; 0 = not one row a token
    parameters: Size
    bytes: Size


class LayerBlock(msgspec.Struct, frozen=True, kw_only=True):
    """The layers that are put together in the same way."""

    layers: Annotated[tuple[Count, ...], Meta(min_length=1, max_length=100_000)]
    parts: Annotated[tuple[BlockPart, ...], Meta(max_length=400)]


class OuterPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part outside the layers."""

    module: Words
    shape: Annotated[tuple[Count, ...], Meta(max_length=8)]  # of its weight
    parameters: Size
    bytes: Size


class ModelStructure(Result, frozen=True, kw_only=True):
    """The parts of a model."""

    layers: AtLeastOne
    blocks: Annotated[tuple[LayerBlock, ...], Meta(min_length=1, max_length=100_000)]
    embedding: OuterPart
    norm: OuterPart | None  # after the last layer
    head: OuterPart | None
    tied: bool  # the head is the embedding's own table
    stream_reason: Words = ""  # why it is not known what the parts add

    def block_of(self, layer: int) -> LayerBlock:
        """The kind of block that a layer is; the first if it is of none."""
        return next((block for block in self.blocks if layer in block.layers), self.blocks[0])


class ReadStructure(Experiment, frozen=True, kw_only=True):
    """Which parts the layers of the open model have, and what each reads."""

    RESULT = ModelStructure
    RUNNING = "Looking at the parts of the model…"
    CANCELLED = "Cancelled: the parts of the model were not looked at."
    OF_PROMPT = True
