"""The parts of a decoder that have a clock of their own, told by the names that models give them.

A part is known only where it is a module of its own: attention that is written out inside a
layer's forward has no beginning and no end that could be timed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from explorer.engine.model_files.find_layers import decoder_layers

# What mixes tokens; a recurrent or convolutional mixer stands in attention's place.
_ATTENTION = frozenset({
    "self_attn", "attn", "attention", "self_attention", "linear_attn", "self_att", "cross_attn",
    "multi_head_attention", "rel_attn", "mamba", "conv", "temporal_block", "mlstm_layer",
})  # fmt: skip
_MLP = frozenset({
    "mlp", "feed_forward", "ffn", "ff", "mlp_block", "block_sparse_moe", "shared_mlp",
    "fc1", "fc2", "intermediate", "output",
})  # fmt: skip
_NORM = frozenset({
    "norm", "ln_f", "norm_f", "final_layernorm", "final_layer_norm", "final_norm", "layer_norm",
    "ln_out", "out_norm", "embedding_norm",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Parts:
    """Modules by what they do; an empty tuple or None where no module does just that."""

    layers: tuple[Any, ...]
    attention: tuple[tuple[Any, ...], ...]  # per layer
    mlp: tuple[tuple[Any, ...], ...]  # per layer
    embedding: Any | None
    norm: Any | None  # after the last layer
    head: Any | None


def parts_of(model: Any) -> Parts:
    """The parts of a transformers model; EngineError if its layers can't be found."""
    layers = tuple(decoder_layers(model))
    decoder = getattr(model, "get_decoder", lambda: None)() or model
    return Parts(
        layers=layers,
        attention=tuple(_named(layer, _ATTENTION) for layer in layers),
        mlp=tuple(_named(layer, _MLP) for layer in layers),
        embedding=model.get_input_embeddings(),
        norm=next(iter(_named(decoder, _NORM)), None),
        head=model.get_output_embeddings(),
    )


def _named(parent: Any, names: frozenset[str]) -> tuple[Any, ...]:
    found = [child for name, child in parent.named_children() if name in names]
    # The forward of a list is never called, so its parts can't be timed as one.
    lists = any(isinstance(child, torch.nn.ModuleList) for child in found)
    return () if lists else tuple(found)
