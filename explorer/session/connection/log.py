"""A log file that stays small: the last two megabytes, in two files."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from explorer import disk, places

MAX_BYTES = 1 << 20


class RotatingLog:
    """Appends bytes to `path`; a full file becomes `path.1`; a full disk is borne in silence."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes

    def write(self, data: bytes) -> None:
        """Append, and keep the size within its bound."""
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._path.exists() and self._path.stat().st_size + len(data) > self._max_bytes:
                os.replace(self._path, self._path.with_name(self._path.name + ".1"))
            disk.append(self._path, data)


def keep(text: str) -> None:
    """Put a text that is too long to show into the program's log."""
    RotatingLog(places.log_file()).write(f"{text}\n".encode("utf-8", "backslashreplace"))
