"""Sessions that a program left behind when it crashed or was ended: found, and cleared away."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from explorer import places
from explorer.trace.files import dxt

MOST = 10  # sessions that wait to be opened; older ones go
UNREADABLE = "unreadable-session.dxt"  # the newest that could not be read
SESSIONS = "autosave-*.dxt"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UnsavedSession:
    """One sound session that nobody has open."""

    path: Path
    saved_at: float  # seconds since the epoch
    model: str
    prompt: str
    tokens: int  # generated


@dataclass(frozen=True, slots=True)
class Found:
    """What was left: sessions to offer, the newest first, and whether one could not be read."""

    sessions: tuple[UnsavedSession, ...] = ()
    unreadable: Path | None = None  # where the newest such file lies now


class Lock:
    """Says that a session's file belongs to a program; the system drops it when that ends."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self._path, self._stream = path, stream

    @classmethod
    def take(cls, session: Path) -> Lock | None:
        """None if another program has it.  OSError if there can't be a lock."""
        path = lock_path(session)
        while True:
            stream = open(path, "ab")  # noqa: SIM115 - held until it is released
            if not _locked(stream):
                stream.close()
                return None
            if _is_at(path, stream):
                return cls(path, stream)
            stream.close()  # released, and its name gone, after it was opened here

    def release(self) -> None:
        """Let others have the session."""
        # The name goes first, while nobody else can hold the lock; Windows wants it closed.
        if sys.platform == "win32":
            self._stream.close()
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
        self._stream.close()


def lock_path(session: Path) -> Path:
    return session.with_suffix(".lock")


def discard(session: Path, lock: Lock | None = None) -> None:
    """Remove a session that was dealt with; one that another program has open stays."""
    held = lock or Lock.take(session)
    if held is not None:
        session.unlink(missing_ok=True)
        held.release()


def found(folder: Path | None = None) -> Found:
    """The sound sessions that have no owner; what is stale is cleared away.

    Reads the header of each file: not for the window's thread.
    """
    folder = places.data_folder() if folder is None else folder
    sessions: list[UnsavedSession] = []
    unreadable = None
    with contextlib.suppress(OSError):  # the folder can't be read, or was never made
        _clear_stale(folder)
        for path in folder.glob(SESSIONS):
            with contextlib.suppress(OSError):  # another program's file went away meanwhile
                one = _looked_at(path)
                if isinstance(one, UnsavedSession):
                    sessions.append(one)
                unreadable = one if isinstance(one, Path) else unreadable
    sessions.sort(key=lambda kept: kept.saved_at, reverse=True)
    for old in sessions[MOST:]:
        with contextlib.suppress(OSError):
            discard(old.path)
    return Found(tuple(sessions[:MOST]), unreadable)


def _looked_at(path: Path) -> UnsavedSession | Path | None:
    """The session, or where it was put if it can't be read; None if another program has it."""
    lock = Lock.take(path)
    if lock is None:
        return None
    try:
        saved_at = path.stat().st_mtime
        outline = dxt.outline(path)
    except dxt.DxtError as error:
        _log.warning("a session kept for the case of a crash: %s", error)
        return _put_aside(path)
    finally:
        lock.release()
    return UnsavedSession(path, saved_at, outline.model, outline.prompt, outline.tokens)


def _put_aside(path: Path) -> Path:
    """What can't be opened is offered no more; the newest is left to whoever may mend it."""
    aside = path.with_name(UNREADABLE)
    if aside.exists() and aside.stat().st_mtime > path.stat().st_mtime:
        path.unlink()
    else:
        os.replace(path, aside)
    return aside


def _clear_stale(folder: Path) -> None:
    """Locks without a session, and halves of sessions whose writer is gone."""
    for part in folder.glob(f".{SESSIONS}.*.part"):
        session = folder / f"{part.name.removeprefix('.').partition('.')[0]}.dxt"
        lock = Lock.take(session)
        if lock is not None:
            part.unlink(missing_ok=True)
            lock.release()
    for path in folder.glob("autosave-*.lock"):
        if not path.with_suffix(".dxt").exists():
            lock = Lock.take(path.with_suffix(".dxt"))
            if lock is not None:
                lock.release()


def _is_at(path: Path, stream: BinaryIO) -> bool:
    """True if the open file is the one that `path` names."""
    try:
        return os.path.samestat(os.fstat(stream.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _locked(stream: BinaryIO) -> bool:
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
