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
from explorer.engine.model_files import remote_code, stated_figures, unusable_files
from explorer.engine.model_files.model_shape import CONTEXT_NAMES, check_layers, stated_layers
from explorer.engine.model_files.weights import read_json

_LARGEST = 1 << 40
_MOST = {  # lengths of lists and tables, which take memory before anything is known of the model
    "num_labels": 1_000_000, "H_cycles": 1000, "L_cycles": 1000,
    **dict.fromkeys(CONTEXT_NAMES, 100_000_000),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 100_000),
}  # fmt: skip
# Heads of models that were trained for another task on the body of a decoder or an encoder.
_OTHER_TASKS = (
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
    "ForNextSentencePrediction",
    "ForPreTraining",
    "EncoderModel",
)


def read_config(folder: Path, allow_code: bool = False) -> Any:
    """The transformers config of a folder; BadInput if it is not a decoder we can open.

    NeedsCode if the folder brings its own code, and it is not allowed to run.
    """
    path = folder / "config.json"
    if not folder.is_dir():
        raise BadInput(f"There is no folder {folder}; choose a model's folder.")
    if not path.is_file():
        unusable_files.refuse_folder(folder)
        raise BadInput(
            f"{folder.name or folder} has no config.json, so it is not a model folder; choose the "
            "folder that holds config.json and the weights."
        )
    stated = read_json(path)
    check_numbers(f"The config.json of {folder.name}", stated)
    unusable_files.refuse_vectors(folder)
    if remote_code.brings(stated):
        remote_code.check(folder, stated, allow_code)
        check_layers(stated_layers(stated))
        return remote_code.run(folder, stated)
    check_is_decoder(folder.name, stated)
    check_layers(stated_layers(stated))  # before a config class makes lists of that length
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except MemoryError:
        raise
    except Exception as error:  # whatever a strange config makes of transformers' own checks
        raise BadInput(
            f"The config.json of {folder.name} is not a valid {stated['model_type']} config; "
            "download it again.",
            traceback.format_exc(),
        ) from error
    if not stated_figures.states_context(config, stated, CONTEXT_NAMES):
        config.context_unstated = True  # for `shape_of`: the library's default is not the model's
    return config


def causal_class(config: Any) -> tuple[Any, Any]:
    """transformers' causal language model class for a config, and the part of it the class takes.

    A model that also sees or hears has a text part; its decoder is opened without the rest.
    """
    own = remote_code.class_of(config)
    if own is not None:
        return own, config
    kind = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    parts = getattr(type(config), "sub_configs", {})
    if parts.get("text_config") is not None and kind.config_class is parts["text_config"]:
        return kind, config.get_text_config()
    return kind, config


def check_numbers(what: str, stated: dict[str, Any]) -> None:
    """BadInput if a number asks for more than any model has: some are lengths of lists to make."""
    for part in (stated, *(value for value in stated.values() if isinstance(value, dict))):
        for key, value in part.items():
            if isinstance(value, int) and abs(value) > _MOST.get(key, _LARGEST):
                raise BadInput(
                    f"{what} asks for {_short(value)} as {key[:60]}, more than any model has; "
                    "download it again."
                )


def _short(value: int) -> str:
    return f"{value:,}" if abs(value) < 10**21 else f"a number of {value.bit_length()} bits"


def check_is_decoder(name: str, stated: dict[str, Any]) -> None:
    """BadInput if config.json, as it stands, is not that of a decoder transformers knows."""
    kind = stated.get("model_type")
    if not isinstance(kind, str) or not kind:
        raise BadInput(
            f"The config.json of {name} does not say its model_type; choose another model."
        )
    if kind not in CONFIG_MAPPING:
        raise BadInput(
            f"{name} is of type {kind}, which the installed transformers does not know; "
            "choose another model."
        )
    if kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        raise BadInput(
            f"{name} is of type {kind}, which is not a decoder-only language model; "
            "choose one that generates text from left to right."
        )
    heads = stated.get("architectures")
    if isinstance(heads, list) and heads and all(str(h).endswith(_OTHER_TASKS) for h in heads):
        raise BadInput(
            f"{name} was trained for another task ({heads[0]}), not to continue a text; choose a "
            "model that generates text from left to right."
        )
