"""What a GGUF file states of the model's design and transformers' own GGUF route leaves out.

transformers drops rotary scaling, the width of experts and of heads; the model would run and be
another one.  What can be said in its config is added here; what cannot is named in a note.
"""

from __future__ import annotations

from typing import Any

import gguf as library
import numpy as np
from transformers.integrations.ggml import GGUF_CONFIG_MAPPING

from explorer.engine.errors import BadInput
from explorer.engine.gguf.header import Header

_WIDTHS = {
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    "attention.key_length": "head_dim",
}
# Figures of a model's size, wherever transformers takes them from a file of this architecture.
_ALWAYS = (
    "block_count", "embedding_length", "context_length", "attention.head_count",
    "feed_forward_length",
)  # fmt: skip
_FIGURES = (
    *_ALWAYS, "ssm.conv_kernel", "ssm.state_size", "ssm.inner_size",
    "ssm.time_step_rank", "expert_count", "expert_used_count",
)  # fmt: skip
_MAPPED = {"qwen2moe": "qwen2_moe", "qwen3moe": "qwen3_moe", "minimax-m2": "minimax_m2",
           "gpt-oss": "gpt_oss"}  # fmt: skip
# Keys that change what a model computes, with the value that changes nothing.
_TELLING = {
    "attention.scale": None,
    "attention.clamp_kqv": 0.0,
    "attention.max_alibi_bias": 0.0,
    "embedding_scale": 1.0,
    "residual_scale": 1.0,
    "logit_scale": 1.0,
    "expert_weights_scale": 1.0,
    "rope.scaling.attn_factor": 1.0,
}
_ROPE_TENSORS = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
_LLAMA3_CONTEXT = 8192  # of every Llama 3 before it was stretched


def check_figures(header: Header, known: Any = None) -> None:
    """BadInput if the header leaves out a figure that transformers would fill in by itself.

    `known`: transformers' config class for the model, where it says which figures those are.
    """
    name, fields = header.architecture, known().to_dict() if known else {}
    mapping = GGUF_CONFIG_MAPPING.get(_MAPPED.get(name, name), {})
    wanted = [key for key in _FIGURES if mapping.get(key) in fields] if known else [*_ALWAYS]
    stated = {key.removeprefix(f"{name}."): value for key, value in header.metadata.items()}
    if "expert_feed_forward_length" in stated and "feed_forward_length" in wanted:
        wanted.remove("feed_forward_length")  # some have experts in every layer
    missing = [key for key in wanted if not _is_figure(stated.get(key))]
    if not (_is_figure(stated.get("vocab_size")) or header.metadata.get("tokenizer.ggml.tokens")):
        missing.append("vocab_size")
    if missing:
        raise BadInput(
            f"The header of {header.path.name} does not state {', '.join(missing[:4])}, so how "
            "the model is built is not known; use another file of this model."
        )


def _is_figure(value: Any) -> bool:
    """True for a positive whole number, or a list with one for each layer."""
    if isinstance(value, list):
        return bool(value) and max(value) > 0
    return isinstance(value, int) and value > 0


def completed(
    header: Header, stated: dict[str, Any], known: Any
) -> tuple[dict[str, Any], list[str]]:
    """(config fields with what was left out, notes on what could not be said).

    `known`: transformers' config class for the model.
    """
    fields, notes = dict(stated), []
    fields |= _widths(header, stated, known)
    scaling = rope_scaling(header, float(stated.get("rope_theta", 10_000.0)))
    if isinstance(scaling, str):
        notes.append(scaling)
    elif scaling and "rope_scaling" not in stated:
        fields |= _with_rope(fields, scaling, known)
    for key, neutral in _TELLING.items():
        value = header.metadata.get(f"{header.architecture}.{key}")
        if value is not None and value != neutral:
            notes.append(_unsaid(f"{key} = {value}"))
    return fields, notes


def unread_tensors(header: Header, used: set[str]) -> list[str]:
    """A note on tensors that found no place in the model; rotary factors are read elsewhere."""
    left = [t.name for t in header.tensors if t.name not in used and t.name not in _ROPE_TENSORS]
    if not left:
        return []
    return [f"{len(left)} tensors of the file are not part of the model ({left[0]}…)."]


