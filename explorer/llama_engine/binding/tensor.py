"""A node of the graph while it is computed: its numbers as an array over llama.cpp's own memory."""

from __future__ import annotations

import ctypes as c

import numpy as np

from explorer.engine.errors import BadInput
from explorer.llama_engine.binding.library import library
from explorer.llama_engine.binding.structs import TensorStruct

TYPES = {0: np.float32, 1: np.float16, 30: np.uint16}  # ggml_type; 30: bfloat16, kept as its bits
NAMES = {0: "float32", 1: "float16", 30: "bfloat16"}
BLOCK_VALUES = {2: 32, 6: 32, 8: 32}  # q4_0, q5_0, q8_0: numbers in blocks
OP_OFFSET, NAME_OFFSET = TensorStruct.op.offset, TensorStruct.name.offset


class OnGpu(BadInput):
    """Numbers are to be read or changed that are on a GPU."""

    def __init__(self, details: str) -> None:
        super().__init__(
            "What this reads or changes is in the memory of a GPU, where the program can't reach "
            "it. Open the file with 0 GPU layers.",
            details,
        )


def at(address: int) -> TensorStruct:
    """The tensor at an address that llama.cpp gave."""
    return TensorStruct.from_address(address)


def in_memory(tensor: TensorStruct) -> bool:
    """False for one on a GPU, whose address means nothing here."""
    return bool(tensor.buffer and library().ggml_backend_buffer_is_host(tensor.buffer))


def require_in_memory(tensor: TensorStruct) -> None:
    """OnGpu for one that is not in this computer's own memory."""
    if not in_memory(tensor):
        raise OnGpu(tensor.name.decode("utf-8", "replace"))


def numbers(tensor: TensorStruct, begin: int = 0, end: int | None = None) -> np.ndarray:
    """A view (ne[2], ne[1], ne[0]) of a tensor's first three axes, in its stored type.

    `begin` to `end` of axis 1 alone, where they are given.  It is valid until the next node is
    computed; ValueError for a type that is no plain number, or one of four axes, OnGpu for one
    on a GPU.
    """
    dtype = TYPES.get(tensor.type)
    if dtype is None or tensor.ne[3] != 1 or not tensor.data:
        raise ValueError("numbers that can't be read")
    require_in_memory(tensor)
    ne, nb = tensor.ne, tensor.nb
    stop = ne[1] if end is None else end
    if not 0 <= begin <= stop <= ne[1]:
        raise ValueError("rows that are not there")
    shape = (ne[2], stop - begin, ne[0])
    strides = (nb[2], nb[1], nb[0])
    extent = (
        sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + np.dtype(dtype).itemsize
    )
    if min(shape) == 0:
        return np.empty(shape, dtype)
    memory = (c.c_char * extent).from_address(tensor.data + begin * nb[1])
    return np.ndarray(shape, dtype, memory, 0, strides)


def span(tensor: TensorStruct) -> tuple[int, int]:
    """First address of a tensor's data and the one behind its last, as far as it is laid out."""
    columns = tensor.ne[0] // BLOCK_VALUES.get(tensor.type, 1)
    extent = sum((tensor.ne[i] - 1) * tensor.nb[i] for i in range(1, 4)) + columns * tensor.nb[0]
    return tensor.data or 0, (tensor.data or 0) + extent
