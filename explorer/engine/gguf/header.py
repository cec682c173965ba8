"""The head of a GGUF file, read once and with every bound checked: metadata and tensor table."""

from __future__ import annotations

import mmap
import struct
from collections import Counter
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from explorer.engine.errors import BadInput, TruncatedFile
from explorer.engine.gguf import unusable_kinds
from explorer.engine.model_files.quantisation_shares import by_share
from explorer.engine.model_files.unusable_files import refuse_stand_in

_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_LENGTH = struct.Struct("<Q")
_STRING, _ARRAY = 8, 9
_MOST_ENTRIES = 1 << 20  # tensors, and metadata keys; real files have hundreds
_MOST_ELEMENTS = 1 << 26  # of one metadata array; the widest vocabularies have 2^18


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """One tensor of the file: where its bytes lie and how they are to be read."""

    name: str
    shape: tuple[int, ...]  # as torch says it, slowest axis first
    kind: GGMLQuantizationType
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Header:
    """Metadata (strings, numbers, lists), their GGUF types, and the tensor table."""

    path: Path
    metadata: dict[str, Any]
    types: dict[str, tuple[int, ...]]
    tensors: tuple[TensorEntry, ...]

    @property
    def architecture(self) -> str:
        """llama.cpp's name of the architecture."""
        return str(self.metadata["general.architecture"])

    @property
    def numbers(self) -> int:
        """How many numbers the tensors hold, all together."""
        return sum(prod(tensor.shape) for tensor in self.tensors)

    @property
    def stored(self) -> str:
        """How its matrices are stored, by share: `Q4_1 79 %, Q8_0 21 %`; empty if it has none."""
        counts: Counter[str] = Counter()
        for tensor in self.tensors:
            if len(tensor.shape) > 1:
                counts[tensor.kind.name] += prod(tensor.shape)
        return by_share(counts)

    def data(self, tensor: TensorEntry) -> np.ndarray:
        """The tensor's stored bytes or numbers, mapped from the file, in its stored shape."""
        raw = np.memmap(self.path, np.uint8, "r", tensor.start, (tensor.size,))
        plain = {"F32": np.float32, "F16": np.float16, "F64": np.float64}.get(tensor.kind.name)
        if plain is not None:
            return raw.view(plain).reshape(tensor.shape)
        elements, size = GGML_QUANT_SIZES[tensor.kind]
        return raw.reshape(*tensor.shape[:-1], tensor.shape[-1] // elements * size)


def read_header(path: Path, vocabulary: bool = True) -> Header:
    """Read `path`; BadInput if it is not a whole, well-formed GGUF file.

    Without `vocabulary` lists of strings are passed over, which is quicker.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Reader(path, data, vocabulary).header()
    except (struct.error, IndexError, UnicodeDecodeError, OverflowError) as error:
        raise damaged(path, str(error)) from error
    except (OSError, ValueError) as error:  # an empty file cannot be mapped
        raise damaged(path, str(error)) from error


def is_cut(path: Path) -> bool:
    """True if the head of a GGUF file is whole and names tensors beyond the file's end."""
    try:
        read_header(path, vocabulary=False)
    except TruncatedFile:
        return True
    except (BadInput, OSError):
        return False
    return False


def damaged(path: Path, details: str = "") -> BadInput:
    """What is said of a file that was cut short or overwritten."""
    return BadInput(
        f"{path.name} is not a whole GGUF file (cut short or damaged); download it again.", details
    )


class _Reader:
    def __init__(self, path: Path, data: mmap.mmap, vocabulary: bool) -> None:
        self._path = path
        self._vocabulary = vocabulary
        self._data = data
        self._at = 0

    def header(self) -> Header:
        if self._data[:4] != b"GGUF":
            refuse_stand_in(self._path)
            raise BadInput(f"{self._path.name} is not a GGUF file; choose another file.")
        self._at = 4
        self._check_version(self._take("I"))
        tensors, keys = self._take("Q"), self._take("Q")
        if tensors > _MOST_ENTRIES or keys > _MOST_ENTRIES:
            raise damaged(self._path, f"claims {tensors} tensors and {keys} keys")
        metadata, types = {}, {}
        for _ in range(keys):
            key = self._string()
            metadata[key], types[key] = self._value(self._take("I"))
        table = [self._tensor() for _ in range(tensors)]
        named = isinstance(metadata.get("general.architecture"), str)
        if not named:  # later parts of a model do not state it
            unusable_kinds.refuse_part(self._path, metadata)
        unusable_kinds.refuse(self._path, metadata, [name for name, *_ in table])
        if not named:
            raise damaged(self._path, "general.architecture is missing")
        return Header(self._path, metadata, types, self._placed(table, metadata))

    def _check_version(self, version: int) -> None:
        if version in (2, 3):
            return
        if version == 0:
            raise damaged(self._path, "states version 0")
        if version & 0xFFFF == 0:
            raise BadInput(
                f"{self._path.name} is a big-endian GGUF file, made for another kind of "
                "processor; download the little-endian file of this model."
            )
        raise BadInput(
            f"{self._path.name} is GGUF version {version}; versions 2 and 3 can be read: convert "
            "the model again with a current llama.cpp."
        )

    def _take(self, code: str) -> Any:
        (value,) = struct.unpack_from("<" + code, self._data, self._at)
        self._at += struct.calcsize("<" + code)
        return value

    def _string(self) -> str:
        start = self._at + 8
        self._pass_over(self._take("Q"))
        return self._data[start : self._at].decode("utf-8")

    def _strings(self, count: int) -> list[str]:
        data, at, found = self._data, self._at, []  # a vocabulary has 10^5 of them
        for _ in range(count):
            start = at + 8
            at = start + _LENGTH.unpack_from(data, at)[0]
            found.append(data[start:at].decode("utf-8"))
        self._at = at
        self._pass_over(0)
        return found

    def _pass_over_strings(self, count: int) -> None:
        data, at = self._data, self._at
        for _ in range(count):
            at += 8 + _LENGTH.unpack_from(data, at)[0]
        self._at = at
        self._pass_over(0)

    def _pass_over(self, length: int) -> None:
        self._at += length
        if self._at > len(self._data):
            raise damaged(self._path, f"a string of {length} bytes runs past the end")

    def _value(self, kind: int) -> tuple[Any, tuple[int, ...]]:
        if kind == _STRING:
            return self._string(), (kind,)
        if kind in _SCALARS:
            return self._take(_SCALARS[kind]), (kind,)
        if kind != _ARRAY:
            raise damaged(self._path, f"metadata of type {kind}")
        element, count = self._take("I"), self._take("Q")
        if count > _MOST_ELEMENTS:
            raise damaged(self._path, f"a list of {count} entries")
        if element == _STRING and not self._vocabulary:
            self._pass_over_strings(count)
            return [], (kind, element)
        if element == _STRING:
            return self._strings(count), (kind, element)
        if element not in _SCALARS:
            raise damaged(self._path, f"a list of type {element}")
        form = f"<{count}{_SCALARS[element]}"
        if self._at + struct.calcsize(form) > len(self._data):
            raise damaged(self._path, f"a list of {count} entries runs past the end")
        values = list(struct.unpack_from(form, self._data, self._at))
        self._at += struct.calcsize(form)
        return values, (kind, element)

    def _tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._string()
        axes = self._take("I")
        if axes > 8:
            raise damaged(self._path, f"{name} has {axes} axes")
        shape = tuple(self._take("Q") for _ in range(axes))
        return name, shape[::-1], self._take("I"), self._take("Q")

    def _placed(self, table: list[Any], metadata: dict[str, Any]) -> tuple[TensorEntry, ...]:
        align = metadata.get("general.alignment", 32)
        if not isinstance(align, int) or align <= 0 or align & (align - 1):
            raise damaged(self._path, f"alignment {align}")
        base = -(-self._at // align) * align
        entries, seen = [], set()
        for name, shape, kind, offset in table:
            stored = _storage(kind)
            if stored is None:
                raise BadInput(
                    f"{self._path.name} stores {name} in a form this program does not know "
                    f"(type {kind}); use a file quantised as Q4_K, Q8_0 or F16."
                )
            elements, block = GGML_QUANT_SIZES[stored]
            size = prod(shape) // elements * block
            broken = not shape or prod(shape) == 0 or shape[-1] % elements or name in seen
            told = damaged(self._path, f"{name} {shape} at {offset} runs past the end")
            if broken:
                raise told
            if base + offset + size > len(self._data):
                raise TruncatedFile(told.sentence, told.details)
            seen.add(name)
            entries.append(TensorEntry(name, shape, stored, base + offset, size))
        return tuple(entries)


def _storage(kind: int) -> GGMLQuantizationType | None:
    try:
        return GGMLQuantizationType(kind)
    except ValueError:
        return None
