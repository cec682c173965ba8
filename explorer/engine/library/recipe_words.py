"""The lines of a recipe card, in words a student understands."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from explorer.engine.library.parameter_counts import ParameterCounts
from explorer.engine.model_files.meta_model import Count
from explorer.engine.model_files.model_shape import Shape, text_config
from explorer.wording import percent

_ACTIVATIONS = {
    "gelu_new": "GELU", "gelu": "GELU", "gelu_fast": "GELU", "gelu_pytorch_tanh": "GELU",
    "silu": "SiLU", "swish": "SiLU", "relu": "ReLU", "relu2": "squared ReLU",
}  # fmt: skip
_GATED = {"SiLU": "SwiGLU", "GELU": "GeGLU", "ReLU": "ReGLU"}
_KINDS = {
    "full": "attends to all earlier tokens",
    "sliding": "attends to a window of earlier tokens",
    "chunked": "attends to its own chunk of the text",
    "linear": "carries a state of fixed size instead of keys and values",
    "recurrent": "carries a state of fixed size instead of keys and values",
    "conv": "mixes a few neighbouring tokens",
}


def lines(
    config: Any, shape: Shape, built: int, counted: Count, parts: ParameterCounts, per_token: int
) -> list[str]:
    """One line for each choice in the model's design; `built`: the layers that its weights hold."""
    text = text_config(config)
    found = [
        f"{shape.layers} layers, each {shape.hidden_size:,} numbers wide; a vocabulary of "
        f"{shape.vocab_size:,} tokens.",
        _repeated(shape, built),
        _context(shape),
        _positions(text, parts, shape),
        _attention(shape, parts),
        *_kinds(shape),
        _feed_forward(text, shape, parts),
        _experts(text, counted, parts),
        _norm(parts),
        "Biases in the projections." if parts.biases else "No biases in the projections.",
        _tying(counted),
        _cache(per_token),
        f"{counted.parameters:,} parameters, counted exactly.",
    ]
    return [line for line in found if line]


def _repeated(shape: Shape, built: int) -> str:
    if not 0 < built < shape.layers:
        return ""
    return (
        f"Its weights hold {built} layers, which attend {shape.layers} times for each token. Each "
        "time is counted as a layer."
    )


def _context(shape: Shape) -> str:
    if not shape.context:
        return ""
    return f"Built for texts of up to {shape.context:,} tokens."


def _positions(text: Any, parts: ParameterCounts, shape: Shape) -> str:
    if parts.positions:
        return (
            "Positions: a learned table with one row per position, added to the tokens. "
            "Longer texts cannot be read."
        )
    base = rope_base(text)
    if base:
        return (
            f"Positions: rotary (RoPE), base {base:,.0f}: queries and keys are turned by an angle "
            "that grows with their position."
        )
    if getattr(text, "alibi", False) or text.model_type in ("bloom", "mpt"):
        return "Positions: ALiBi: scores fall off with the distance between query and key."
    return ""


def rope_base(text: Any) -> float:
    """The base of the rotary angles; 0 if there are none. Of several, the first."""
    stated = getattr(text, "rope_parameters", None)
    if not isinstance(stated, dict):
        return 0.0
    candidates = [stated, *(v for v in stated.values() if isinstance(v, dict))]
    for entry in candidates:
        if isinstance(entry.get("rope_theta"), (int, float)):
            return float(entry["rope_theta"])
    return 0.0


def _attention(shape: Shape, parts: ParameterCounts) -> str:
    if not shape.heads:
        return "No attention: each layer carries a state of fixed size from token to token."
    line = f"Attention: {shape.heads} query heads of width {shape.head_dim}"
    if shape.kv_heads == shape.heads:
        line += ", each with keys and values of its own"
    else:
        share = shape.heads / shape.kv_heads
        heads = "one key/value head" if shape.kv_heads == 1 else (
            f"{shape.kv_heads} key/value heads"
        )  # fmt: skip
        line += f" share {heads}, which makes the cache {share:g} times smaller"
    return f"{line}; queries and keys are normed first." if parts.query_key_norm else f"{line}."


def _kinds(shape: Shape) -> list[str]:
    kinds = set(shape.layer_kinds)
    if kinds <= {"full"}:
        return []
    runs = [(kind, len(list(run))) for kind, run in groupby(shape.layer_kinds)]
    shown = ", ".join(f"{count} {kind}" for kind, count in runs[:8])
    found = [f"Layers from bottom to top: {shown}{', …' if len(runs) > 8 else ''}."]
    found += [f"A {kind} layer {_KINDS[kind]}." for kind in sorted(kinds) if kind in _KINDS]
    if window := max(shape.windows, default=0):
        found.append(f"The window holds {window:,} tokens.")
    return found


def _feed_forward(text: Any, shape: Shape, parts: ParameterCounts) -> str:
    if not parts.feed_forward:
        return ""
    name = next(
        (v for n in ("hidden_activation", "hidden_act", "activation_function", "afn")
         if isinstance(v := _get(text, n), str)), "")  # fmt: skip
    act = _ACTIVATIONS.get(name, name)
    names = ("moe_intermediate_size",) if parts.experts else ()
    width = _first(text, *names, "intermediate_size", "n_inner", "ffn_dim") or 4 * shape.hidden_size
    if parts.gated:
        return (
            f"Feed-forward: {_GATED.get(act, f'gated {act}')}: {shape.hidden_size:,} → {width:,} "
            f"twice (one is the gate, through {act}), multiplied, → {shape.hidden_size:,}."
        )
    return f"Feed-forward: {shape.hidden_size:,} → {width:,} → {shape.hidden_size:,}" + (
        f", {act} between." if act else "."
    )


def _experts(text: Any, counted: Count, parts: ParameterCounts) -> str:
    if not parts.experts:
        return ""
    total = _first(text, "num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
    used = _first(text, "num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_top_k")
    if not total or not used:
        return (
            "Experts: the feed-forward part is split into experts. Each token uses a few of them."
        )
    active = counted.parameters - parts.experts * (total - used) // total
    return (
        f"Experts: {total} in a layer, of which a router picks {used} for each token; so a token "
        f"uses about {active:,} of the parameters."
    )


def _norm(parts: ParameterCounts) -> str:
    if parts.norm == "RMSNorm":
        return "Norm: RMSNorm, which only scales a vector to unit size."
    if parts.norm == "LayerNorm":
        return "Norm: LayerNorm, which subtracts the mean of a vector and scales it to unit size."
    return ""


def _tying(counted: Count) -> str:
    if not counted.tied:
        return "The output head has its own table (not tied to the token table)."
    untied = counted.parameters + counted.table
    return (
        "The output head is the token table used again (tied), which saves "
        f"{counted.table:,} parameters, {percent(counted.table / untied)} of the untied {untied:,}."
    )


def _cache(per_token: int) -> str:
    if not per_token:
        return "No keys and values are stored between tokens (at least in transformers)."
    return (
        f"The cache keeps {per_token:,} numbers for each token: {4 * per_token:,} bytes in "
        f"float32, {2 * per_token:,} in bfloat16."
    )


def _get(config: Any, name: str) -> Any:
    try:
        return getattr(config, name, None)
    except RuntimeError:  # differs from layer to layer
        return None


def _first(config: Any, *names: str) -> int:
    return next((v for n in names if isinstance(v := _get(config, n), int) and v > 0), 0)
