"""The head of a safetensors file: its length in eight bytes, then JSON that says where arrays lie.

One door for all that reads one without mapping its arrays, or writes them in a stream: the
`safetensors` library needs every array at once, and does neither.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import BinaryIO

import msgspec

LONGEST = 100_000_000  # bytes; safetensors' own limit


def write_head(stream: BinaryIO, entries: Mapping[str, object]) -> int:
    """Write it, and return where the arrays begin; ValueError, and nothing written, if too long.

    `entries`: dtype, shape and data_offsets by name, and `__metadata__`.
    """
    # Not json.dumps: on a long run it would hold the interpreter's lock long enough to be seen.
    head = msgspec.json.encode(entries)
    head += b" " * (-len(head) % 8)
    if len(head) > LONGEST:
        raise ValueError("the head is too long")
    stream.write(struct.pack("<Q", len(head)) + head)
    return 8 + len(head)


def read_head(stream: BinaryIO, size: int) -> bytes:
    """The JSON of a file of `size` bytes, its length bounded first; ValueError if it is cut."""
    prefix = stream.read(8)
    if len(prefix) < 8:
        raise ValueError("it is too short")
    (length,) = struct.unpack("<Q", prefix)
    if length > min(LONGEST, size - 8):
        raise ValueError("its header is too long")
    return stream.read(length)
