"""A SentencePiece tokenizer.model, read without the sentencepiece and protobuf packages.

transformers turns such a file into a fast tokenizer itself; only its reader wants those packages.
"""

from __future__ import annotations

import importlib
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# Not by `import … as`: transformers may hold a function of that name where the module was.
_CONVERSION: Any = importlib.import_module("transformers.convert_slow_tokenizer")
_LONGEST = 64 * 1024 * 1024
# Field numbers of sentencepiece_model.proto, with the names and defaults they have there.
_PIECE = {1: ("piece", ""), 2: ("score", 0.0), 3: ("type", 1)}
_TRAINER = {
    3: ("model_type", 1), 24: ("treat_whitespace_as_suffix", False), 35: ("byte_fallback", False),
    40: ("unk_id", 0), 41: ("bos_id", 1), 42: ("eos_id", 2), 43: ("pad_id", -1),
    45: ("unk_piece", "<unk>"), 46: ("bos_piece", "<s>"), 47: ("eos_piece", "</s>"),
    48: ("pad_piece", "<pad>"),
}  # fmt: skip
_NORMALIZER = {
    1: ("name", ""), 2: ("precompiled_charsmap", b""), 3: ("add_dummy_prefix", True),
    4: ("remove_extra_whitespaces", True), 5: ("escape_whitespaces", True),
}  # fmt: skip


def read(path: Path) -> SimpleNamespace:
    """Pieces, trainer_spec and normalizer_spec; ValueError if it is no such file."""
    if path.stat().st_size > _LONGEST:
        raise ValueError(f"{path.name} is too long for a SentencePiece model")
    model = SimpleNamespace(
        pieces=[], trainer_spec=_message(b"", _TRAINER), normalizer_spec=_message(b"", _NORMALIZER)
    )
    for number, value in _fields(path.read_bytes()):
        if number == 1:
            model.pieces.append(_message(value, _PIECE))
        elif number == 2:
            model.trainer_spec = _message(value, _TRAINER)
        elif number == 3:
            model.normalizer_spec = _message(value, _NORMALIZER)
    if not model.pieces:
        raise ValueError(f"{path.name} holds no pieces")
    return model


@contextmanager
def understood() -> Iterator[None]:
    """While this lasts, transformers reads SentencePiece files by `read`."""
    kind: Any = _CONVERSION.SentencePieceExtractor
    before = kind.__init__

    def begin(self: Any, model: str) -> None:
        self.proto = read(Path(model))

    kind.__init__ = begin
    try:
        yield
    finally:
        kind.__init__ = before


def _message(data: Any, names: dict[int, tuple[str, Any]]) -> SimpleNamespace:
    if not isinstance(data, bytes):
        raise ValueError("a part of the file is not what it should be")
    found = SimpleNamespace(**dict(names.values()))
    for number, value in _fields(data):
        if number in names:
            name, default = names[number]
            setattr(found, name, _as(value, default))
    return found


def _as(value: Any, default: Any) -> Any:
    """A field's value in the type of its default."""
    if isinstance(default, str):
        return bytes(value).decode("utf-8")
    if isinstance(default, bool):
        return bool(value)
    if isinstance(default, int) and value >= 1 << 63:  # negative numbers take ten bytes
        return value - (1 << 64)
    return value


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field: an int, a float, or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        form = key & 7
        value: Any
        if form == 0:
            value, at = _varint(data, at)
        elif form == 5:
            (value,), at = struct.unpack_from("<f", data, at), at + 4
        elif form == 1:
            (value,), at = struct.unpack_from("<d", data, at), at + 8
        elif form == 2:
            length, at = _varint(data, at)
            value, at = data[at : at + length], at + length
        else:
            raise ValueError(f"field of form {form}")
        if at > len(data):
            raise ValueError("the file ends in the middle of a field")
        yield key >> 3, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("the file ends in the middle of a number")
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
        shift += 7
