"""Windows ends a child with its parent, however the parent goes: both are tied by a job object."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

_EXTENDED_LIMITS, _KILL_ON_CLOSE = 9, 0x2000


class _Limits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("process_time", ctypes.c_int64),
        ("job_time", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("least_working_set", ctypes.c_size_t),
        ("most_working_set", ctypes.c_size_t),
        ("processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority", ctypes.c_uint32),
        ("scheduling", ctypes.c_uint32),
        ("io", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peak_process", ctypes.c_size_t),
        ("peak_job", ctypes.c_size_t),
    )


def tie(process: int) -> Any:
    """A job with this process in it: it ends when the handle is closed, so with this program.

    None where the system refuses; the child then ends when its pipe does.
    """
    if sys.platform == "win32":
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.CreateJobObjectW.restype = ctypes.c_void_p
        job = ctypes.c_void_p(kernel.CreateJobObjectW(None, None))
        limits = _Limits(flags=_KILL_ON_CLOSE)
        told = ctypes.byref(limits), ctypes.sizeof(limits)
        set_up = job and kernel.SetInformationJobObject(job, _EXTENDED_LIMITS, *told)
        if set_up and kernel.AssignProcessToJobObject(job, ctypes.c_void_p(process)):
            return job
    return None
