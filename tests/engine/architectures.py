"""A tiny random model of every causal-LM type that transformers has, by shrinking its config.

No table of models: the same sizes are written over whatever names a config uses for them, and a
few types get what their own rules need (a divisor, a list of layer kinds).
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

LAYERS, HEADS, WIDTH, HEAD_DIM, VOCABULARY, CONTEXT, WINDOW = 4, 4, 64, 16, 128, 128, 8

SIZES: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "dim", "embedding_size"), WIDTH),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers"), LAYERS),
    **dict.fromkeys(("decoder_layers", "encoder_layers"), LAYERS),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), HEADS),
    **dict.fromkeys(("decoder_attention_heads", "encoder_attention_heads"), HEADS),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "n_inner", "dff", "ffn_hidden_size"), 96),
    **dict.fromkeys(("decoder_ffn_dim", "encoder_ffn_dim", "moe_intermediate_size"), 96),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx"), CONTEXT),
    **dict.fromkeys(("vocab_size", "vocab_size_per_layer_input"), VOCABULARY),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_topk", "n_group", "topk_group"), 1),
    **dict.fromkeys(("sliding_window", "attention_chunk_size", "local_attention"), WINDOW),
    **dict.fromkeys(("window_size",), WINDOW),
    "num_key_value_heads": 2,
    "head_dim": HEAD_DIM,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
    "first_k_dense_replace": 1,
    "is_decoder": True,
    "add_cross_attention": False,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}


def causal_types() -> list[str]:
    """Every type in transformers' causal-LM mapping."""
    return sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def shrink(config: Any) -> Any:
    """The same config with the sizes above, and the configs inside it likewise."""
    for name, value in SIZES.items():
        try:
            if getattr(config, name, None) is not None or name in ("head_dim", "is_decoder"):
                setattr(config, name, value)
        except (AttributeError, TypeError, ValueError, NotImplementedError, KeyError):
            continue  # a derived value, or one that differs from layer to layer
    rope = getattr(config, "rope_parameters", None)
    if isinstance(rope, dict) and rope.get("rope_theta", 1) is None:
        rope["rope_theta"] = 10_000.0
    for name in getattr(config, "sub_configs", {}):
        if getattr(config, name, None) is not None:
            shrink(getattr(config, name))
    return config


def tiny(model_type: str) -> Any:
    """A seeded random model in float32 and eval mode; raises whatever building it raises."""
    torch.manual_seed(0)
    config = shrink(CONFIG_MAPPING[model_type]())
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    return model.eval()
