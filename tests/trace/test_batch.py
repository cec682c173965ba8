"""A batch on its way between two processes."""

from __future__ import annotations

import io
import math

import msgspec

from explorer.trace.batch import BatchRequest
from explorer.trace.wire import framing
from explorer.trace.wire import messages as m
from tests.trace.batches import result, row


def test_request_and_result_travel_whole() -> None:
    asked = m.RunBatch(run=3, batch=BatchRequest(prompts=("a", "ü\n"), wrong=("mask",), steps=4))
    stream = io.BytesIO()
    framing.write_request(stream, asked)
    stream.seek(0)
    assert framing.read_request(stream) == asked
    answer = m.Batched(run=3, result=result(row(2), row(4)))
    stream = io.BytesIO()
    framing.write_event(stream, answer)
    stream.seek(0)
    assert framing.read_event(stream) == answer


def test_a_surprisal_that_is_no_number_arrives_as_such() -> None:
    odd = msgspec.structs.replace(row(2), unshifted_nats=(math.nan,) * 4)
    stream = io.BytesIO()
    framing.write_event(stream, m.Batched(run=1, result=result(odd)))
    stream.seek(0)
    event = framing.read_event(stream)
    assert isinstance(event, m.Batched)
    assert all(map(math.isnan, event.result.rows[0].unshifted_nats))
