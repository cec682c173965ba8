"""The sizes of a modern decoder, read from the config.json of a checkpoint in Llama's layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from explorer.reference.modern import ModernConfig

KINDS = ("llama", "qwen3")
"""Values of model_type; Qwen3 has norms on queries and keys."""


def config_of(stated: Mapping[str, Any]) -> ModernConfig:
    """The sizes that config.json, as a dictionary, states.

    ValueError in one sentence if it asks for a part that this decoder does not have.
    """
    kind = stated.get("model_type")
    if kind not in KINDS:
        raise ValueError(f"it is of type {kind}, not {' or '.join(KINDS)}")
    rope = stated.get("rope_parameters") or stated.get("rope_scaling") or {}
    if rope.get("rope_type", "default") != "default":
        raise ValueError(f"its rotary positions are of the kind {rope['rope_type']}")
    if stated.get("hidden_act", "silu") != "silu":
        raise ValueError(f"its MLP uses {stated['hidden_act']}, not silu")
    for name in ("attention_bias", "mlp_bias", "use_sliding_window"):
        if stated.get(name):
            raise ValueError(f"it has {name}, a part that this decoder lacks")
    heads = stated["num_attention_heads"]
    return ModernConfig(
        vocabulary=stated["vocab_size"],
        width=stated["hidden_size"],
        layers=stated["num_hidden_layers"],
        heads=heads,
        kv_heads=stated.get("num_key_value_heads") or heads,
        head_width=stated.get("head_dim") or stated["hidden_size"] // heads,
        mlp_width=stated["intermediate_size"],
        rope_base=rope.get("rope_theta") or stated.get("rope_theta") or 10_000.0,
        norm_epsilon=stated.get("rms_norm_eps", 1e-6),
        tied=stated.get("tie_word_embeddings", False),
        qk_norm=kind == "qwen3",
    )
