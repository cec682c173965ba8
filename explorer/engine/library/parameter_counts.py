"""Where a model's parameters sit, and what its parts are, read off its skeleton."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import nn

_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|layer)\.(\d+)\.(.+)$")
_ATTENTION = re.compile(r"attn|attention|mixer|mamba|temporal|linear_attn|short_conv|conv\.")
_FEED_FORWARD = re.compile(r"mlp|ffn|feed_forward|expert|moe|fc1|fc2|ff\.")
_GATE = re.compile(r"gate_proj|gate_up|gate_and_up|\.w1(\.|$)|\.v1(\.|$)|fc_gate")
_NORM = re.compile(r"norm|ln_|layernorm", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCounts:
    """Parameters by part; all layers together."""

    attention: int
    feed_forward: int
    experts: int  # the share of feed_forward that sits in routed experts
    table: int
    head: int  # 0 when tied
    positions: int  # a learned table of positions
    rest: int  # norms, and what has no name here
    norm: str  # class of the norms: LayerNorm, RMSNorm
    biases: bool  # any bias in the layers' projections
    gated: bool  # the feed-forward has a gate
    query_key_norm: bool


def anatomy(model: Any) -> ParameterCounts:
    """Read the parts of a model, tied tensors once."""
    table = getattr(model.get_input_embeddings(), "weight", None)
    head = getattr(model.get_output_embeddings(), "weight", None)
    sums = dict.fromkeys(("attention", "feed_forward", "experts", "positions", "rest"), 0)
    biases = gated = query_key_norm = False
    for name, value in model.named_parameters():
        if value is table or value is head:
            continue
        part = _part(name)
        sums[part] += value.numel()
        if ".experts." in name:
            sums["experts"] += value.numel()
        inside = name.rsplit(".", 2)[-2] if name.count(".") > 1 else name
        gated = gated or bool(_GATE.search(name))
        query_key_norm = query_key_norm or bool(re.search(r"q_norm|k_norm|query_norm", name))
        layer_bias = name.endswith("bias") and part in ("attention", "feed_forward")
        biases = biases or (layer_bias and not _NORM.search(inside))
    return ParameterCounts(
        **sums,
        table=int(table.numel()) if table is not None else 0,
        head=int(head.numel()) if head is not None and head is not table else 0,
        norm=next(_norms(model), ""),
        biases=biases,
        gated=gated,
        query_key_norm=query_key_norm,
    )


def _part(name: str) -> str:
    found = _LAYER.search(name)
    if found is None:
        positions = re.search(r"wpe|position|embed_positions", name)
        return "positions" if positions else "rest"
    inside = found[2]
    if _NORM.search(inside) and not re.search(r"proj", inside):
        return "rest"
    if _FEED_FORWARD.search(inside):
        return "feed_forward"
    return "attention" if _ATTENTION.search(inside) else "rest"


def _norms(model: nn.Module) -> Iterator[str]:
    for module in model.modules():
        kind = type(module).__name__
        if "RMSNorm" in kind:
            yield "RMSNorm"
        elif "LayerNorm" in kind:
            yield "LayerNorm"
