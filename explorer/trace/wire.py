"""Frames between the engine's process and its client.

u32 little-endian header length, a msgpack header {v, run, kind, arrays, body}, then the arrays'
buffers in C order.  No pickle; every length is bounded before memory is taken.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, BinaryIO

import msgspec
import numpy as np

from explorer.trace import messages
from explorer.trace.messages import PROTOCOL, AnyRequest, Event, Spelled, Stepped
from explorer.trace.packing import StepHeader, pack_step, unpack_step
from explorer.trace.step import Token
from explorer.trace.vocabulary import Vocabulary

MAX_HEADER_BYTES = 64 << 20
MAX_ARRAY_BYTES = 8 << 30
_DTYPES = {"<f4", "<f8", "<f2", "<u2", "<i4", "<i8", "|u1", "|i1", "|b1"}


class WireError(ValueError):
    """Bytes that are no frame of this protocol."""


class ArrayHeader(msgspec.Struct, frozen=True):
    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        if self.dtype not in _DTYPES or len(self.shape) > 8 or any(n < 0 for n in self.shape):
            raise WireError(f"array {self.name!r} has a type or shape that is not allowed")
        size = np.dtype(self.dtype).itemsize
        for n in self.shape:
            size *= n
        if size > MAX_ARRAY_BYTES:
            raise WireError(f"array {self.name!r} is larger than {MAX_ARRAY_BYTES} bytes")
        return size


class FrameHeader(msgspec.Struct, frozen=True, kw_only=True):
    v: int
    run: int
    kind: str
    arrays: tuple[ArrayHeader, ...] = ()
    body: msgspec.Raw = msgspec.Raw(b"\xc0")


class _SteppedBody(msgspec.Struct, frozen=True):
    step: StepHeader
    token: Token


_EVENTS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        messages.Hello,
        messages.Progress,
        messages.Loaded,
        messages.Tokens,
        messages.Prompted,
        messages.Planned,
        messages.Checked,
        messages.Batched,
        messages.Facts,
        messages.PartFacts,
        messages.Finished,
        messages.Failed,
    )
}
_header = msgspec.msgpack.Decoder(FrameHeader)
_requests = msgspec.msgpack.Decoder(AnyRequest)
_encoder = msgspec.msgpack.Encoder()


def write_request(stream: BinaryIO, request: AnyRequest) -> None:
    """One request, flushed."""
    _write(stream, request.run, type(request).__name__, _encoder.encode(request), {})


def write_event(stream: BinaryIO, event: Event) -> None:
    """One event, flushed; the arrays of a step or a vocabulary follow its header."""
    body: object = event
    arrays: dict[str, np.ndarray] = {}
    if isinstance(event, Stepped):
        header, arrays = pack_step(event.step)
        body = _SteppedBody(header, event.token)
    elif isinstance(event, Spelled):
        body, arrays = None, event.vocabulary.packed()
    _write(stream, event.run, type(event).__name__, _encoder.encode(body), arrays)


def _write(
    stream: BinaryIO, run: int, kind: str, body: bytes, arrays: dict[str, np.ndarray]
) -> None:
    header = _encoder.encode(
        FrameHeader(
            v=PROTOCOL,
            run=run,
            kind=kind,
            arrays=tuple(ArrayHeader(n, a.dtype.str, a.shape) for n, a in arrays.items()),
            body=msgspec.Raw(body),
        )
    )
    stream.write(struct.pack("<I", len(header)) + header)
    for array in arrays.values():
        if array.nbytes:  # one at a time: copies of all would double what a long prompt takes
            stream.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    stream.flush()


def read_request(stream: BinaryIO) -> AnyRequest | None:
    """The next request, or None at the end of the stream; WireError if it is not one."""
    frame = _read(stream)
    return None if frame is None else _decode(_requests.decode, bytes(frame[0].body))


def read_event(stream: BinaryIO) -> Event | None:
    """The next event, or None at the end of the stream; WireError if it is not one."""
    frame = _read(stream)
    if frame is None:
        return None
    header, arrays = frame
    body = bytes(header.body)
    if header.kind == "Stepped":
        stepped = _decode(lambda raw: msgspec.msgpack.decode(raw, type=_SteppedBody), body)
        step = _decode(lambda _: unpack_step(stepped.step, arrays), body)
        return Stepped(run=header.run, step=step, token=stepped.token)
    if header.kind == "Spelled":
        return Spelled(run=header.run, vocabulary=_decode(Vocabulary.unpacked, arrays))
    if header.kind not in _EVENTS:
        raise WireError(f"unknown kind of frame: {header.kind!r}")
    kind = _EVENTS[header.kind]
    event: Event = _decode(lambda raw: msgspec.msgpack.decode(raw, type=kind), body)
    return event


def _decode(decode: Callable[[Any], Any], raw: Any) -> Any:
    try:
        return decode(raw)
    except (msgspec.DecodeError, ValueError) as error:
        raise WireError(f"a frame that does not fit the protocol: {error}") from error


def _read(stream: BinaryIO) -> tuple[FrameHeader, dict[str, np.ndarray]] | None:
    prefix = _exactly(stream, 4, at_start=True)
    if prefix is None:
        return None
    (length,) = struct.unpack("<I", prefix)
    if length > MAX_HEADER_BYTES:
        raise WireError("a frame's header is too long to be one of this program's")
    raw = _exactly(stream, length)
    header: FrameHeader = _decode(_header.decode, bytes(raw or b""))
    if header.v != PROTOCOL:
        raise WireError(f"the engine speaks protocol {header.v}, this program speaks {PROTOCOL}")
    if sum(a.nbytes for a in header.arrays) > MAX_ARRAY_BYTES:
        raise WireError("a frame's arrays are too large")
    arrays = {}
    for array in header.arrays:
        data = _exactly(stream, array.nbytes)
        arrays[array.name] = np.frombuffer(data or b"", np.dtype(array.dtype)).reshape(array.shape)
    return header, arrays


def _exactly(stream: BinaryIO, count: int, at_start: bool = False) -> bytearray | None:
    buffer = bytearray(count)
    view = memoryview(buffer)
    got = 0
    while got < count:
        n = stream.readinto(view[got:])  # type: ignore[attr-defined]
        if not n:
            if at_start and got == 0:
                return None
            raise WireError("the stream ended inside a frame")
        got += n
    return buffer
