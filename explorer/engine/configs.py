"""Reading a model folder's config.json, and refusing what cannot be opened, in words."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

from transformers import AutoConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
)

from explorer.engine.errors import BadInput
from explorer.engine.weights import read_json


def read_config(folder: Path) -> Any:
    """The transformers config of a folder; BadInput if it is not a decoder we can open."""
    path = folder / "config.json"
    if not folder.is_dir():
        raise BadInput(f"There is no folder {folder}; choose a model's folder.")
    if not path.is_file():
        raise BadInput(
            f"{folder.name} has no config.json, so it is not a model folder; choose the folder "
            "that holds config.json and the weights."
        )
    stated = read_json(path)
    _check_type(folder.name, stated)
    try:
        return AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # whatever a strange config makes of transformers' own checks
        raise BadInput(
            f"The config.json of {folder.name} is not a valid {stated['model_type']} config; "
            "download it again.",
            traceback.format_exc(),
        ) from error


def causal_class(config: Any) -> Any:
    """transformers' causal language model class for this config."""
    return MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]


def _check_type(name: str, stated: dict[str, Any]) -> None:
    kind = stated.get("model_type")
    if not isinstance(kind, str) or not kind:
        raise BadInput(
            f"The config.json of {name} does not say its model_type; choose another model."
        )
    if kind not in CONFIG_MAPPING:
        if "auto_map" in stated:
            raise BadInput(
                f"{name} brings its own program code, which is never run here; choose a model of a "
                "type that transformers itself knows."
            )
        raise BadInput(
            f"{name} is of type {kind}, which the installed transformers does not know; "
            "choose another model."
        )
    if kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        raise BadInput(
            f"{name} is of type {kind}, which is not a decoder-only language model; "
            "choose one that generates text from left to right."
        )
