"""What identifies a model on disk, told without reading its weights whole.

Of each weight file: name, size, hash of its header, time of change, and a hash of blocks spread
over its data.  Training changes numbers in all of a tensor, so a block of each tensor tells; some
milliseconds for 10 GB.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from explorer.engine.errors import EngineError
from explorer.engine.model_files.weights import safetensors_header

_BLOCK = 4096  # bytes
_TENSORS = 2048  # at most so many have a block of their own
_SPREAD = 512  # blocks at even distances over all of a file's data
_HEAD = 65536


def fingerprint(folder: Path, files: Sequence[Path]) -> dict[str, Any]:
    """Of a model folder: a hash of its config.json, and what tells of each weight file."""
    config = hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()
    return {"config": config, "weights": [of_file(path) for path in files]}


def of_file(path: Path) -> dict[str, Any]:
    """What tells of one weight file, without reading it whole."""
    if path.suffix == ".safetensors":
        head, tensors = safetensors_header(path)
        begin = 8 + len(head)
        spans = [tuple(map(int, entry["data_offsets"])) for entry in tensors.values()]
        places = [begin + (first + end) // 2 for first, end in sorted(spans)]
    else:
        with path.open("rb") as file:
            head = file.read(_HEAD)
        begin, places = 0, []
    return {
        "name": path.name,
        "size": path.stat().st_size,
        "header_sha256": hashlib.sha256(head).hexdigest(),
        "blocks_sha256": blocks_sha256(path, begin, places),
        "changed": _seconds(path.stat().st_mtime_ns),
    }


def blocks_sha256(path: Path, begin: int = 0, places: Sequence[int] = ()) -> str:
    """A hash of blocks spread over a file from `begin` on, and of those around some `places`."""
    size = path.stat().st_size
    stride = max(1, (size - begin) // _SPREAD)
    chosen = {*range(begin, size, stride), *_evenly(places, _TENSORS), size - 1}
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        for block in sorted({max(0, place) // _BLOCK for place in chosen}):
            file.seek(block * _BLOCK)
            digest.update(file.read(_BLOCK))
    return digest.hexdigest()


def _seconds(nanoseconds: int) -> str:
    """Since 1970, exactly: a number of JSON would not hold it."""
    return f"{nanoseconds // 10**9}.{nanoseconds % 10**9:09d}"


def _evenly(places: Sequence[int], most: int) -> Iterable[int]:
    return places if len(places) <= most else places[:: -(-len(places) // most)]


class Watched:
    """Files as they were when a model was opened; a live model may share its memory with them."""

    def __init__(self, files: Iterable[Path] = ()) -> None:
        self._seen = {path: (_stamp(path), _blocks(path)) for path in files}

    @property
    def changed(self) -> Path | None:
        """The first of the files that was written or replaced since; a few µs each.

        One that was removed does not count: what an open model holds of it stays.
        """
        return next(filter(self._is_changed, self._seen), None)

    def _is_changed(self, path: Path) -> bool:
        (stamp, blocks), now = self._seen[path], _stamp(path)
        if now is None or now == stamp:
            return False
        # A program can set the time of change back, but not that of its own doing so (POSIX:
        # ctime).  Another name or other rights for a file have that time, too: its data tells.
        if stamp is None or now[:-1] != stamp[:-1] or not blocks or _blocks(path) != blocks:
            return True
        self._seen[path] = now, blocks
        return False


def _stamp(path: Path) -> tuple[int, int, int, int] | None:
    """File, size, time of change, and the time at which anything about it changed."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _blocks(path: Path) -> str:
    """A hash of the header and of blocks of the data; empty where it can't be read."""
    try:
        told = of_file(path)
    except (OSError, EngineError):
        return ""
    return f"{told['header_sha256']} {told['blocks_sha256']}"
