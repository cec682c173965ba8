"""Where a model of transformers keeps its decoder layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from transformers import PreTrainedModel

from explorer.engine.errors import EngineError


def decoder_layers(model: Any) -> list[Any]:
    """The decoder layers in order; EngineError if the model's structure is not known."""
    decoder = getattr(model, "get_decoder", lambda: None)() or model
    text = model.config.get_text_config(decoder=True)
    wanted = getattr(text, "num_hidden_layers", None)
    kinds = (type(model.config), type(text))
    for root in (decoder, model):
        lists = list(_lists(root, kinds)) or list(_lists(root, ()))
        exact = [found for found in lists if len(found) == wanted]
        if exact or lists:
            return list((exact or lists)[0])
    raise EngineError("This model's layers could not be found, so nothing could be recorded.")


def built_layers(model: Any) -> int:
    """How many layers the weights hold, in all stacks of them: fewer than run where some repeat."""
    own = list(map(type, decoder_layers(model)))
    return sum(type(module) in own for module in model.modules())


def _lists(module: Any, kinds: tuple[type, ...]) -> Iterator[torch.nn.ModuleList]:
    """Lists of modules, outermost first; not those of models inside with other configs."""
    for child in module.children():
        other = isinstance(child, PreTrainedModel) and type(child.config) not in kinds
        if kinds and other:
            continue  # an image or audio encoder
        if isinstance(child, torch.nn.ModuleList) and len(child):
            yield child
        yield from _lists(child, kinds)
