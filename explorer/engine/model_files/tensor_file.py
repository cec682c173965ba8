"""A safetensors file written a tensor at a time: a conversion never holds the whole model."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch

from explorer.engine.errors import BadInput
from explorer.trace.files.safetensors_head import write_head


class TensorFile(MutableMapping[str, Any]):
    """float32 tensors by name, straight on disk; names and shapes are settled beforehand.

    Setting writes; getting gives a torch view into the file, so that a part can be filled in.
    """

    def __init__(self, path: Path, shapes: dict[str, tuple[int, ...]]) -> None:
        self._shapes = shapes
        self._written: set[str] = set()
        entries, self._starts, end = _layout(shapes)
        self._file = path.open("w+b")
        self._base = write_head(self._file, entries)
        self._file.truncate(self._base + end)
        self._path = path

    def __enter__(self) -> TensorFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def missing(self) -> list[str]:
        """Names that were never written."""
        return [name for name in self._shapes if name not in self._written]

    def __setitem__(self, name: str, value: Any) -> None:
        array = np.asarray(value, np.float32)
        if name not in self._shapes or tuple(array.shape) != self._shapes[name]:
            raise BadInput(
                f"A tensor of this file ({name}, {array.shape}) does not fit its architecture; use "
                "another file of this model."
            )
        self._file.seek(self._base + self._starts[name])
        np.ascontiguousarray(array).tofile(self._file)
        self._written.add(name)

    def __getitem__(self, name: str) -> torch.Tensor:
        if name not in self._written:
            raise KeyError(name)
        self._file.flush()
        start, shape = self._base + self._starts[name], self._shapes[name]
        return torch.from_numpy(np.memmap(self._path, np.float32, "r+", start, shape))

    def __contains__(self, name: object) -> bool:
        return name in self._written

    def __delitem__(self, name: str) -> None:
        self._written.remove(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._written)

    def __len__(self) -> int:
        return len(self._written)


def _layout(shapes: dict[str, tuple[int, ...]]) -> tuple[dict[str, Any], dict[str, int], int]:
    """(entries of the head, where each tensor starts, bytes of all)."""
    entries: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    starts, at = {}, 0
    for name, shape in shapes.items():
        size = 4 * prod(shape)
        entries[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + size]}
        starts[name] = at
        at += size
    return entries, starts, at
