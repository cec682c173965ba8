"""What the engine's machine is: processor, cores, memory, GPUs."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import psutil

from explorer.engine.machine.kept_bandwidth import processor


def facts() -> dict[str, Any]:
    """Fields of `found_models.Machine`; what nobody says is left out.

    GPUs are those that torch can use; torch must have been imported.
    """
    found: dict[str, Any] = {"processor": processor(), "cores": os.cpu_count() or 0}
    with contextlib.suppress(OSError, psutil.Error):
        found["memory_bytes"] = psutil.virtual_memory().total
    with contextlib.suppress(Exception):  # a driver may fail in any way
        import torch

        if torch.cuda.is_available():
            count = torch.cuda.device_count()
            found["gpus"] = tuple(torch.cuda.get_device_name(i) for i in range(count))
        elif torch.backends.mps.is_available():
            found["gpus"] = ("Apple GPU (MPS)",)
    return found
