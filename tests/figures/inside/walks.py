"""A walk through a layer of the scripted run, made without a model."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from explorer.trace import attention
from explorer.trace.inside.arrays import packed
from explorer.trace.inside.walk import (
    ExpertChoice,
    LayerStage,
    LayerWalk,
    LayerWrite,
    Turn,
    pair_places,
)
from tests.session.scripted import made_step

ANGLES = np.array([0.5, -0.25], np.float32)
STAGES = (
    "residual stream", "input norm", "Q", "Q after RoPE", "scores", "mask", "softmax", "W_O",
    "residual", "router", "experts", "state: kept", "residual stream after",
)  # fmt: skip


def made(name: str, numbers: Any, formula: str = "W · x", **more: Any) -> LayerStage:
    array = np.asarray(numbers, np.float32)
    finite = np.where(np.isfinite(array), array, 0)
    return LayerStage(
        name=name, formula=formula, shape=array.shape, norm=float(np.linalg.norm(finite)),
        data=packed(array), **more,
    )  # fmt: skip


def walk(layer: int = 0, slot: int = 2) -> LayerWalk:
    """Of the prompt of three tokens; its scores are those of the recorded queries and keys."""
    record = made_step(0).layers[layer]
    assert record.queries is not None
    assert record.keys is not None
    after, rows = record.queries[slot], slice(slot, slot + 1)
    scores = np.concatenate([attention.scores(record, record.keys, h, rows) for h in range(2)])
    weights = np.concatenate([attention.weights(record, record.keys, h, rows) for h in range(2)])
    hidden = np.where(np.arange(3) <= slot, 0, -np.inf)
    was, _ = pair_places("halves", 0, 2)
    before = np.zeros_like(after)
    turned = (after[:, was[0]] + 1j * after[:, was[1]]) * np.exp(-1j * ANGLES)
    before[:, was[0]], before[:, was[1]] = turned.real, turned.imag
    turn = Turn(
        pairing="halves", start=0, position=slot, angles=packed(ANGLES),
        frequencies=packed(ANGLES / max(slot, 1)), factor=1.0, gap=3e-8,
    )  # fmt: skip
    stream = np.arange(8) - 3.5
    return LayerWalk(
        layer=layer,
        slot=slot,
        kind="attention",
        stages=(
            made("residual stream", stream, "what the layer reads"),
            made("input norm", stream / 2, "x / √(mean(x²) + ε) · w", gap=4e-8),
            made("Q", before.reshape(-1), gap=3e-7, module="attn.q_proj"),
            made("Q after RoPE", after, "pairs turned", gap=3e-8, source="Q", turn=turn),
            made("scores", scores, "q · k × 0.5, 3 keys", first_key=0),
            made("mask", scores + hidden, "-∞ where hidden", first_key=0),
            made("softmax", weights, "exp(score) / Σ exp(score)", first_key=0),
            made("W_O", stream * 2, gap=0.0, module="attn.o_proj"),
            made("residual", stream * 3, "stream + what was written so far", gap=1e-8),
            made("router", [0.25, -1.0, 2.0], module="moe.gate"),
            made("experts", stream, "inside Experts: not split into its steps", module="moe.x"),
            made("state: kept", np.ones((2, 3, 4)), "kept from token to token"),
            made("residual stream after", stream * 4, "stream + all", gap=0.0),
        ),
        writes=(LayerWrite(name="attn.o_proj", norm=12.9), LayerWrite(name="moe.x", norm=6.48)),
        residual_gap=3e-9,
        experts=tuple(
            ExpertChoice(slot=one, ids=(2, one % 2), weights=(0.75, 0.25))
            for one in range(slot + 1)
        ),
    )


def facts(layer: int = 0, slot: int = 2) -> dict[str, Any]:
    """The same as an engine tells it."""
    told: dict[str, Any] = msgspec.to_builtins(walk(layer, slot), builtin_types=(bytes,))
    return told
