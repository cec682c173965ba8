"""Whatever is sent arrives as it was; whatever else arrives is a frame or the one error."""

from __future__ import annotations

import io
import struct
from contextlib import suppress
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.trace.vocabulary import Vocabulary
from explorer.trace.wire import away, framing
from explorer.trace.wire import messages as m
from tests.trace import any_values, frames
from tests.trace.runs import same

REQUESTS = get_args(m.AnyRequest)
PLAIN_EVENTS = tuple(
    set(m.Event.__subclasses__()) - {m.Lost, m.Stepped, m.Spelled, m.Records, m.Batched}
)
EVENTS = frames.events()
KINDS = st.sampled_from([type(event).__name__ for event in EVENTS]) | any_values.TEXT
DTYPES = st.sampled_from(("<f4", "<f2", "<u2", "<i8", "|u1", "|b1", "|O", "nonsense"))


def there_and_back(event: m.Event) -> m.Event | None:
    stream = io.BytesIO()
    framing.write_event(stream, event)
    stream.seek(0)
    found = framing.read_event(stream)
    assert framing.read_event(stream) is None
    return found


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
@given(st.data())
def test_any_request_arrives_as_it_was(kind: type[m.Request], data: st.DataObject) -> None:
    asked = data.draw(any_values.structs(kind))
    stream = io.BytesIO()
    framing.write_request(stream, asked)
    stream.seek(0)
    assert framing.read_request(stream) == asked
    assert framing.read_request(stream) is None


@pytest.mark.parametrize("kind", PLAIN_EVENTS, ids=lambda kind: kind.__name__)
@given(st.data())
def test_any_event_arrives_as_it_was(kind: type[m.Event], data: st.DataObject) -> None:
    event = data.draw(any_values.structs(kind))
    assert same(there_and_back(event), event)


@given(any_values.batches(), st.integers(0, 2**31 - 1))
def test_any_batch_arrives_as_it_was(batch: Any, run: int) -> None:
    event = m.Batched(run=run, result=batch)
    assert same(there_and_back(event), event)


@given(any_values.traces())
def test_any_step_arrives_as_it_was(trace: Any) -> None:
    for step, token in zip(trace.steps, trace.chosen, strict=True):
        event = m.Stepped(step=step, token=token)
        assert same(there_and_back(event), event)


@given(any_values.traces())
def test_any_part_of_a_step_arrives_as_it_was(trace: Any) -> None:
    for step in trace.steps:
        for record in step.layers:
            for group in range(away.groups_of(record)):
                part = away.part_of(record, group)
                event = m.Records(kept="a.1", layer=record.layer, group=group, record=part)
                assert same(there_and_back(event), event)
    gone = m.Records(kept="a.1", layer=0, group=0, record=None)
    assert same(there_and_back(gone), gone)


@given(st.lists(any_values.TOKENS, max_size=5))
def test_any_vocabulary_arrives_as_it_was(tokens: list[Any]) -> None:
    event = m.Spelled(vocabulary=Vocabulary.of(tokens))
    assert same(there_and_back(event), event)


def read_all(raw: bytes) -> None:
    """Each as a request and as an event: values, the end, or the one error."""
    for read in (framing.read_event, framing.read_request):
        stream = io.BytesIO(raw)
        with suppress(framing.WireError):
            while read(stream) is not None:
                pass


@given(st.binary(max_size=200))
def test_any_bytes_are_frames_or_the_one_error(raw: bytes) -> None:
    read_all(raw)
    read_all(struct.pack("<I", len(raw)) + raw)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
@given(st.data())
def test_a_damaged_frame_is_another_or_the_one_error(event: m.Event, data: st.DataObject) -> None:
    whole = frames.frame(event)
    (length,) = struct.unpack("<I", whole[:4])
    read_all(data.draw(any_values.damaged(whole, 4 + length)))


ARRAYS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(("logits", "layer_ms", "data", "offsets", "special", "keys.0")),
            "dtype": DTYPES,
            "shape": st.lists(st.integers(-1, 3), max_size=3),
        }
    ),
    max_size=4,
)


@given(KINDS, any_values.SHAPELESS, ARRAYS, st.binary(max_size=300))
def test_any_header_is_a_frame_or_the_one_error(
    kind: str, body: Any, arrays: list[Any], rest: bytes
) -> None:
    header = {"v": m.PROTOCOL, "run": 1, "kind": kind, "body": body, "arrays": arrays}
    raw = msgspec.msgpack.encode(header)
    read_all(struct.pack("<I", len(raw)) + raw + rest)


@given(st.data())
def test_a_step_with_arrays_of_any_shape_is_one_or_the_one_error(data: st.DataObject) -> None:
    whole = next(frames.frame(event) for event in EVENTS if isinstance(event, m.Stepped))
    (length,) = struct.unpack("<I", whole[:4])
    header = msgspec.msgpack.decode(whole[4 : 4 + length])
    for array in header["arrays"]:
        count = 1
        for n in array["shape"]:
            count *= n
        shapes = (array["shape"], [], [count], [1, count], [count, 1, 1], [0], [0, count])
        array["shape"] = data.draw(st.sampled_from(shapes))
    raw = msgspec.msgpack.encode(header)
    read_all(struct.pack("<I", len(raw)) + raw + whole[4 + length :])
