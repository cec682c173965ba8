"""A PNG without a picture library."""

from __future__ import annotations

import struct
import zlib
from typing import BinaryIO

import numpy as np


def write(stream: BinaryIO, pixels: np.ndarray) -> None:
    """(height, width, 3) uint8, as an RGB PNG."""
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # filter 0 in front of each row
    rows[:, 1:] = pixels.reshape(height, -1)
    stream.write(b"\x89PNG\r\n\x1a\n")
    _chunk(stream, b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    _chunk(stream, b"IDAT", zlib.compress(rows.tobytes(), 6))
    _chunk(stream, b"IEND", b"")


def _chunk(stream: BinaryIO, kind: bytes, data: bytes) -> None:
    check = zlib.crc32(data, zlib.crc32(kind))
    stream.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check))
