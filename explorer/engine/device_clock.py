"""Clocks that read what a device has done, not what it has been told to do.

A GPU takes its work into a queue and lets the program go on: by the processor's clock a pass would
be over before it began.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch


def finish(device: torch.device) -> None:
    """Wait until the device has done all that it was given; a processor always has."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def clock(device: torch.device) -> tuple[Callable[[], Any], Callable[[Any, Any], float]]:
    """How to take a reading, and the seconds between two: on a GPU by its own events.

    Events may be asked only once the device has finished.
    """
    events: Any = {"cuda": torch.cuda.Event, "mps": torch.mps.event.Event}.get(device.type)
    if events is None:
        return time.perf_counter, lambda a, b: b - a

    def mark() -> Any:
        event = events(enable_timing=True)
        event.record()
        return event

    return mark, lambda a, b: a.elapsed_time(b) / 1e3
