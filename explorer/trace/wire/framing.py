"""Frames between the engine's process and its client.

u32 little-endian header length, a msgpack header {v, run, kind, arrays, body}, then the arrays'
buffers in C order.  No pickle; every length is bounded before memory is taken, and what is only
announced takes none.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

import msgspec
import numpy as np

from explorer.trace.attention import LayerRecord
from explorer.trace.step import Step, Token
from explorer.trace.vocabulary import Vocabulary
from explorer.trace.wire import messages
from explorer.trace.wire.bounds import require_bounded
from explorer.trace.wire.messages import (
    PROTOCOL,
    AnyRequest,
    Batched,
    Event,
    Records,
    Spelled,
    Stepped,
)
from explorer.trace.wire.packing import (
    LayerHeader,
    MaskHeader,
    StepHeader,
    pack_layers,
    pack_step,
    unpack_layers,
    unpack_step,
)
from explorer.trace.wire.validate import require_sound_step
from explorer.trace.wire.validate_batch import require_sound_batch

MAX_HEADER_BYTES = 64 << 20
MAX_ARRAY_BYTES = 4 << 30
MAX_FRAME_BYTES = 8 << 30
_WITH_ARRAYS = ("Stepped", "Spelled", "Records")
_DTYPES = {"<f4", "<f8", "<f2", "<u2", "<i4", "<i8", "|u1", "|i1", "|b1"}


class WireError(ValueError):
    """Bytes that are no frame of this protocol; `start`: those that should begin one."""

    def __init__(self, words: str, start: bytes = b"") -> None:
        super().__init__(words)
        self.start = start


class CutShort(WireError):
    """The stream ended inside a frame: whoever wrote it has gone."""


class OtherProtocol(WireError):
    """Sound frames, of another version of this protocol; a sentence without its full stop."""


class ArrayHeader(msgspec.Struct, frozen=True):
    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        if self.dtype not in _DTYPES or len(self.shape) > 8 or any(n < 0 for n in self.shape):
            raise WireError(f"array {self.name[:40]!r} has a type or shape that is not allowed")
        size = np.dtype(self.dtype).itemsize
        for n in self.shape:
            size *= n
        if size > MAX_ARRAY_BYTES:
            raise WireError(
                f"array {self.name[:40]!r} would take {size:,} bytes, more than the "
                f"{MAX_ARRAY_BYTES:,} allowed"
            )
        return size


class FrameHeader(msgspec.Struct, frozen=True, kw_only=True):
    v: int
    run: int
    kind: str
    arrays: tuple[ArrayHeader, ...] = ()
    body: msgspec.Raw = msgspec.Raw(b"\xc0")


@dataclass(frozen=True, slots=True, eq=False)
class RawFrame:
    """One frame as it travels: what it is can be asked, what it holds is not unpacked."""

    header: FrameHeader
    head: bytes  # the header's own bytes
    buffers: tuple[np.ndarray, ...]  # uint8; of the arrays, in their order


class _SteppedBody(msgspec.Struct, frozen=True):
    step: StepHeader
    token: Token


class _RecordsBody(msgspec.Struct, frozen=True):
    kept: str
    layer: int
    group: int
    masks: tuple[MaskHeader, ...]
    record: LayerHeader | None


_EVENTS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        messages.Hello,
        messages.Alive,
        messages.Progress,
        messages.Loaded,
        messages.Tokens,
        messages.Prompted,
        messages.Planned,
        messages.Checked,
        messages.Batched,
        messages.Facts,
        messages.Thumbnails,
        messages.PartFacts,
        messages.Finished,
        messages.Failed,
    )
}
_header = msgspec.msgpack.Decoder(FrameHeader)
_requests = msgspec.msgpack.Decoder(AnyRequest)
_encoder = msgspec.msgpack.Encoder()


def write_request(stream: BinaryIO, request: AnyRequest) -> None:
    """One request, flushed; WireError if it is too large for a frame."""
    _write(stream, request.run, type(request).__name__, _encoder.encode(request), {})


def write_event(stream: BinaryIO, event: Event) -> None:
    """One event, flushed; the arrays of a step or a vocabulary follow its header.

    WireError if it is too large for a frame.
    """
    body: object = event
    arrays: dict[str, np.ndarray] = {}
    if isinstance(event, Stepped):
        header, arrays = pack_step(event.step)
        body = _SteppedBody(header, event.token)
    elif isinstance(event, Records):
        of_one = () if event.record is None else (event.record,)
        masks, headers, arrays = pack_layers(of_one)
        body = _RecordsBody(event.kept, event.layer, event.group, masks, *(headers or (None,)))
    elif isinstance(event, Spelled):
        body, arrays = None, event.vocabulary.packed()
    _write(stream, event.run, type(event).__name__, _encoder.encode(body), arrays)


def _write(
    stream: BinaryIO, run: int, kind: str, body: bytes, arrays: dict[str, np.ndarray]
) -> None:
    """WireError, with nothing written, for what the other side would refuse as too large."""
    header = _encoder.encode(
        FrameHeader(
            v=PROTOCOL,
            run=run,
            kind=kind,
            arrays=tuple(ArrayHeader(n, a.dtype.str, a.shape) for n, a in arrays.items()),
            body=msgspec.Raw(body),
        )
    )
    sizes = [array.nbytes for array in arrays.values()]
    whole = len(header) + sum(sizes)
    if (
        len(header) > MAX_HEADER_BYTES
        or max(sizes, default=0) > MAX_ARRAY_BYTES
        or sum(sizes) > MAX_FRAME_BYTES
    ):
        raise WireError(f"it takes {whole:,} bytes")
    stream.write(struct.pack("<I", len(header)) + header)
    for array in arrays.values():
        if array.nbytes:  # one at a time: copies of all would double what a long prompt takes
            stream.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    stream.flush()


def write_raw(stream: BinaryIO, frame: RawFrame) -> None:
    """One frame, byte for byte as it was read, flushed."""
    stream.write(struct.pack("<I", len(frame.head)) + frame.head)
    for buffer in frame.buffers:
        if buffer.nbytes:
            stream.write(buffer.data)
    stream.flush()


def read_request(stream: BinaryIO) -> AnyRequest | None:
    """The next request, or None at the end of the stream; WireError if it is not one."""
    frame = read_raw(stream)
    return None if frame is None else _decode(_requests.decode, bytes(frame.header.body))


def read_event(stream: BinaryIO) -> Event | None:
    """The next event, or None at the end of the stream.

    WireError if it is none, if a number in it is out of bounds, or its parts do not fit each other.
    """
    frame = read_raw(stream)
    return None if frame is None else event_of(frame)


def event_of(frame: RawFrame) -> Event:
    """What a frame says; WireError as `read_event`."""
    header = frame.header
    arrays = {
        array.name: buffer.view(array.dtype).reshape(array.shape)
        for array, buffer in zip(header.arrays, frame.buffers, strict=True)
    }
    body = bytes(header.body)
    if header.kind == "Stepped":
        stepped = _decode(lambda raw: msgspec.msgpack.decode(raw, type=_SteppedBody), body)
        step = _decode(lambda found: _step(found, arrays), stepped)
        return Stepped(run=header.run, step=step, token=stepped.token)
    if header.kind == "Records":
        part = _decode(lambda raw: msgspec.msgpack.decode(raw, type=_RecordsBody), body)
        record = _decode(lambda found: _record(found, arrays), part)
        where = {"kept": part.kept, "layer": part.layer, "group": part.group}
        return Records(run=header.run, record=record, **where)
    if header.kind == "Spelled":
        return Spelled(run=header.run, vocabulary=_decode(Vocabulary.unpacked, arrays))
    if header.kind not in _EVENTS:
        raise WireError(f"unknown kind of frame: {header.kind[:40]!r}")
    kind = _EVENTS[header.kind]
    event: Event = _decode(lambda raw: msgspec.msgpack.decode(raw, type=kind), body)
    _decode(_require_fit, event)
    return event


def _step(stepped: _SteppedBody, arrays: dict[str, np.ndarray]) -> Step:
    """ValueError if a number is out of bounds or the arrays do not fit."""
    require_bounded((stepped.step, stepped.token))
    step = unpack_step(stepped.step, arrays)
    require_sound_step(step, stepped.token)
    return step


def _record(part: _RecordsBody, arrays: dict[str, np.ndarray]) -> LayerRecord | None:
    """ValueError if a number is out of bounds or an array is missing."""
    require_bounded(part)
    if part.record is None:
        return None
    try:
        return unpack_layers(part.masks, (part.record,), arrays)[0]
    except (KeyError, IndexError) as missing:
        raise ValueError(f"a part of a step lacks an array: {missing}") from missing


def _require_fit(event: Event) -> None:
    require_bounded(event)
    if isinstance(event, Batched):
        require_sound_batch(event.result)


def _decode(decode: Callable[[Any], Any], raw: Any) -> Any:
    try:
        return decode(raw)
    except (msgspec.DecodeError, ValueError) as error:
        raise WireError(f"a frame that does not fit the protocol: {error}") from error


def read_raw(stream: BinaryIO) -> RawFrame | None:
    """The next frame, or None at the end of the stream; WireError if its head is not sound."""
    prefix = _exactly(stream, 4, at_start=True)
    if prefix is None:
        return None
    (length,) = struct.unpack("<I", prefix)
    if length > MAX_HEADER_BYTES:
        raise WireError("a frame's header is too long to be one of this program's", bytes(prefix))
    head = bytes(_exactly(stream, length) or b"")
    header: FrameHeader = _decode(_header.decode, head)
    if header.v != PROTOCOL:
        raise OtherProtocol(
            f"it speaks protocol {header.v}, and this program speaks protocol {PROTOCOL}. Install "
            "the same version of Decoder Explorer on both machines"
        )
    if header.arrays and header.kind not in _WITH_ARRAYS:
        raise WireError(f"a frame of kind {header.kind[:40]!r} with arrays")
    if sum(a.nbytes for a in header.arrays) > MAX_FRAME_BYTES:
        raise WireError(f"a frame of more than the {MAX_FRAME_BYTES:,} bytes allowed")
    return RawFrame(header, head, tuple(_buffer(stream, array.nbytes) for array in header.arrays))


def _buffer(stream: BinaryIO, count: int) -> np.ndarray:
    """Memory that nothing was written to is not taken: an announcement alone costs nothing."""
    buffer = np.empty(count, np.uint8)
    _fill(stream, buffer.data)
    return buffer


def _exactly(stream: BinaryIO, count: int, at_start: bool = False) -> bytearray | None:
    buffer = bytearray(count)
    return buffer if _fill(stream, memoryview(buffer), at_start) else None


def _fill(stream: BinaryIO, view: memoryview, at_start: bool = False) -> bool:
    """False at the end of the stream, which may only be there `at_start` of a frame."""
    got = 0
    while got < len(view):
        n = stream.readinto(view[got:])  # type: ignore[attr-defined]
        if not n:
            if at_start and got == 0:
                return False
            raise CutShort("the stream ended inside a frame")
        got += n
    return True
