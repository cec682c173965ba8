"""Keeps the running session on disk, so that a crash loses half a minute at most.

Each program that runs owns one file in the data folder and holds a lock beside it; the system lets
the lock go when the program dies, however it dies.  A clean end removes the file.  Files without
an owner are looked through by `recovery`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from explorer import disk, places
from explorer.session.saving.recovery import SESSIONS, Lock, discard
from explorer.trace.files import dxt
from explorer.trace.files.saved_extras import SavedExtras
from explorer.trace.trace import Trace

INTERVAL_SECONDS = 30.0
_ALONE = SavedExtras()
_log = logging.getLogger(__name__)


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
        self._latest: tuple[Trace, SavedExtras] | None = None
        self._closed = False
        self._needless = False
        self._lock: Lock | None = None
        self._adopted: dict[Path, Lock] = {}  # of earlier programs, opened in this one
        self._thread: threading.Thread | None = None

    @property
    def path(self) -> Path:
        return self._path

    def note(self, trace: Trace, beside: SavedExtras = _ALONE) -> None:
        """Remember the newest trace and what is beside it; returns at once."""
        with self._changed:
            self._latest = trace, beside
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._work, name="autosave", daemon=True)
                self._thread.start()

    def saved(self) -> None:
        """The user has all of it in a file: nothing is kept beside that."""
        with self._changed:
            self._latest = None
            self._needless = self._thread is not None
            self._changed.notify()

    def adopt(self, path: Path) -> None:
        """A session that a crashed program left is open here: its file goes once it is saved."""
        lock = Lock.take(path) if path.match(SESSIONS) else None
        if lock is not None:
            self._adopted[path] = lock

    def close(self) -> None:
        """A clean end: stop, and remove the file."""
        self._stop()
        self._drop_adopted()
        if self._lock is not None:
            with contextlib.suppress(OSError):
                discard(self._path, self._lock)

    def leave(self, trace: Trace, beside: SavedExtras = _ALONE) -> None:
        """The program must end now: write this, and leave it for the next start."""
        self._stop()
        self._write((trace, beside), needless=False)
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _stop(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._needless, self._interval)
                if self._closed:
                    return
                latest, self._latest = self._latest, None
                needless, self._needless = self._needless, False
            self._write(latest, needless)

    def _write(self, latest: tuple[Trace, SavedExtras] | None, needless: bool) -> None:
        """Remove what is `needless`, and save the latest; any trouble is reported, not raised."""
        try:
            if needless:
                with contextlib.suppress(OSError):
                    self._path.unlink(missing_ok=True)
                self._drop_adopted()
            if latest is not None:
                self._save(*latest)
        except Exception as error:  # whatever it is, the next session is saved again
            _log.warning("automatic saving failed", exc_info=error)
            tell, self._on_problem = self._on_problem, None
            if tell is not None:
                reason = disk.why(error).rstrip(".")
                space = isinstance(error, OSError | dxt.DxtError)
                advice = f"Free some space in {self._folder}, or save" if space else "Save"
                tell(
                    f"Automatic saving failed ({reason}). Your run is still here. {advice} the "
                    "session yourself."
                )

    def _save(self, trace: Trace, beside: SavedExtras) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._lock is None:
            self._lock = Lock.take(self._path)
        dxt.save(trace, self._path, beside)
        self._drop_adopted()

    def _drop_adopted(self) -> None:
        while self._adopted:
            with contextlib.suppress(OSError):
                discard(*self._adopted.popitem())
