"""The engine ends with the program that started it, whatever it does at that moment.

Its end of the pipe tells, but only a thread that gets its turn can hear: a library that keeps the
interpreter's lock for minutes would go on by itself.  On Linux the system ends the engine; Windows
has a job object for it (session.win_job); elsewhere a thread looks after the parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time

_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_LOOK_SECONDS = 1.0


def end_with() -> None:
    """From now on, this process ends when its parent does.

    Linux means the parent's thread that started it: that must be one that lives as long.
    """
    parent = os.getppid()
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it went just before
            os._exit(0)
    elif sys.platform != "win32":
        threading.Thread(target=_look_after, args=(parent,), name="parent", daemon=True).start()


def _look_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(0)
