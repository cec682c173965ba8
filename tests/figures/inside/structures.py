"""How a model of two layers is put together, made without one."""

from __future__ import annotations

from typing import Any

import msgspec

from explorer.trace.inside.structure import BlockPart, LayerBlock, ModelStructure, OuterPart, Reads


def part(kind: str, name: str, reads: Reads, source: str = "", adds: bool = False) -> BlockPart:
    fields: dict[str, Any] = {"kind": kind, "reads": reads, "adds": adds}
    return BlockPart(name=name, module="X", source=source, width=8, parameters=16, bytes=64,
                     **fields)  # fmt: skip


def structure() -> ModelStructure:
    """A layer in a row, and one whose parts stand side by side."""
    row = (
        part("norm", "ln1", "entered"),
        part("attention", "attn", "part", "ln1", adds=True),
        part("norm", "ln2", "stream"),
        part("mlp", "mlp", "part", "ln2", adds=True),
    )
    side_by_side = (
        part("norm", "ln1", "entered"),
        part("attention", "attn", "part", "ln1", adds=True),
        part("experts", "moe", "part", "ln1", adds=True),
    )
    table = OuterPart(module="Embedding", shape=(40, 8), parameters=320, bytes=1280)
    norm = OuterPart(module="RMSNorm", shape=(8,), parameters=8, bytes=32)
    return ModelStructure(
        layers=2,
        blocks=(LayerBlock(layers=(0,), parts=row), LayerBlock(layers=(1,), parts=side_by_side)),
        embedding=table,
        norm=norm,
        head=table,
        tied=True,
    )


def facts() -> dict[str, Any]:
    """The same as an engine tells it."""
    told: dict[str, Any] = msgspec.to_builtins(structure())
    return told
