"""A tiny random model of every causal-LM type that transformers has, by shrinking its config.

No table of models: the same sizes go to whatever names a config uses for them, layer kinds are
repeated in their own order, and a few types get what their own rules need.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

LAYERS, HEADS, WIDTH, HEAD_DIM, VOCABULARY, CONTEXT, WINDOW = 4, 4, 64, 16, 128, 128, 16
HALF = HEAD_DIM // 2
NOISE = 0.05

SIZES: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "dim", "embedding_size"), WIDTH),
    **dict.fromkeys(("embedding_dim", "emb_dim", "word_embed_proj_dim", "lru_width"), WIDTH),
    **dict.fromkeys(("input_embedding_size", "shape_embed_dim", "pronunciation_embed_dim"), WIDTH),
    **dict.fromkeys(
        (
            "backbone_hidden_size",
            "ple_embed_dim",
            "adapter_in_dim",
            "adapter_input_size",
            "adapter_out_dim",
        ),
        WIDTH,
    ),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_blocks"), LAYERS),
    **dict.fromkeys(("decoder_layers", "encoder_layers", "num_decoder_layers"), LAYERS),
    "num_layers": LAYERS // 2,  # of two attentions each, where the config says so
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), HEADS),
    **dict.fromkeys(("decoder_attention_heads", "encoder_attention_heads"), HEADS),
    **dict.fromkeys(("num_decoder_attention_heads", "num_encoder_attention_heads"), HEADS),
    **dict.fromkeys(("swa_num_attention_heads", "linear_num_heads"), HEADS),
    **dict.fromkeys(("linear_num_key_heads", "linear_num_value_heads"), HEADS),
    **dict.fromkeys(("num_key_value_heads", "swa_num_key_value_heads", "kv_n_heads"), 2),
    **dict.fromkeys(("head_dim", "swa_head_dim", "v_head_dim", "qk_nope_head_dim"), HEAD_DIM),
    **dict.fromkeys(("linear_key_head_dim", "linear_value_head_dim"), HEAD_DIM),
    **dict.fromkeys(("linear_head_dim", "index_head_dim", "indexer_head_dim"), HEAD_DIM),
    **dict.fromkeys(("qk_rope_head_dim", "rotary_dim"), HALF),
    **dict.fromkeys(("kv_lora_rank", "q_lora_rank", "hc_lowrank", "gated_norm_rank"), 24),
    **dict.fromkeys(("laurel_rank", "hidden_size_per_layer_input", "o_lora_rank"), HEAD_DIM),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "n_inner", "dff", "ffn_hidden_size"), 96),
    **dict.fromkeys(("decoder_ffn_dim", "encoder_ffn_dim", "moe_intermediate_size"), 96),
    **dict.fromkeys(("shared_expert_intermediate_size", "expert_ffn_hidden_size"), 96),
    **dict.fromkeys(("shared_experts_intermediate_size", "feed_forward_size"), 96),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx"), CONTEXT),
    **dict.fromkeys(("model_max_length", "max_target_positions"), CONTEXT),
    **dict.fromkeys(("vocab_size", "vocab_size_per_layer_input"), VOCABULARY),
    "unpadded_vocab_size": VOCABULARY,
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "num_experts_per_token", "moe_topk"), 2),
    **dict.fromkeys(("n_group", "topk_group", "num_expert_group", "zero_expert_num"), 1),
    **dict.fromkeys(("sliding_window", "attention_chunk_size", "local_attention"), WINDOW),
    **dict.fromkeys(("window_size", "sliding_window_size", "attention_window_size"), WINDOW),
    **dict.fromkeys(("local_attn_chunk_length", "lsh_attn_chunk_length"), WINDOW),
    **dict.fromkeys(("index_topk", "indexer_budget"), WINDOW),
    # So many that scores seldom tie at 0: which of tied keys is read is left to chance.
    **dict.fromkeys(("index_n_heads", "indexer_n_heads"), 16),
    **dict.fromkeys(("mamba_d_state", "state_size", "mamba_dt_rank", "time_step_rank"), HEAD_DIM),
    **dict.fromkeys(("mamba_d_head", "mamba_headdim", "mamba_head_dim"), HEAD_DIM),
    **dict.fromkeys(("mamba_n_heads", "mamba_num_heads"), 2 * HEADS),
    **dict.fromkeys(("n_groups", "mamba_n_groups", "mamba_ngroups"), 1),
    **dict.fromkeys(("chunk_size", "mamba_chunk_size"), 16),
    **dict.fromkeys(("n_input_layers", "n_output_layers", "num_dense_layers"), 1),
    "n_recurrent_layers": 2,
    "attn_layer_period": 2,
    "attn_layer_offset": 1,
    "num_kv_shared_layers": 2,
    "first_k_dense_replace": 1,
    "n_layers_per_attn_res_block": 2,
    "dim_model_base": WIDTH,
    "mamba_d_ssm": 2 * WIDTH,
    **dict.fromkeys(("hidden_size_global", "encoder_hash_byte_group_vocab"), WIDTH),
    **dict.fromkeys(("n_shared_experts", "indexer_kv_heads"), 1),
    "indexer_compress_ratio": 2,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
    "is_decoder": True,
    "add_cross_attention": False,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}
# Sizes that a config may leave open, to be filled in all the same.
OPEN = {
    *("num_key_value_heads", "head_dim", "n_routed_experts", "n_shared_experts", "n_inner"),
    *("num_experts_per_tok", "indexer_n_heads", "indexer_kv_heads", "indexer_head_dim"),
    *("indexer_budget", "indexer_compress_ratio", "pad_token_id"),
}

# What the rules of single types ask for beyond sizes.
SPECIAL: dict[str, dict[str, Any]] = {
    "bamba": {"attn_layer_indices": [1, 3]},
    "cohere_compass_text": {
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "rope_parameters": {
            kind: {"rope_type": "default", "rope_theta": 10_000.0}
            for kind in ("sliding_attention", "full_attention")
        },
    },
    "dbrx": {"attn_config": {"rope_theta": 10_000.0, "kv_n_heads": 2, "clip_qkv": 8.0}},
    "dory": {"layer_types": ["sliding_attention", "full_attention"] * 2},
    "dots3_note_text": {
        "head_dim": HEAD_DIM + HALF,
        "swa_head_dim": HEAD_DIM + HALF,
        "swa_qk_nope_head_dim": HEAD_DIM,
        "swa_v_head_dim": HEAD_DIM,
        **dict.fromkeys(("swa_num_attention_heads", "swa_num_key_value_heads"), HEADS),
        **dict.fromkeys(("swa_q_lora_rank", "swa_kv_lora_rank"), 32),
    },
    "gemma4_text": {"global_head_dim": 2 * HEAD_DIM},
    "gemma4_unified_text": {"global_head_dim": 2 * HEAD_DIM},
    "gpt_neo": {"num_layers": LAYERS, "attention_types": [[["global", "local"], 2]]},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"] * 2},
    "lfm2": {"layer_types": ["conv", "full_attention"] * 2},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "mamba2": {"num_heads": 2 * HEADS},
    "reformer": {"axial_pos_embds": False},
    "xmod": {"default_language": "en_XX"},
    "zamba": {"attention_hidden_size": 2 * WIDTH, "attention_head_dim": 2 * WIDTH // HEADS},
    "zamba2": {"n_mamba_heads": 2 * HEADS, "hybrid_layer_ids": [1, 3], "num_query_groups": HEADS},
    "rwkv": {"attention_hidden_size": WIDTH},
    "zaya": {"num_experts_per_tok": 1},
}

# Types that can't be built or fed here: why, in words, and what transformers says.
NOT_BUILT: dict[str, tuple[str, str]] = {
    "gemma3n": ("its image tower needs the package timm", "requires the timm library"),
    "gemma4_assistant": ("it reads another model's states; its default config is invalid",
                         "hidden_size_per_layer_input must be 0"),
    "gemma4_unified_assistant": ("it reads another model's states, not tokens alone",
                                 "shared_kv_states cannot be None"),
    "musicgen": ("it reads audio codes; transformers can't build it from its own config",
                 "has no attribute 'dropout'"),
    "musicgen_melody": ("it reads audio codes; transformers can't build it from its own config",
                        "has no attribute 'dropout'"),
}  # fmt: skip


def causal_types() -> list[str]:
    """Every type in transformers' causal-LM mapping."""
    return sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def small_config(config_class: Any) -> Any:
    """A config of this class with the sizes above, configs inside it likewise."""
    default = config_class()
    names = [field.name for field in dataclasses.fields(config_class)]
    values = {name: SIZES[name] for name in names if name in SIZES and _is_stated(default, name)}
    if "qk_rope_head_dim" in values:  # latent attention: every head has its own keys
        values |= {"head_dim": HALF, "num_key_value_heads": HEADS}
    for name, value in default.to_dict().items():
        if name.endswith(("layer_types", "block_type", "indexer_types")) and value:
            kinds = list(dict.fromkeys(value))
            values[name] = (kinds * LAYERS)[:LAYERS]
    for name in config_class.sub_configs:
        part = getattr(default, name, None)
        if part is not None:
            values[name] = small_config(type(part))
    return config_class(**{**values, **SPECIAL.get(config_class.model_type, {})})


def _is_stated(config: Any, name: str) -> bool:
    """True if the config gives the attribute a value, or leaves it open to be filled in."""
    try:
        return getattr(config, name) is not None or name in OPEN
    except (AttributeError, RuntimeError, ValueError):
        return True  # it differs from layer to layer


def tiny(model_type: str, attention: str | None = None) -> Any:
    """A seeded random model in float32 and eval mode; raises whatever building it raises."""
    torch.manual_seed(0)
    config = small_config(CONFIG_MAPPING[model_type])
    model = AutoModelForCausalLM.from_config(
        config, dtype=torch.float32, attn_implementation=attention
    )
    torch.manual_seed(1)
    # Fresh weights are so small that every map is flat, and every sink and bias zero.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                parameter.add_(torch.randn_like(parameter) * NOISE)
    return model.eval()
