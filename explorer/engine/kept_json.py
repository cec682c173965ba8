"""What the engine remembers in the data folder, as JSON of a known shape."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TypeVar

import msgspec

from explorer import disk

_LARGEST = 8 << 20  # bytes; whatever is longer was not written here
T = TypeVar("T")


def read(path: Path, kind: type[T]) -> T | None:
    """What was kept; None if nothing was, or it is not of this kind."""
    try:
        with disk.opened(path) as stream:
            data = stream.read(_LARGEST + 1)
        return None if len(data) > _LARGEST else msgspec.json.decode(data, type=kind)
    except (OSError, ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return None


def write(path: Path, value: object) -> None:
    """Keep this instead; OSError if the disk is full or read-only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    disk.write(path, msgspec.json.format(msgspec.json.encode(value), indent=1))


def write_if_possible(path: Path, value: object) -> None:
    """Keep this instead, where that only saves work: a disk that takes nothing costs nothing."""
    with contextlib.suppress(OSError):
        write(path, value)
