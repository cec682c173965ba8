"""Peak memory of a call (Linux), and returning freed memory to the system."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import psutil

T = TypeVar("T")
_SELF = Path("/proc/self")


def peak_of(work: Callable[[], T]) -> tuple[T, int | None]:
    """(what `work` gives, bytes that the process held above what it held before).

    None in place of the bytes where the system does not tell (anything but Linux).
    """
    before = _reset()
    result = work()
    after = _read("VmHWM")
    return result, None if before is None or after is None else max(0, after - before)


def give_back() -> None:
    """Hand what is free to the system; the C library keeps it otherwise.  Milliseconds."""
    with contextlib.suppress(OSError, AttributeError):  # not every C library can
        psutil.heap_trim()


def _reset() -> int | None:
    """Reset the high-water mark; the bytes held now."""
    gc.collect()
    give_back()  # what earlier work freed must not be taken again unseen
    with contextlib.suppress(OSError):
        (_SELF / "clear_refs").write_text("5")
        return _read("VmRSS")
    return None


def _read(field: str) -> int | None:
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines: Any = (_SELF / "status").read_text().splitlines()
        line = next(line for line in lines if line.startswith(field))
        return int(line.split()[1]) * 1024
    return None
