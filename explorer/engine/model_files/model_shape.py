"""Sizes of a decoder as its config states them, whatever the architecture calls them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from explorer.engine.errors import BadInput

_KINDS = {
    "full_attention": "full",
    "attention": "full",
    "global": "full",
    "sliding_attention": "sliding",
    "local": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "linear",
    "mamba": "recurrent",
    "recurrent": "recurrent",
    "mamba2": "recurrent",
}
CONTEXT_NAMES = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx")
_LAYER_LISTS = ("layer_types", "layers_block_type", "block_types", "attention_layers")
MOST_LAYERS = 2000  # a hostile config may ask for 10^12, each an object in memory
LAYER_COUNTS = ("num_hidden_layers", "n_layer", "num_layers")
_HEADS = ("n_head", "num_heads", "n_heads")
_KEEPS_NOTHING = ("linear", "recurrent", "conv", "mlp", "moe")  # no keys and values, that is


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Numbers of one decoder; 0 where the config does not state one."""

    layers: int
    hidden_size: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab_size: int
    context: int
    layer_kinds: tuple[str, ...]  # (L,) full, sliding, chunked, linear, recurrent, …
    windows: tuple[int, ...]  # (L,) tokens a layer may look back, 0 = all

    def kv_bytes_per_token(self, bytes_per_element: int) -> int:
        """2 · L · H_kv · d_h · bytes over the layers that keep keys and values."""
        keeping = sum(kind not in _KEEPS_NOTHING for kind in self.layer_kinds)
        return 2 * keeping * self.kv_heads * self.head_dim * bytes_per_element


def shape_of(config: Any) -> Shape:
    """Read a transformers config (of the text part, where a model has several)."""
    text = text_config(config)
    layers = _number(text, "num_decoder_layers", *LAYER_COUNTS)  # else its encoder's are meant
    check_layers(layers)
    heads = _number(text, "num_decoder_attention_heads", "num_attention_heads", *_HEADS)
    hidden = _number(text, "hidden_size", "n_embd", "d_model")
    return Shape(
        layers=layers,
        hidden_size=hidden,
        heads=heads,
        kv_heads=_kv_heads(text, heads),
        head_dim=_head_dim(text, hidden, heads),
        vocab_size=_number(text, "vocab_size"),
        context=0 if _states_no_context(config) else _number(text, *CONTEXT_NAMES),
        layer_kinds=(kinds := _layer_kinds(text, layers, heads)),
        windows=_windows(text, kinds),
    )


def check_layers(count: int) -> None:
    """BadInput if a config asks for fewer layers than none, or more than any model has."""
    if not 0 <= count <= MOST_LAYERS:
        raise BadInput(f"The config.json asks for {count:,} layers; no such model can be opened.")


def stated_layers(config: dict[str, Any]) -> int:
    """The largest number of layers that a config.json, as it stands, asks for; or a negative."""
    parts = [config, *(value for value in config.values() if isinstance(value, dict))]
    values = [part.get(name) for part in parts for name in LAYER_COUNTS]
    counts = [v for v in values if isinstance(v, int)]
    return min(counts) if counts and min(counts) < 0 else max(counts, default=0)


def _states_no_context(config: Any) -> bool:
    return getattr(config, "context_unstated", False) is True


def text_config(config: Any) -> Any:
    """The decoder's own part of a config that may also hold vision or audio."""
    try:
        return config.get_text_config(decoder=True)
    except (ValueError, AttributeError):  # several text parts, or none that says so
        return config


def _number(config: Any, *names: str) -> int:
    for name in names:
        value = value_of(config, name)
        if isinstance(value, (list, tuple)):  # one a layer
            value = max((v for v in value if isinstance(v, int)), default=0)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return 0


def value_of(config: Any, name: str) -> Any:
    """The config's value; a list where it differs from layer to layer."""
    try:
        return getattr(config, name, None)
    except RuntimeError:  # transformers' refusal to give one number for unequal layers
        return [getattr(layer, name, None) for layer in config.per_layer_config]


def _kv_heads(config: Any, heads: int) -> int:
    shared = value_of(config, "multi_query") is True
    if shared and not value_of(config, "new_decoder_architecture"):
        return 1
    return _number(config, "num_key_value_heads", "num_kv_heads") or heads


def _head_dim(config: Any, hidden: int, heads: int) -> int:
    if _number(config, "kv_lora_rank"):  # a latent: a part with positions beside one without
        parts = _number(config, "qk_nope_head_dim"), _number(config, "qk_rope_head_dim")
        return sum(parts)
    return _number(config, "head_dim", "kv_channels") or (hidden // heads if heads else 0)


def _layer_kinds(config: Any, layers: int, heads: int) -> tuple[str, ...]:
    for name in _LAYER_LISTS:
        stated = value_of(config, name)
        if isinstance(stated, (list, tuple)) and stated and isinstance(stated[0], str):
            repeated = (list(stated) * layers)[:layers]  # block_types states one period
            return tuple(_KINDS.get(kind, kind.removesuffix("_attention")) for kind in repeated)
    if not heads:
        return ("recurrent",) * layers
    return ("sliding" if _window(config) else "full",) * layers


def _windows(config: Any, kinds: tuple[str, ...]) -> tuple[int, ...]:
    sizes = {"sliding": _window(config), "chunked": _number(config, "attention_chunk_size")}
    return tuple(sizes.get(kind, 0) for kind in kinds)


def _window(config: Any) -> int:
    if value_of(config, "use_sliding_window") is False:
        return 0
    return _number(config, "sliding_window", "window_size", "attention_window_size")
