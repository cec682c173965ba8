"""Arrays in an answer: little-endian bytes, so that thousands of figures travel as one."""

from __future__ import annotations

import numpy as np

FLOAT, WHOLE = "<f4", "<i4"


def packed(numbers: object, kind: str = FLOAT) -> bytes:
    """Numbers as the bytes of their array, row by row."""
    return np.ascontiguousarray(np.asarray(numbers, kind)).tobytes()


def unpacked(data: bytes, kind: str, *shape: int, finite: bool = True) -> np.ndarray:
    """The array again, read-only; ValueError if these are not (finite) numbers of its shape."""
    array = np.frombuffer(data, kind)
    if array.size != int(np.prod(shape)):
        raise ValueError("not the numbers of its shape")
    if finite and not np.isfinite(array).all():
        raise ValueError("a figure that is no number")
    return array.reshape(shape)
