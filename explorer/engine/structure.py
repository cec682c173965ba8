"""Where a model of transformers keeps its decoder layers."""

from __future__ import annotations

from typing import Any

import torch

from explorer.engine.errors import EngineError


def decoder_layers(model: Any) -> list[Any]:
    """The decoder layers in order; EngineError if the model's structure is not known."""
    decoder = getattr(model, "get_decoder", lambda: None)() or model
    wanted = getattr(model.config.get_text_config(decoder=True), "num_hidden_layers", None)
    for root in (decoder, model):
        lists = [m for m in root.modules() if isinstance(m, torch.nn.ModuleList) and len(m)]
        exact = [m for m in lists if len(m) == wanted]
        if exact or lists:
            return list((exact or lists)[0])
    raise EngineError("This model's layers could not be found, so nothing could be recorded.")
