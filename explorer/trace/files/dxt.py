"""A saved session: one .dxt file, which opens without torch, without the model, on any machine.

It is a safetensors file.  The metadata key `decoder_explorer` holds JSON (`format: 1`): request,
model card, tokens, for every step its header, and what the session holds beside the trace: its
branches and the last batch.  Arrays are named `<step>/<name>`, as `packing` names them.  Saving
streams step by step, so that it needs no second copy of the trace; the file appears under its name
only when it is whole.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np

from explorer import disk
from explorer.trace.files.dxt_body import (
    FORMAT,
    Body,
    Tables,
    all_steps,
    beside_of,
    read_steps,
    trace_of,
)
from explorer.trace.files.safetensors_head import read_head, write_head
from explorer.trace.files.saved_extras import SavedExtras
from explorer.trace.request import RunRequest
from explorer.trace.trace import Trace
from explorer.trace.wire.away import left_there
from explorer.trace.wire.packing import pack_step
from explorer.trace.wire.validate import require_sound
from explorer.trace.wire.validate_batch import require_sound_batch

KEY = "decoder_explorer"
_MOST_FORMATS = 1000  # what a later program may have reached
_NAMES = {"<f8": "F64", "<f4": "F32", "<f2": "F16", "<u2": "U16", "<i4": "I32", "<i8": "I64"}
_NAMES |= {"|u1": "U8", "|i1": "I8", "|b1": "BOOL"}
_ALONE = SavedExtras()
_DTYPES = {name: np.dtype(code) for code, name in _NAMES.items()}


AFTER_DAMAGE = "Open another copy, or repeat the run and save it."


class DxtError(ValueError):
    """A file that can't be written or opened, in one sentence."""


