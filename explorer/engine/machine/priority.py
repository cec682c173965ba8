"""Long work gives way to the window and to the model that is stepped."""

from __future__ import annotations

import contextlib
import os
import sys
import threading

_NICE = 10  # of 19


def give_way() -> None:
    """From now on this thread, and those it starts, run when nobody else wants the processor.

    On Linux alone: elsewhere a thread has no priority that can be set so.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
