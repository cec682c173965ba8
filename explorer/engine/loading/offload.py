"""A model that is larger than memory: its layers over GPUs, main memory and disk, by accelerate.

`auto` is its device, or `auto:200MB` where main memory may hold no more of its weights.  What lies
on the disk is read again in every pass, from the model's own files where those hold it as it is.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from itertools import groupby
from pathlib import Path
from typing import Any

import psutil
import torch

from explorer import places
from explorer.engine.errors import BadInput
from explorer.engine.machine import system_memory
from explorer.engine.model_files.find_layers import decoder_layers
from explorer.engine.model_files.meta_model import skeleton
from explorer.wording import short_bytes

AUTO = "auto"
_FOR_WEIGHTS = 0.7  # of the free memory; the rest is for the cache, what is recorded and a pass
_NAMED = {"cpu": "in main memory", "disk": "on the disk"}
_LIMIT = re.compile(r"auto(?::(\d+(?:\.\d+)?)([kKMGT]i?B))?")


def is_auto(device: str) -> bool:
    """True of `auto`, with a limit or without."""
    return device.partition(":")[0] == AUTO


def limit_of(device: str) -> int | None:
    """Bytes of weights that main memory may hold; None = as many as there is room for.

    BadInput if it is no limit.
    """
    found = _LIMIT.fullmatch(device)
    if found is None:
        raise BadInput(f"There is no device {device[:40]}; write auto, or auto:200MB.")
    number, unit = found.groups()
    if number is None:
        return None
    power = "kmgt".index(unit[0].lower()) + 1
    size = int(float(number) * (1024 if "i" in unit else 1000) ** power)
    if not 0 < size < 2**50:
        raise BadInput(f"Main memory can't hold {number} {unit}; write a limit such as auto:200MB.")
    return size


def plan(config: Any, dtype: torch.dtype, device: str) -> dict[str, int | str]:
    """Where each part of a model will lie, by the names of its modules: a GPU, cpu or disk.

    Worked out before anything is loaded.
    """
    from accelerate import infer_auto_device_map
    from accelerate.utils import get_max_memory

    limit, free = limit_of(device), system_memory.available_bytes()
    most: dict[Any, int] = dict(get_max_memory())
    if limit is None and free is not None:
        limit = int(free * _FOR_WEIGHTS)
    if limit is not None:
        most["cpu"] = limit
    model = skeleton(config)
    model.tie_weights()
    whole = list(model._no_split_modules or ())
    found: dict[str, int | str] = infer_auto_device_map(
        model, max_memory=most, no_split_module_classes=whole, dtype=dtype
    )
    return found


def arguments(placement: dict[str, int | str]) -> dict[str, Any]:
    """What from_pretrained is told to do so; nothing without a placement."""
    if not placement:
        return {}
    sweep()
    return {"device_map": placement, "offload_folder": str(_folder())}


def placed(model: Any, placement: dict[str, int | str]) -> Any:
    """The same model, whose `device` is the one that takes what it is given to read.

    transformers' own looks at the first parameter, which may be on the disk.
    """
    gpus = [place for place in placement.values() if isinstance(place, int)]
    first = torch.device("cuda", min(gpus)) if gpus else torch.device("cpu")
    kind = type(model)
    members = {"device": property(lambda _: first), "__module__": kind.__module__}
    model.__class__ = type(kind.__name__, (kind,), members)
    return model


def is_spread(model: Any) -> bool:
    """True if hooks of accelerate fetch weights for each part of the model."""
    return any(hasattr(module, "_hf_hook") for module in model.modules())


def words(config: Any, dtype: torch.dtype, placement: dict[str, int | str]) -> str:
    """Which layers lie where, and what is read from the disk in each pass."""
    model = skeleton(config).to(dtype)
    names = {id(module): name for name, module in model.named_modules()}
    layers = [_place(names[id(layer)], placement) for layer in decoder_layers(model)]
    said, begin = [], 0
    for place, same in groupby(layers):
        end = begin + len(list(same))
        which = f"layer {begin}" if end == begin + 1 else f"layers {begin} to {end - 1}"
        said.append(f"{which} {_NAMED.get(str(place), f'on GPU {place}')}")
        begin = end
    text = f"Placed by accelerate: {', '.join(said)}."
    away = {
        id(p): p.nbytes for name, p in model.named_parameters() if _place(name, placement) == "disk"
    }
    if away:
        text += (
            f" Each pass reads {short_bytes(sum(away.values()))} of weights from the disk again, "
            "so it takes far longer."
        )
    return text


def _place(name: str, placement: dict[str, int | str]) -> int | str:
    """Where a module or parameter lies: as the longest of the names that it is part of."""
    parts = name.split(".")
    for count in range(len(parts), -1, -1):
        if (key := ".".join(parts[:count])) in placement:
            return placement[key]
    return "cpu"


# -- what accelerate writes


def _folder() -> Path:
    return _root() / str(os.getpid())


def _root() -> Path:
    return places.data_folder() / "offloaded"


def sweep() -> None:
    """Remove what processes that have ended left behind."""
    with contextlib.suppress(OSError):
        for folder in _root().iterdir():
            if not (folder.name.isdigit() and psutil.pid_exists(int(folder.name))):
                shutil.rmtree(folder, ignore_errors=True)


def remove() -> None:
    """Remove what this process has written; its model is closed."""
    shutil.rmtree(_folder(), ignore_errors=True)
    with contextlib.suppress(OSError):
        _root().rmdir()  # only where no other process has anything there
