"""Keeps the running session on disk, so that a crash loses half a minute at most.

Each program that runs owns one file in the data folder and holds a lock beside it; the system lets
the lock go when the program dies, however it dies.  A file without an owner is offered at the next
start.  A clean end removes it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from explorer import places
from explorer.trace import dxt
from explorer.trace.beside import Beside
from explorer.trace.trace import Trace

INTERVAL_SECONDS = 30.0
_ALONE = Beside()
_PATTERN = "autosave-*.dxt"


class Autosave:
    """Writes the latest session it was told of, in its own thread, at most once an interval."""

    def __init__(
        self,
        on_problem: Callable[[str], None],
        folder: Path | None = None,
        interval: float | None = None,
    ) -> None:
        """`on_problem` is called once, in the saving thread, if a save fails."""
        self._folder = places.data_folder() if folder is None else folder
        self._path = self._folder / f"autosave-{os.getpid()}-{time.time_ns():x}.dxt"
        self._interval = INTERVAL_SECONDS if interval is None else interval
        self._on_problem: Callable[[str], None] | None = on_problem
        self._changed = threading.Condition()
        self._latest: tuple[Trace, Beside] | None = None
        self._closed = False
        self._lock: BinaryIO | None = None
        self._thread: threading.Thread | None = None

    @property
    def path(self) -> Path:
        return self._path

    def note(self, trace: Trace, beside: Beside = _ALONE) -> None:
        """Remember the newest trace and what is beside it; returns at once."""
        with self._changed:
            self._latest = trace, beside
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._work, name="autosave", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """A clean end: stop, and remove the file."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        if self._lock is not None:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
                self._lock.close()
                _lock_path(self._path).unlink(missing_ok=True)

    def _work(self) -> None:
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: self._closed, self._interval):
                    return
                latest, self._latest = self._latest, None
            if latest is not None:
                self._save(*latest)

    def _save(self, trace: Trace, beside: Beside) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if self._lock is None:
                self._lock = open(_lock_path(self._path), "wb")  # noqa: SIM115 - held until the end
                _try_lock(self._lock)
            dxt.save(trace, self._path, beside)
        except (OSError, dxt.DxtError) as error:
            tell, self._on_problem = self._on_problem, None
            if tell is not None:
                reason = (getattr(error, "strerror", None) or str(error)).rstrip(".")
                tell(
                    f"The session is not being kept for the case of a crash ({reason}): make room "
                    f"in {self._folder}, or save it yourself."
                )


def recoverable(folder: Path | None = None) -> Path | None:
    """The newest session that a crashed program left, or None."""
    folder = places.data_folder() if folder is None else folder
    try:
        files = sorted(folder.glob(_PATTERN), key=lambda f: f.stat().st_mtime, reverse=True)
    except OSError:  # another program's file went away meanwhile, or the folder can't be read
        return None
    return next((f for f in files if not _owned(f)), None)


def discard(path: Path) -> None:
    """Remove a session that was offered and dealt with."""
    path.unlink(missing_ok=True)
    _lock_path(path).unlink(missing_ok=True)


def _lock_path(path: Path) -> Path:
    return path.with_suffix(".lock")


def _owned(path: Path) -> bool:
    try:
        with open(_lock_path(path), "r+b") as lock:
            return not _try_lock(lock)
    except FileNotFoundError:
        return False
    except OSError:  # Windows refuses to open what another program has locked
        return True


def _try_lock(stream: BinaryIO) -> bool:
    """Lock the open file for this program until it is closed; False if another has it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
