"""How fast this machine reads memory: the best that was ever measured, kept in the data folder.

A bound is the best that was ever measured here, so a busy moment cannot lower it for good.
"""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable
from pathlib import Path

from explorer import places
from explorer.engine import kept_json

_measured: dict[str, float] = {}  # by machine, in this process


def kept_best(key: str, measure: Callable[[], float]) -> float:
    """The best figure ever measured for `key`; `measure` is called once in a process."""
    if key not in _measured:
        known = _read().get(key, 0.0)
        _measured[key] = max(measure(), known)
        if _measured[key] > known:
            kept_json.write_if_possible(_file(), _read() | {key: _measured[key]})
    return _measured[key]


def processor() -> str:
    """The processor's name as the system tells it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _file() -> Path:
    return places.data_folder() / "machine.json"


def _read() -> dict[str, float]:
    return kept_json.read(_file(), dict[str, float]) or {}
