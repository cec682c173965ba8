"""A model that brings its own program code: which files would run, and running them after a yes.

Nothing here runs before `allowed` is true, and nothing remembers that it was: each load asks again.
"""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import Any

from explorer.engine.errors import BadInput, NeedsCode

_CLASSES: dict[type, Any] = {}  # config classes of code that was allowed -> their model classes
_MAKERS = ("AutoConfig", "AutoModelForCausalLM")
_REFERENCE = re.compile(r"\w+(\.\w+)+")  # module.Class, in the model's own folder
_RELATIVE = re.compile(r"^\s*(?:from|import)\s+\.(\w+)", re.MULTILINE)


def brings(stated: dict[str, Any]) -> bool:
    """True if a config.json names code of its own for a type that transformers does not have."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return isinstance(stated.get("auto_map"), dict) and (
        stated.get("model_type") not in CONFIG_MAPPING_NAMES
    )


def files(folder: Path, stated: dict[str, Any]) -> tuple[str, ...]:
    """The .py files that would run, read but not run; BadInput if they can't be had here."""
    waiting = [f"{reference.partition('.')[0]}.py" for reference in _references(folder, stated)]
    found: list[str] = []
    while waiting:
        name = waiting.pop(0)
        if name in found:
            continue
        try:
            text = (folder / name).read_text("utf-8", "replace")
        except OSError:
            raise BadInput(
                f"{folder.name} brings its own program code, but {name} is not there; download "
                "the whole folder."
            ) from None
        found.append(name)
        waiting += [f"{module}.py" for module in _RELATIVE.findall(text)]
    return tuple(found)


def check(folder: Path, stated: dict[str, Any], allowed: bool) -> tuple[str, ...]:
    """The files that are going to run; NeedsCode unless that is allowed."""
    names = files(folder, stated)
    if not allowed:
        raise NeedsCode(
            f"{folder.name} brings its own program code ({', '.join(names)}), which runs only "
            "after your yes in the window's dialog; choose a model of a type that transformers "
            "itself knows.",
            names,
        )
    return names


def run(folder: Path, stated: dict[str, Any]) -> Any:
    """The config that the code makes; its model class is `class_of`.  Call after `check` only."""
    from transformers import AutoConfig
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    reference = _references(folder, stated)[-1]
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=True)
        kind = get_class_from_dynamic_module(reference, str(folder), local_files_only=True)
    except Exception as error:  # whatever the code does
        raise BadInput(
            f"The program code of {folder.name} failed ({type(error).__name__}): it may be made "
            "for another version of transformers; choose another model.",
            traceback.format_exc(),
        ) from error
    _CLASSES[type(config)] = kind
    return config


def class_of(config: Any) -> Any:
    """The model class of a config that `run` gave; None for any other."""
    return _CLASSES.get(type(config))


def _references(folder: Path, stated: dict[str, Any]) -> list[str]:
    named = [stated["auto_map"].get(maker) for maker in _MAKERS]
    for reference in named:
        if not isinstance(reference, str) or not _REFERENCE.fullmatch(reference):
            raise BadInput(
                f"{folder.name} is of a type that transformers does not know, and its own program "
                "code for a decoder is not in this folder; choose another model."
            )
    return [str(reference) for reference in named]
