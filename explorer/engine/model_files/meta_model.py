"""A model without memory: built from its config on the meta device, to count and compare."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.modules.module import register_module_module_registration_hook
from transformers import DynamicCache

from explorer.engine.errors import BadInput
from explorer.engine.light_imports import no_compiler
from explorer.engine.model_files.configs import causal_class
from explorer.engine.model_files.model_shape import (
    Shape,
    check_layers,
    shape_of,
    text_config,
    value_of,
)

_MOST_MODULES = 150_000  # a model of 60 layers with 256 experts each has fewer
_FEW, _MORE = 4, 8  # tokens of the two passes that are compared


@dataclass(frozen=True, slots=True)
class Count:
    """Parameters of a model; a tied tensor is counted once."""

    parameters: int
    tied: bool
    table: int  # of the token table: what tying saves, if the head is tied


def skeleton(config: Any) -> Any:
    """The model of a config on the meta device; BadInput if it cannot be built."""
    check_layers(shape_of(config).layers)
    try:
        kind, part = causal_class(config)
        with torch.device("meta"), no_compiler(), _of_sane_size(config.model_type):
            return kind._from_config(part)
    except (BadInput, MemoryError):
        raise
    except Exception as error:  # a config may ask for the impossible in many ways
        raise BadInput(
            f"No {config.model_type} model can be built from this config.json; download it again.",
            traceback.format_exc(),
        ) from error


@contextmanager
def _of_sane_size(kind: str) -> Iterator[None]:
    """While inside, BadInput from a model that takes more modules than any has."""
    made = 0

    def added(*_: Any) -> None:
        nonlocal made
        made += 1
        if made > _MOST_MODULES:
            raise BadInput(
                f"The config.json asks for a {kind} model of more than {_MOST_MODULES:,} modules; "
                "no such model can be opened."
            )

    watch = register_module_module_registration_hook(added)
    try:
        yield
    finally:
        watch.remove()


def count(model: Any) -> Count:
    """Count a model's parameters, its head and its token table."""
    total = sum(p.numel() for p in model.parameters())
    table = getattr(model.get_input_embeddings(), "weight", None)
    head = getattr(model.get_output_embeddings(), "weight", None)
    tied = head is not None and head is table
    return Count(total, tied, int(table.numel()) if table is not None else 0)


def kept_per_token(config: Any, model: Any, shape: Shape) -> int:
    """Numbers kept in the cache for each token: by the formula, where that is the whole story."""
    text = text_config(config)
    odd = any(value_of(text, n) for n in ("kv_lora_rank", "num_kv_shared_layers", "layer_types"))
    if odd or set(shape.layer_kinds) != {"full"}:
        window = min((window for window in shape.windows if window), default=_MORE + 1)
        # A window of w keeps w - 1 tokens: where more are read, some of them are dropped again.
        measured = cached_per_token(model, *((_FEW, _MORE) if window > _MORE else (1, 2)))
        if measured is not None:
            return measured
    return shape.kv_bytes_per_token(1)


def latent_width(config: Any, kept: int) -> int:
    """Numbers a layer keeps per token where they are one latent for all heads; 0 elsewhere.

    `kept`: numbers that all layers keep together.  Some models have a latent and yet cache what
    is made of it.
    """
    text = text_config(config)
    parts = [value_of(text, name) for name in ("kv_lora_rank", "qk_rope_head_dim")]
    width = sum(part for part in parts if isinstance(part, int))
    return width if parts[0] and width * shape_of(config).layers == kept else 0


def cached_per_token(model: Any, few: int = _FEW, more: int = _MORE) -> int | None:
    """Numbers that transformers' own cache keeps for each token, read off two passes over nothing.

    `few` and `more` tokens must be below any sliding window; None where the model cannot run
    without memory.
    """
    for dtype in (torch.float32, torch.bfloat16):  # grouped experts run in bfloat16 only
        try:
            with torch.inference_mode():
                small, large = (_cached(model.to(dtype), tokens) for tokens in (few, more))
            return (large - small) // (more - few)
        except Exception:  # many operations look at values, which a tensor of this kind lacks
            continue
    return None


def _cached(model: Any, tokens: int) -> int:
    cache = DynamicCache(config=model.config)
    ids = torch.zeros(1, tokens, dtype=torch.long, device="meta")
    model(input_ids=ids, cache=cache, use_cache=True)
    held = [(getattr(x, "keys", None), getattr(x, "values", None)) for x in cache.layers]
    return sum(int(t.numel()) for pair in held for t in pair if t is not None)
