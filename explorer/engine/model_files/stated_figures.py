"""Which of a model's figures its config.json states; transformers fills in the rest unasked.

A figure that is filled in is another model's: it is accepted only where the weights prove it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from explorer.engine.errors import BadInput
from explorer.engine.model_files.model_shape import LAYER_COUNTS, text_config

_WIDTHS = ("hidden_size", "n_embd", "d_model")
_HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")
_SIZES = (
    "vocab_size", "intermediate_size", "n_inner", "ffn_dim", "d_ff", "num_key_value_heads",
    "num_kv_heads", "head_dim", "moe_intermediate_size", "num_experts", "num_local_experts",
    "n_routed_experts", "n_positions", "state_size",
)  # fmt: skip
_ALL = (*LAYER_COUNTS, *_WIDTHS, *_HEADS, *_SIZES)


def left_out(config: Any, stated: dict[str, Any]) -> list[str]:
    """Figures of the decoder that a config.json leaves to transformers' defaults.

    A decoder inside a larger model is written down as what differs from the defaults, so that only
    its layers and its width are looked for.
    """
    text = text_config(config)
    part, names = stated, frozenset(_ALL)
    if text is not config:
        part = next((v for v in stated.values() if isinstance(v, dict) and _is_of(v, text)), stated)
        names = frozenset({*LAYER_COUNTS, *_WIDTHS})
    aliases = getattr(text, "attribute_map", {})
    found = []
    for field in dataclasses.fields(text) if dataclasses.is_dataclass(text) else ():
        if field.name not in names or not isinstance(field.default, int):
            continue
        real = aliases.get(field.name, field.name)
        known = {field.name, real, *(alias for alias, name in aliases.items() if name == real)}
        if known.isdisjoint(part) and getattr(text, field.name, None) == field.default:
            found.append(field.name)
    return found


def check_figures(
    name: str, config: Any, stated: dict[str, Any], asked: int, held: int | None
) -> None:
    """BadInput if a figure is left out and the weights don't prove what was filled in.

    `asked`: parameters of the model that the config describes; `held`: numbers in the weight
    files, None where there are none.
    """
    found = left_out(config, stated)
    proven = held is not None and asked <= held <= 1.01 * asked
    if not found or (proven and not set(found) & set(_HEADS)):
        return
    raise BadInput(
        f"The config.json of {name} does not state {', '.join(found[:4])}, so how the model is "
        "built is not known; download its config.json again."
    )


def check_belongs(name: str, asked: int, held: int) -> None:
    """BadInput if a GGUF file's header describes a larger model than its tensors hold."""
    if asked > held:
        raise BadInput(
            f"The header of {name} does not match its weights: it asks for {asked:,} parameters, "
            f"and its tensors hold {held:,}. Use another file of this model."
        )


def states_context(config: Any, stated: dict[str, Any], names: tuple[str, ...]) -> bool:
    """False if the length of text that the model was built for is not in its config.json."""
    text = text_config(config)
    aliases = getattr(text, "attribute_map", {})
    return text is not config or any(key in names or aliases.get(key) in names for key in stated)


def _is_of(part: dict[str, Any], text: Any) -> bool:
    kind = part.get("model_type")
    return kind == text.model_type or (kind is None and bool({*LAYER_COUNTS, *_WIDTHS} & {*part}))