class _Array(msgspec.Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Outline:
    """What a session is recognised by."""

    model: str
    prompt: str
    tokens: int  # generated


class _Named(msgspec.Struct, frozen=True):
    name: str


class _OutlineBody(msgspec.Struct, frozen=True):
    request: RunRequest
    card: _Named
    chosen: tuple[msgspec.Raw, ...] = ()


class _Format(msgspec.Struct, frozen=True):
    format: int = 0


def save(trace: Trace, path: str | os.PathLike[str], beside: SavedExtras = _ALONE) -> None:
    """Write the file whole or not at all; DxtError if it can't be written."""
    target = Path(path)
    try:
        with disk.replacing(target) as stream:
            _write(stream, trace, beside)
    except DxtError:
        raise
    except (OSError, ValueError) as error:
        raise DxtError(
            f"{target} could not be written: {disk.why(error)}. Save it in another place."
        ) from error


def _write(stream: BinaryIO, trace: Trace, beside: SavedExtras) -> None:
    tables = Tables()
    entries: dict[str, object] = {}
    end = 0
    steps = all_steps(trace, beside)
    for i, step in enumerate(steps):
        header, arrays = pack_step(left_there(step))
        tables.add(header)
        for name, array in _in_file_order(arrays):
            begin, end = end, end + array.nbytes
            code = _NAMES.get(array.dtype.str)
            if code is None:
                raise DxtError(
                    f"An array of type {array.dtype} has no place in a .dxt file. "
                    "Run the model in float32 and save that run."
                )
            entries[f"{i}/{name}"] = {
                "dtype": code,
                "shape": list(array.shape),
                "data_offsets": [begin, end],
            }
    body = msgspec.json.encode(tables.body(trace, beside)).decode()
    try:
        write_head(stream, {"__metadata__": {KEY: body}, **entries})
    except ValueError as error:
        raise DxtError(
            "This run has too many tokens for one .dxt file. Save a shorter run."
        ) from error
    for step in steps:
        for _, array in _in_file_order(pack_step(left_there(step))[1]):
            if array.nbytes:
                stream.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _in_file_order(arrays: dict[str, np.ndarray]) -> list[tuple[str, np.ndarray]]:
    """Wide elements first: the format allows no gaps, and views should be aligned."""
    return sorted(arrays.items(), key=lambda item: -item[1].itemsize)


def load(path: str | os.PathLike[str]) -> Trace:
    """The trace of a file; DxtError with one sentence if it is none or is damaged."""
    return load_whole(path)[0]


def load_whole(path: str | os.PathLike[str]) -> tuple[Trace, SavedExtras]:
    """The trace of a file, and what was saved beside it; DxtError as in `load`."""
    source = Path(path)
    try:
        with disk.opened(source) as stream:
            head = _read_head(stream, os.fstat(stream.fileno()).st_size)
            data = stream.read()
    except OSError as error:
        raise DxtError(
            f"{source} could not be opened: {disk.why(error)}. "
            "Check that the file is there and that you may read it."
        ) from error
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise DxtError(
            f"{source} is damaged or is not a Decoder Explorer session: {error}. Choose a "
            ".dxt file written by Save session."
        ) from error
    try:
        return _decode(head, data)
    except DxtError as error:
        raise DxtError(f"{source} {error}") from error
    except (ValueError, TypeError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise DxtError(f"{source} is damaged: {error}. {AFTER_DAMAGE}") from error


def outline(path: str | os.PathLike[str]) -> Outline:
    """What a file says of itself, its arrays unread.

    DxtError if it is none or is not whole; OSError if it can't be read.
    """
    source = Path(path)
    try:
        with disk.opened(source) as stream:
            size = os.fstat(stream.fileno()).st_size
            head = _read_head(stream, size)
            room = size - stream.tell()
        body = msgspec.json.decode(_body_text(head), type=_OutlineBody)
        for raw in head.values():
            if not 0 <= msgspec.json.decode(raw, type=_Array).data_offsets[1] <= room:
                raise ValueError("an array reaches outside the file")
    except DxtError as error:
        raise DxtError(f"{source} {error}") from error
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise DxtError(f"{source} is damaged: {error}. {AFTER_DAMAGE}") from error
    return Outline(body.card.name, body.request.prompt, len(body.chosen))


def _read_head(stream: BinaryIO, size: int) -> dict[str, msgspec.Raw]:
    """The safetensors header, its length bounded before it is read."""
    return msgspec.json.decode(read_head(stream, size), type=dict[str, msgspec.Raw])


def _decode(head: dict[str, msgspec.Raw], data: bytes) -> tuple[Trace, SavedExtras]:
    text = _body_text(head)
    body = msgspec.json.decode(text, type=Body)
    arrays: dict[int, dict[str, np.ndarray]] = {}
    for full_name, raw in head.items():
        step, _, name = full_name.partition("/")
        if not (step.isascii() and step.isdigit() and len(step) < 10):
            raise ValueError(f"an array is named {full_name[:40]!r}")
        entry = msgspec.json.decode(raw, type=_Array)
        arrays.setdefault(int(step), {})[name] = _array(entry, data)
    steps = read_steps(body, lambda i: arrays.get(i, {}))
    trace = trace_of(body, steps)
    beside = beside_of(body, trace, steps)
    for one in (trace, *(sibling.trace for sibling in beside.branches)):
        require_sound(one)
    if beside.batch is not None:
        require_sound_batch(beside.batch)
    return trace, beside


def _body_text(head: dict[str, msgspec.Raw]) -> str:
    """The JSON that is ours, taken out of the header; its format is one that this program reads."""
    metadata = msgspec.json.decode(head.pop("__metadata__", b"{}"), type=dict[str, str])
    text = metadata.get(KEY)
    if text is None:
        raise DxtError(
            "is not a Decoder Explorer session (it may be model weights). Open the "
            "model's folder, or choose a .dxt file written by Save session."
        )
    number = msgspec.json.decode(text, type=_Format).format
    if not 0 <= number <= _MOST_FORMATS:
        raise ValueError("its format number is invalid")
    if number != FORMAT:
        raise DxtError(
            f"has format {number}, but this program reads format {FORMAT}. Open it with a "
            "newer version of Decoder Explorer."
        )
    return text


def _array(entry: _Array, data: bytes) -> np.ndarray:
    """A read-only view of the file's bytes; ValueError if it reaches outside them."""
    dtype = _DTYPES.get(entry.dtype)
    begin, end = entry.data_offsets
    if dtype is None or len(entry.shape) > 8 or any(n < 0 for n in entry.shape):
        raise ValueError("an array has a type or shape that is not allowed")
    count = 1
    for n in entry.shape:
        count *= n
    if not 0 <= begin <= end <= len(data) or end - begin != count * dtype.itemsize:
        raise ValueError("an array reaches outside the file")
    return (
        np.frombuffer(data, dtype, count, begin).reshape(entry.shape)
        if count
        else np.zeros(entry.shape, dtype)
    )
