"""Numbers in blocks of few bits, turned into float32 by llama.cpp's own code.

A block's values are a scale times small integers.  Products of such numbers are sums of integers,
scaled: what float32 gives for the same values, up to its own rounding.
"""

from __future__ import annotations

import ctypes as c

import numpy as np

from explorer.llama_engine.binding import tensor
from explorer.llama_engine.binding.library import library
from explorer.llama_engine.binding.structs import TensorStruct

CACHE_TYPES = {"f32": 0, "f16": 1, "bf16": 30, "q8_0": 8, "q5_0": 6, "q4_0": 2}  # ggml_type
_BY_NUMBER = {number: name for name, number in CACHE_TYPES.items()}


def blocks(number: int) -> tuple[int, int]:
    """(values, bytes) of a block of this ggml_type."""
    traits = library().ggml_get_type_traits(number).contents
    return int(traits.blck_size), int(traits.type_size)


def is_read(number: int) -> bool:
    """True for a quantised type that keys can be kept in here."""
    return _BY_NUMBER.get(number, "").startswith("q")


def rows(node: TensorStruct, begin: int, end: int) -> np.ndarray:
    """(end - begin, ne[2], ne[0]) float32 of rows `begin` to `end` of axis 1, kept in blocks."""
    tensor.require_in_memory(node)
    values, size = blocks(node.type)
    width = node.ne[0] // values * size
    shape, strides = (end - begin, node.ne[2], width), (node.nb[1], node.nb[2], 1)
    extent = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1
    memory = (c.c_char * extent).from_address(node.data + begin * node.nb[1])
    stored = np.ascontiguousarray(np.ndarray(shape, np.uint8, memory, 0, strides))
    return _floats(stored, node.type, (*shape[:2], node.ne[0]))


def as_multiplied(numbers: np.ndarray, by: int) -> np.ndarray:
    """float32 as the processor reads it beside numbers of the type `by`: in blocks itself."""
    traits = library().ggml_get_type_traits_cpu(by).contents
    values, size = blocks(traits.vec_dot_type)
    given = np.ascontiguousarray(numbers, np.float32)
    kept = np.empty(given.size // values * size, np.uint8)
    own = library().ggml_get_type_traits_cpu(traits.vec_dot_type).contents
    own.from_float(given.ctypes.data, kept.ctypes.data, given.size)
    return _floats(kept, traits.vec_dot_type, given.shape)


def _floats(stored: np.ndarray, number: int, shape: tuple[int, ...]) -> np.ndarray:
    found = np.empty(shape, np.float32)
    traits = library().ggml_get_type_traits(number).contents
    traits.to_float(stored.ctypes.data, found.ctypes.data, found.size)
    return found
