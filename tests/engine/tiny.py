"""Tiny random models of several architectures, with a tokenizer that spells ids."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from explorer.engine.loading.loading import LoadedModel
from explorer.engine.model_files.find_layers import decoder_layers
from explorer.engine.passes.runner import Runner
from explorer.engine.text.encoding import Encoded
from explorer.trace.card import ModelCard
from explorer.trace.step import Origin, Token

SIZES: dict[str, Any] = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
}
KINDS: dict[str, dict[str, Any]] = {
    "gpt2": {
        "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64, "vocab_size": 96,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None,
    },
    "llama": SIZES,
    "gemma3_text": {**SIZES, "sliding_window": 5,
                    "layer_types": ["sliding_attention", "sliding_attention", "full_attention"]},
    "gemma2": {**SIZES, "sliding_window": 5, "query_pre_attn_scalar": 8,
               "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
    "mistral": {**SIZES, "sliding_window": 5},
    "gpt_oss": {**SIZES, "sliding_window": 5, "num_local_experts": 2, "num_experts_per_tok": 1,
                "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
}  # fmt: skip


class SpelledIds:
    """A tokenizer whose text is ids with spaces between."""

    def encode(self, text: str, chat: bool = False, special_as_text: bool = False) -> Encoded:
        return Encoded(tuple(self.token(int(word)) for word in text.split()), "")

    def token(self, token_id: int, origin: Origin = "prompt") -> Token:
        return Token(token_id, f"{token_id} ".encode(), origin)


def tiny_model(kind: str, **changes: Any) -> Any:
    """A random model of this type in float32, seeded, with sinks and norms that matter."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **{**KINDS[kind], **changes})
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.eval()


def tiny_runner(kind: str, **changes: Any) -> Runner:
    """A runner on a tiny random model, not yet self-tested."""
    return runner_on(tiny_model(kind, **changes), context=64)


def runner_on(model: Any, context: int = 0) -> Runner:
    """A runner on a model in memory, with a tokenizer that spells ids."""
    config = model.config.get_text_config(decoder=True)
    card = ModelCard(
        name=config.model_type,
        path="",
        architecture=config.model_type,
        layers=len(decoder_layers(model)),
        hidden_size=int(getattr(config, "hidden_size", 0) or 0),
        heads=0,
        kv_heads=0,
        head_dim=0,
        vocab_size=model.get_input_embeddings().num_embeddings,
        context=context,
        parameters=model.num_parameters(),
        dtype="float32",
        device="cpu",
        pad_id=0,
    )
    return Runner(LoadedModel(model=model, config=model.config, tokenizer=SpelledIds(), card=card))
