"""The sizes of a GPT, read from the config.json of a checkpoint in GPT-2's layout; its weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from explorer.reference.encoder import GPTConfig

GELU = {"gelu": "none", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh"}
TURNED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")


def config_of(stated: Mapping[str, Any]) -> GPTConfig:
    """The sizes that config.json, as a dictionary, states.

    ValueError in one sentence if it asks for a part that this decoder does not have.
    """
    if stated.get("model_type") != "gpt2":
        raise ValueError(f"it is of type {stated.get('model_type')}, not gpt2")
    gelu = stated.get("activation_function", "gelu_new")
    if gelu not in GELU:
        raise ValueError(f"its MLP uses {gelu}, not gelu")
    inner = stated.get("n_inner")
    if inner and inner != 4 * stated["n_embd"]:
        raise ValueError("its MLP is not four times as wide as the residual stream")
    if stated.get("scale_attn_by_inverse_layer_idx") or not stated.get("scale_attn_weights", True):
        raise ValueError("its attention scores are scaled in another way")
    if stated.get("layer_norm_epsilon", 1e-5) != 1e-5:
        raise ValueError("its LayerNorm has another epsilon")
    return GPTConfig(
        vocabulary=stated["vocab_size"],
        context=stated["n_positions"],
        width=stated["n_embd"],
        layers=stated["n_layer"],
        heads=stated["n_head"],
        tied=stated.get("tie_word_embeddings", True),
        gelu=GELU[gelu],
    )


def turned(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same weights with the matrices of the layers the other way round.

    GPT-2 keeps them as (in, out), torch's linear layers as (out, in).
    """
    return {name: w.T if name.endswith(TURNED) else w for name, w in weights.items()}