def rope_scaling(header: Header, base: float) -> dict[str, Any] | str | None:
    """transformers' rotary scaling as the file states it; a note if it can't be told; else None."""
    named = {tensor.name: tensor for tensor in header.tensors if tensor.name in _ROPE_TENSORS}
    if "rope_freqs.weight" in named:
        entry = named["rope_freqs.weight"]
        factors = library.dequantize(header.data(entry), entry.kind).reshape(-1)
        return _llama3(factors, base)
    if named:
        return _unsaid("rotary factors for long texts")
    prefix = f"{header.architecture}.rope.scaling."
    kind = header.metadata.get(prefix + "type", "none")
    factor = header.metadata.get(prefix + "factor", 0.0)
    if kind == "none" or factor == 1.0 or (kind == "linear" and not factor):
        return None
    if not factor:
        return _unsaid(f"rotary scaling of type {kind} without its factors")
    scaling = {"rope_type": kind, "factor": float(factor)}
    if kind == "linear":
        return scaling
    if kind == "yarn":
        if original := header.metadata.get(prefix + "original_context_length"):
            scaling["original_max_position_embeddings"] = int(original)
        return scaling
    return _unsaid(f"rotary scaling of type {kind}")


def rope_lost(header: Header) -> list[str]:
    """A note if the file states rotary scaling and nothing here can take it over."""
    base = float(header.metadata.get(f"{header.architecture}.rope.freq_base", 10_000.0))
    scaling = rope_scaling(header, base)
    if scaling is None:
        return []
    if isinstance(scaling, str):
        return [scaling]
    return [_unsaid(f"rotary scaling of type {scaling['rope_type']}")]


def _llama3(factors: np.ndarray, base: float) -> dict[str, Any] | str | None:
    """Llama 3's settings from the factors they lead to."""
    if np.allclose(factors, 1.0):
        return None
    factor = float(np.max(factors))
    context = _llama3_context(factors.astype(np.float64), base, factor)
    if not np.allclose(factors, llama3_factors(len(factors), base, factor, context), rtol=1e-4):
        return _unsaid("rotary factors of an unknown kind")
    return {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": context,
    }


def _llama3_context(factors: np.ndarray, base: float, factor: float) -> int:
    """The context before stretching, from the frequencies that are slowed in part."""
    between = (factors > 1.001) & (factors < 0.999 * factor)
    if not between.any():
        return _LLAMA3_CONTEXT
    smooth = (1.0 / factors[between] - 1.0 / factor) / (1.0 - 1.0 / factor)
    contexts = (1.0 + 3.0 * smooth) * _wavelengths(len(factors), base)[between]
    return round(float(np.median(contexts)))


def _wavelengths(count: int, base: float) -> np.ndarray:
    """(d_h/2,) tokens in which each rotary frequency turns once."""
    return np.asarray(2 * np.pi * base ** (np.arange(count) / count))


def llama3_factors(
    count: int, base: float, factor: float, context: int = _LLAMA3_CONTEXT
) -> np.ndarray:
    """(d_h/2,) by how much Llama 3 slows each rotary frequency: slow ones fully, fast ones not."""
    turns = context / _wavelengths(count, base)
    smooth = np.clip((turns - 1.0) / (4.0 - 1.0), 0.0, 1.0)
    return np.asarray(1.0 / ((1.0 - smooth) / factor + smooth))


def _with_rope(fields: dict[str, Any], scaling: dict[str, Any], known: Any) -> dict[str, Any]:
    base = known.from_dict(fields).rope_parameters or {}
    kinds = [name for name, value in base.items() if isinstance(value, dict)]
    if kinds:  # one entry a kind of layer: only full attention is stretched
        merged = {name: dict(base[name]) for name in kinds}
        merged["full_attention"] = {**merged.get("full_attention", {}), **scaling}
        return {"rope_parameters": merged}
    return {"rope_parameters": {**base, **scaling}}


def _widths(header: Header, stated: dict[str, Any], known: Any) -> dict[str, Any]:
    default = known().to_dict()
    found = {}
    for key, name in _WIDTHS.items():
        value = header.metadata.get(f"{header.architecture}.{key}")
        if isinstance(value, int) and name not in stated and name in default:
            found[name] = value
    context = header.metadata.get(f"{header.architecture}.context_length")
    if isinstance(context, int) and "n_positions" in default and "n_positions" not in stated:
        found["n_positions"] = context  # transformers takes it for a field of an older version
    heads = stated.get("num_attention_heads")
    if heads and "num_key_value_heads" in default and "num_key_value_heads" not in stated:
        found["num_key_value_heads"] = heads  # what a file means that does not state it
    return found


def _unsaid(what: str) -> str:
    return (
        f"The GGUF file specifies {what}, which transformers cannot read from it. Results "
        "may differ from the original model, especially on long texts."
    )
