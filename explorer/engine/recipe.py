"""The recipe card of a model, from its config alone: how it is built, and exactly how large."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch

from explorer.engine import catalog, gguf
from explorer.engine.configs import causal_class, read_config
from explorer.engine.shape import Shape, shape_of

_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True, slots=True)
class Count:
    """Parameters, counted on a model without memory."""

    parameters: int
    tied: bool
    table: int  # of the token table; what tying saves, if the head is tied


def inspect(model: str) -> dict[str, Any]:
    """Facts of a model from its config; no weights are read."""
    source = catalog.resolve(model)
    config = gguf.config_of(source.path) if source.kind == "gguf" else read_config(source.path)
    return facts(source.name, config)


def facts(name: str, config: Any) -> dict[str, Any]:
    """The fields of `inspect` for a transformers config."""
    shape = shape_of(config)
    count = count_parameters(config)
    rule = rule_of_thumb(shape)
    return {
        "model": name,
        "architecture": str(config.model_type),
        "layers": shape.layers,
        "hidden_size": shape.hidden_size,
        "heads": shape.heads,
        "kv_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "vocab_size": shape.vocab_size,
        "context": shape.context,
        "parameters": count.parameters,
        "parameters_rule_of_thumb": rule,
        "tied": count.tied,
        "tying_saves": count.table if count.tied else 0,
        "kv_bytes_per_token": {d: shape.kv_bytes_per_token(size) for d, size in _BYTES.items()},
        "layer_kinds": list(shape.layer_kinds),
        "recipe": recipe(config, shape, count, rule),
    }


def count_parameters(config: Any) -> Count:
    """Build the model on the meta device, where tensors have shapes and no memory."""
    with torch.device("meta"):
        model = causal_class(config)._from_config(config)
    total = sum(p.numel() for p in model.parameters())  # a tied tensor is counted once
    table, head = model.get_input_embeddings(), model.get_output_embeddings()
    tied = head is not None and getattr(head, "weight", None) is getattr(table, "weight", table)
    return Count(total, tied, int(table.weight.numel()) if hasattr(table, "weight") else 0)


def rule_of_thumb(shape: Shape) -> int:
    """12·L·d² + V·d: a stack of GPT-2 blocks and a tied token table."""
    return 12 * shape.layers * shape.hidden_size**2 + shape.vocab_size * shape.hidden_size


def recipe(config: Any, shape: Shape, count: Count, rule: int) -> list[str]:
    """The design in lines a student understands."""
    lines = [
        f"{shape.layers} layers, each {shape.hidden_size:,} numbers wide.",
        _attention(shape),
        *_layers(shape),
        _tying(count),
        f"{count.parameters:,} parameters, counted exactly.",
        _miss(count, rule),
    ]
    return [line for line in lines if line]


def _attention(shape: Shape) -> str:
    if not shape.heads:
        return "No attention: each layer carries a state of fixed size from token to token."
    line = f"{shape.heads} query heads of width {shape.head_dim}"
    if shape.kv_heads == shape.heads:
        return f"{line}, each with its own keys and values."
    share = shape.heads / shape.kv_heads
    return (
        f"{line} share {shape.kv_heads} key/value heads, so the cache is {share:g} times smaller "
        "than with one for each."
    )


def _layers(shape: Shape) -> list[str]:
    if len(set(shape.layer_kinds)) < 2 and "sliding" not in shape.layer_kinds:
        return []
    runs = [f"{len(list(run))} {kind}" for kind, run in groupby(shape.layer_kinds)]
    line = "Layers from bottom to top: " + ", ".join(runs[:12]) + ("…" if len(runs) > 12 else ".")
    window = max(shape.windows, default=0)
    return [line, f"A sliding layer looks back {window:,} tokens at most." if window else ""]


def _tying(count: Count) -> str:
    if count.tied:
        share = count.table / (count.parameters + count.table)
        return (
            "The output head is the token table used again (tied), which saves "
            f"{count.table:,} parameters ({share:.1%} of the untied model)."
        )
    return "The output head is a table of its own (not tied to the token table)."


def _miss(count: Count, rule: int) -> str:
    miss = rule / count.parameters - 1 if count.parameters else 0.0
    word = "more" if miss > 0 else "fewer"
    return f"The rule of thumb 12·L·d² + V·d says {rule:,}: {abs(miss):.1%} {word} than there are."


__all__ = ["Count", "count_parameters", "facts", "inspect", "rule_of_thumb"]
