"""Processes of a test: until one has ended, whoever started it."""

from __future__ import annotations

import os
import select


def ends(pid: int, seconds: float = 20.0) -> bool:
    """True as soon as the process has ended, reaped or not; False if it lives on all that time."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)
