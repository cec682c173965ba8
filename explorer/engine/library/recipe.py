"""The recipe card of a model, from its config alone: how it is built, and exactly how large."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from explorer.engine.errors import BadInput
from explorer.engine.gguf import model_folder
from explorer.engine.library import catalog, file_summary
from explorer.engine.library.parameter_counts import ParameterCounts, anatomy
from explorer.engine.library.recipe_words import lines
from explorer.engine.machine import free_memory
from explorer.engine.model_files.configs import read_config
from explorer.engine.model_files.find_layers import built_layers
from explorer.engine.model_files.meta_model import Count, count, kept_per_token, skeleton
from explorer.engine.model_files.model_shape import Shape, shape_of
from explorer.engine.model_files.stated_figures import check_belongs, check_figures
from explorer.engine.model_files.weights import read_json, stored_numbers, weight_files
from explorer.wording import percent

# The same design, scaled: year, layers, width, parameters (counted as `inspect` counts).
GPT_TABLE = (
    {"name": "GPT-1", "year": 2018, "layers": 12, "hidden_size": 768, "parameters": 116_534_784},
    {"name": "GPT-2", "year": 2019, "layers": 48, "hidden_size": 1600,
     "parameters": 1_557_611_200},
    {"name": "GPT-3", "year": 2020, "layers": 96, "hidden_size": 12288,
     "parameters": 174_604_259_328},
)  # fmt: skip


PARTS = ("attention", "feed_forward", "table", "head", "positions", "rest")


def inspect(model: str) -> dict[str, Any]:
    """Facts of a model from its config; no weights are read."""
    source = catalog.resolve(model)
    if source.kind == "gguf":
        config, held, storage = model_folder.described(source.path)
        model = skeleton(config)
        check_belongs(source.path.name, count(model).parameters, held)
        return {**facts(source.name, config, model), **storage, "forms": ["as-is", "float32"]}
    config = read_config(source.path)
    model = require_figures(source.name, source.path, config)
    return {**facts(source.name, config, model), **file_summary.storage_of(source.path)}


def require_figures(name: str, folder: Path, config: Any) -> Any:
    """The skeleton of a folder's config; BadInput if a figure that it needs is not stated there."""
    model, stated = skeleton(config), read_json(folder / "config.json")
    check_figures(name, config, stated, count(model).parameters, _held(folder))
    return model


def _held(folder: Path) -> int | None:
    """Numbers in the weight files of a folder; None where they are not there or not whole."""
    try:
        return stored_numbers(weight_files(folder))
    except (BadInput, OSError):
        return None


def facts(name: str, config: Any, model: Any = None) -> dict[str, Any]:
    """The fields of `inspect` for a transformers config; `model`: its skeleton, if there is one."""
    shape, model = shape_of(config), skeleton(config) if model is None else model
    counted, parts = count(model), anatomy(model)
    rule = rule_of_thumb(shape)
    per_token = kept_per_token(config, model, shape)
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
        "parameters": counted.parameters,
        "parameters_rule_of_thumb": rule,
        "tied": counted.tied,
        "tying_saves": counted.table if counted.tied else 0,
        "parts": {name: getattr(parts, name) for name in PARTS},
        "kv_bytes_per_token": {d: per_token * size for d, size in free_memory.BYTES_OF.items()},
        "layer_kinds": list(shape.layer_kinds),
        "recipe": [
            *lines(config, shape, built_layers(model), counted, parts, per_token),
            *_rule(counted, parts, shape),
        ],
        "memory_bytes": {
            dtype: free_memory.estimate(counted.parameters, shape, dtype).total
            for dtype in free_memory.BYTES_OF
        },
        "compare": [dict(row) for row in GPT_TABLE],
    }


def rule_of_thumb(shape: Shape) -> int:
    """12·L·d² + V·d: a stack of GPT-2 blocks and a tied token table."""
    return 12 * shape.layers * shape.hidden_size**2 + shape.vocab_size * shape.hidden_size


def _rule(counted: Count, parts: ParameterCounts, shape: Shape) -> list[str]:
    """The rule of thumb, its miss, and which parts of the model cause it."""
    rule = rule_of_thumb(shape)
    if not counted.parameters or not rule:
        return []
    miss = rule / counted.parameters - 1
    said = f"The rule of thumb 12·L·d² + V·d gives {rule:,}, {percent(abs(miss))} too "
    said += "many." if miss > 0 else "few."
    causes = _causes(counted, parts, shape)
    return [said, "Why it misses: " + "; ".join(causes) + "."] if causes else [said]


def _causes(counted: Count, parts: ParameterCounts, shape: Shape) -> list[str]:
    """Parts that differ from what the rule assumes by 1 % of the model or more."""
    square = shape.layers * shape.hidden_size**2
    pairs = (
        ("attention" if shape.heads else "the state layers", parts.attention - 4 * square,
         "the rule assumes four d×d matrices a layer"),
        ("the feed-forward part", parts.feed_forward - 8 * square,
         "the rule assumes one hidden layer of 4d"),
        ("the separate output head", parts.head, "the rule assumes a tied one"),
        ("the table of positions", parts.positions, "the rule leaves it out"),
        ("norms and other parts", parts.rest, "the rule leaves them out"),
    )  # fmt: skip
    found = []
    for name, extra, assumed in pairs:
        if abs(extra) >= 0.01 * counted.parameters:
            word = "more" if extra > 0 else "fewer"
            found.append(f"{name} has {abs(extra):,} {word} ({assumed})")
    return found


__all__ = ["GPT_TABLE", "facts", "inspect", "require_figures", "rule_of_thumb"]
