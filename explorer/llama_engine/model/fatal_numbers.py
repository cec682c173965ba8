"""Numbers of a header that llama.cpp aborts on, or never ends with, and those no model has."""

from __future__ import annotations

from typing import Any

from explorer.engine.errors import BadInput
from explorer.engine.gguf.header import Header, damaged

_MOST_LAYERS = _MOST_EXPERTS = 512  # of the pinned build
_BLOCK = 32  # numbers that a quantised type keeps together
_SIZES = (
    "context_length", "embedding_length", "attention.head_count", "attention.head_count_kv",
    "attention.key_length", "attention.value_length", "attention.sliding_window",
)  # fmt: skip


def refuse(header: Header) -> None:
    """BadInput if a number of the header, or its vocabulary, would end the process."""
    for look in (_sizes, _layers, _experts, _epsilon, _rotary):
        if details := look(header):
            raise damaged(header.path, details)
    tokens = header.metadata.get("tokenizer.ggml.tokens")
    if isinstance(tokens, list) and len(set(tokens)) < len(tokens):
        raise damaged(header.path, "a token stands in the vocabulary twice")


def _number(header: Header, key: str) -> Any:
    """Of the architecture; None where the header has none."""
    value = header.metadata.get(f"{header.architecture}.{key}")
    return value if isinstance(value, int | float) else None


def _sizes(header: Header) -> str:
    for key in _SIZES:
        stated = header.metadata.get(f"{header.architecture}.{key}")
        for value in stated if isinstance(stated, list) else [stated]:
            if isinstance(value, int) and not 0 <= value < 1 << 31:
                return f"{key} is {value}"
    return ""


def _layers(header: Header) -> str:
    layers = _number(header, "block_count")
    wrong = layers is not None and not 0 < layers <= _MOST_LAYERS
    return f"{layers} layers" if wrong else ""


def _experts(header: Header) -> str:
    experts, used = _number(header, "expert_count") or 0, _number(header, "expert_used_count") or 0
    wrong = experts > _MOST_EXPERTS or used > experts or (experts > 0 and used == 0)
    return f"{used} of {experts} experts" if wrong else ""


def _epsilon(header: Header) -> str:
    for key in ("attention.layer_norm_epsilon", "attention.layer_norm_rms_epsilon"):
        value = _number(header, key)
        if value is not None and not value >= 0:  # NaN is not, either
            return f"{key} is {value}"
    return ""


def _rotary(header: Header) -> str:
    """Rotated numbers of a head are pairs of its numbers; of none llama.cpp never finds an end."""
    rotated, width = _number(header, "rope.dimension_count"), _number(header, "embedding_length")
    head = _number(header, "attention.key_length_mla") or _number(header, "attention.key_length")
    heads = _number(header, "attention.head_count")
    if head is None and width and heads:
        head = width // heads
    if rotated is None:
        return ""
    wrong = rotated <= 0 or rotated % 2 or (head is not None and rotated > head)
    return f"{rotated} of {head} numbers of a head are rotated" if wrong else ""


def refuse_keys(header: Header, cache_type_k: str) -> None:
    """BadInput if llama.cpp would abort on keeping keys in this type: a head is whole blocks."""
    if not cache_type_k.startswith("q"):
        return
    architecture = header.architecture
    if _number(header, "attention.kv_lora_rank"):
        raise BadInput(
            f"{header.path.name} caches one latent for keys and values, so its keys can't be kept "
            f"in {cache_type_k}. Choose f16, bf16 or f32."
        )
    stated = [
        value
        for key, value in header.metadata.items()
        if key.startswith(f"{architecture}.attention.key_length")
    ]
    widths = [w for one in stated for w in (one if isinstance(one, list) else [one])]
    width, heads = _number(header, "embedding_length"), _number(header, "attention.head_count")
    if not widths and width and isinstance(heads, int) and heads:
        widths = [width // heads]
    if not widths:
        raise BadInput(
            f"{header.path.name} states no attention heads, so there are no keys to keep in "
            f"{cache_type_k}. Choose f16."
        )
    if any(not isinstance(w, int) or w % _BLOCK for w in widths):
        raise BadInput(
            f"The keys of {header.path.name} can't be kept in {cache_type_k}, because the width of "
            f"its heads is no multiple of {_BLOCK}. Choose f16, bf16 or f32."
        )
