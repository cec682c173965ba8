"""Frames: everything comes back equal, and no bytes from outside can hurt."""

from __future__ import annotations

import dataclasses
import io
import struct

import msgspec
import numpy as np
import pytest

from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import Step, Token
from explorer.trace.wire import framing, messages
from tests.trace import examples
from tests.trace.runs import made_trace


def there_and_back(event: messages.Event) -> messages.Event:
    stream = io.BytesIO()
    framing.write_event(stream, event)
    stream.seek(0)
    result = framing.read_event(stream)
    assert result is not None
    assert framing.read_event(stream) is None
    return result


def assert_same_step(one: Step, two: Step) -> None:
    for field in dataclasses.fields(Step):
        a, b = getattr(one, field.name), getattr(two, field.name)
        if field.name == "layers":
            assert len(a) == len(b)
            for left, right in zip(a, b, strict=True):
                assert_same_fields(left, right)
        elif isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)
        else:
            assert a == b, field.name


def assert_same_fields(left: object, right: object) -> None:
    for field in dataclasses.fields(left):  # type: ignore[arg-type]
        a, b = getattr(left, field.name), getattr(right, field.name)
        if dataclasses.is_dataclass(a):
            assert_same_fields(a, b)
        elif isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype
        else:
            assert a == b, field.name


def test_a_step_comes_back_equal_and_read_only() -> None:
    event = messages.Stepped(run=4, step=examples.step(), token=Token(9, b"\xf0\x9f", "generated"))
    back = there_and_back(event)
    assert isinstance(back, messages.Stepped)
    assert back.run == 4
    assert back.token == event.token
    assert_same_step(event.step, back.step)
    with pytest.raises(ValueError, match="read-only"):
        back.step.logits[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        back.step.layers[0].queries[0] = 1  # type: ignore[index]


def test_layers_share_one_mask_on_the_way() -> None:
    back = there_and_back(messages.Stepped(step=examples.step(), token=Token(1, b"")))
    assert isinstance(back, messages.Stepped)
    assert back.step.layers[0].mask is back.step.layers[2].mask


def test_large_layers_and_small_ones_come_back_alike() -> None:
    kept = tuple(examples.layer(i, 700) for i in range(2))
    step = examples.step(queries=700, layers=kept)
    back = there_and_back(messages.Stepped(step=step, token=Token(1, b"")))
    assert isinstance(back, messages.Stepped)
    assert_same_step(step, back.step)


@pytest.mark.parametrize(
    "event",
    [
        messages.Hello(versions={"torch": "2"}),
        messages.Progress(run=1, text="Reading", fraction=0.5),
        messages.Tokens(run=2, text="a\x00b", tokens=(Token(1, b"\xff"),), problem="p"),
        messages.Finished(run=3, reason="end token"),
        messages.Failed(run=4, sentence="No.", details="why"),
        messages.Facts(facts={"models": [{"name": "x", "bytes": 2**40}]}),
    ],
)
def test_events_come_back_equal(event: messages.Event) -> None:
    assert there_and_back(event) == event


def test_requests_come_back_equal() -> None:
    stream = io.BytesIO()
    asked = messages.Advance(
        run=9,
        request=RunRequest(model="m", prompt="x", padding="left", pad=3),
        chosen=(1, 2),
        steps=5,
        sampling=Sampling(seed=2**62),
    )
    framing.write_request(stream, asked)
    stream.seek(0)
    assert framing.read_request(stream) == asked
    assert framing.read_request(stream) is None


def frame(header: dict[str, object]) -> io.BytesIO:
    raw = msgspec.msgpack.encode(header)
    return io.BytesIO(struct.pack("<I", len(raw)) + raw)


@pytest.mark.parametrize(
    "array",
    [
        {"name": "a", "dtype": "<f4", "shape": [2**62]},
        {"name": "a", "dtype": "<f4", "shape": [-1]},
        {"name": "a", "dtype": "|O", "shape": [1]},
        {"name": "a", "dtype": "<f4", "shape": [1] * 9},
    ],
)
def test_hostile_arrays_take_no_memory(array: dict[str, object]) -> None:
    stream = frame({"v": 1, "run": 0, "kind": "Stepped", "arrays": [array]})
    with pytest.raises(framing.WireError):
        framing.read_event(stream)


@pytest.mark.parametrize("bound", ["MAX_HEADER_BYTES", "MAX_ARRAY_BYTES", "MAX_FRAME_BYTES"])
def test_nothing_is_written_that_the_other_side_would_refuse(
    monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(framing, bound, 100)
    stream = io.BytesIO()
    with pytest.raises(framing.WireError, match="bytes"):
        framing.write_event(stream, messages.Stepped(step=examples.step(), token=Token(1, b"x")))
    assert stream.getvalue() == b""


@pytest.mark.parametrize(
    "raw",
    [
        b"\xff\xff\xff\xff",
        b"\x05\x00\x00\x00ab",
        b"\x01\x00\x00\x00\xc1",
        b"Traceback (most recent call last):\n",
    ],
)
def test_bytes_that_are_no_frame_are_refused(raw: bytes) -> None:
    with pytest.raises(framing.WireError):
        framing.read_event(io.BytesIO(raw))


def test_another_protocol_is_named() -> None:
    with pytest.raises(framing.WireError, match="protocol 7"):
        framing.read_event(frame({"v": 7, "run": 0, "kind": "Hello"}))


def test_every_cut_of_a_frame_is_refused() -> None:
    stream = io.BytesIO()
    framing.write_event(stream, messages.Stepped(step=examples.step(), token=Token(1, b"x")))
    whole = stream.getvalue()
    for end in range(1, len(whole), max(1, len(whole) // 60)):
        with pytest.raises(framing.WireError):
            framing.read_event(io.BytesIO(whole[:end]))


def test_frames_of_a_version_with_engine_modes_are_read() -> None:
    def with_mode(frame: bytes, at: str) -> io.BytesIO:
        header = msgspec.msgpack.decode(frame[4:])
        part = header["body"][at] if at else header["body"]
        part |= {"mode": "fast", "mode_refused": "", "modes": [{"mode": "fast", "steps": 21}]}
        raw = msgspec.msgpack.encode(header)
        return io.BytesIO(struct.pack("<I", len(raw)) + raw)

    loaded = messages.Loaded(run=2, card=made_trace(0).card)
    stream = io.BytesIO()
    framing.write_event(stream, loaded)
    assert framing.read_event(with_mode(stream.getvalue(), "card")) == loaded
    for request, at in (
        (messages.Load(model="tiny"), ""),
        (messages.Advance(request=RunRequest(prompt="x")), "request"),
    ):
        stream = io.BytesIO()
        framing.write_request(stream, request)
        assert framing.read_request(with_mode(stream.getvalue(), at)) == request
