"""What the engine remembers in the data folder, as JSON of a known shape."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

import explorer
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


def write_newest(path: Path, value: object, most: int) -> None:
    """Keep this, too, where possible; of the files beside it the `most` newest stay."""
    with contextlib.suppress(OSError):
        write(path, value)
        others = sorted(path.parent.iterdir(), key=lambda p: p.stat().st_mtime_ns, reverse=True)
        for old in others[most:]:
            old.unlink()


def hashed(parts: dict[str, Any]) -> str:
    """A file name for what was found with exactly these."""
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


@cache
def code_of(rooms: Collection[str]) -> str:
    """A hash of the source of these rooms, as it was when this was first asked."""
    return code_now(rooms)


def code_now(rooms: Collection[str]) -> str:
    """A hash of the source of these rooms; of the version where no source is shipped."""
    root = Path(explorer.__file__).parent
    digest = hashlib.sha256(explorer.__version__.encode())
    files = [path for room in rooms for path in (root / room).rglob("*.*")]
    for path in sorted(path for path in files if path.suffix in (".py", ".c")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
