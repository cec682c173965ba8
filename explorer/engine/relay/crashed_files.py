"""The .gguf files on which llama.cpp has crashed, kept in the data folder of this machine.

Such a file is not opened by it again unless the user asks for that.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from explorer import places
from explorer.engine import kept_json

_KEPT = 50  # files, the newest


class CrashedFile(msgspec.Struct, frozen=True):
    """One file, as it was then."""

    path: str
    size: int
    changed_ns: int


def note(path: Path) -> None:
    """llama.cpp has crashed on this file."""
    if (one := _as_it_is(path)) is not None:
        _write([one, *(other for other in _read() if other != one)])


def forget(path: Path) -> None:
    """It has been opened since."""
    known = _read()
    rest = [other for other in known if other.path != str(path)]
    if len(rest) < len(known):
        _write(rest)


def is_noted(path: Path) -> bool:
    """True if llama.cpp has crashed on this file, and nothing was written to it since."""
    return _as_it_is(path) in _read()


def _as_it_is(path: Path) -> CrashedFile | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return CrashedFile(str(path), found.st_size, found.st_mtime_ns)


def _file() -> Path:
    return places.data_folder() / "crashed-files.json"


def _read() -> list[CrashedFile]:
    return kept_json.read(_file(), list[CrashedFile]) or []


def _write(files: list[CrashedFile]) -> None:
    kept_json.write_if_possible(_file(), files[:_KEPT])
