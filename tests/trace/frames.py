"""A frame of every kind that an engine sends, no number missing in it, and each of them changed."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec

from explorer.trace.card import Check
from explorer.trace.chat import ChatParts, ChatTurn
from explorer.trace.cost.run_cost import Plan
from explorer.trace.step import RankShare, Token
from explorer.trace.vocabulary import Vocabulary
from explorer.trace.wire import away, framing
from explorer.trace.wire import messages as m
from tests.trace.batches import result, row
from tests.trace.files.test_bounds import whole

Path = tuple[str | int, ...]


def events(run: int = 1) -> tuple[m.Event, ...]:
    """One event of every kind, answers to this run."""
    trace, _ = whole()
    step = replace(trace.steps[0], embedding_ms=0.5, head_ms=0.5, engine_ms=2.0)
    plan = Plan(
        tokens=5, weights_bytes=2**34, cache_bytes=2**33, capture_bytes=2**32,
        available_bytes=2**36, estimated_seconds=40.0,
    )  # fmt: skip
    sent = replace(step, left_out=((0, 1),), ranks=(RankShare(8, 2.5, 0.5),))
    part = away.part_of(next(one for one in step.layers if away.groups_of(one)), 0)
    facts: dict[str, Any] = {"count": 3, "share": 0.5, "rows": [{"id": 1, "nats": -2.5}]}
    parts = ChatParts(message=1, message_end=2, answer=3)
    turns = (ChatTurn(role="user", first_slot=0, last_slot=1, message=0, text=(0, 1)),)
    return (
        m.Hello(run=run), m.Alive(run=run),
        m.Progress(run=run, text="reading", fraction=0.5),
        m.Loaded(run=run, card=trace.card),
        m.Tokens(
            run=run, text="a", tokens=(Token(1, b"a"), Token(2, b"b")), parts=parts, turns=turns
        ),
        m.Prompted(run=run, tokens=trace.prompt, turns=turns),
        m.Planned(run=run, plan=plan),
        m.Stepped(run=run, step=sent, token=trace.chosen[0]),
        m.Checked(run=run, check=Check(name="x", passed=True, measured=1e-6, tolerance=1e-4)),
        m.Batched(run=run, result=result(row(2), row(4))),
        m.Facts(run=run, facts=facts), m.PartFacts(run=run, facts=facts),
        m.Spelled(run=run, vocabulary=Vocabulary.of([Token(i, b"t") for i in range(5)])),
        m.Records(run=run, kept="a.1", layer=0, group=0, record=part),
        m.Thumbnails(
            run=run, shape=(1, 2, 1, 1), heads=(2,), reasons=("",), slots=1, stride=1, levels=b"x"
        ),
        m.Finished(run=run, reason="steps"), m.Failed(run=run, sentence="No."),
    )  # fmt: skip


def frame(event: m.Event) -> bytes:
    """The event as it is sent."""
    stream = io.BytesIO()
    framing.write_event(stream, event)
    return stream.getvalue()


def numbers(raw: bytes) -> Iterator[Path]:
    """Where the numbers of a frame are, its run and the arrays left out."""
    yield from _numbers(_split(raw)[0]["body"], ("body",))


def _numbers(value: Any, at: Path) -> Iterator[Path]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield at
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _numbers(inner, (*at, name))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _numbers(inner, (*at, i))


def changed(raw: bytes, at: Path, value: Any) -> bytes:
    """The frame with another value at this place."""
    header, arrays = _split(raw)
    inside: Any = header
    for key in at[:-1]:
        inside = inside[key]
    inside[at[-1]] = value
    head = msgspec.msgpack.encode(header)
    return struct.pack("<I", len(head)) + head + arrays


def _split(raw: bytes) -> tuple[dict[str, Any], bytes]:
    (length,) = struct.unpack("<I", raw[:4])
    return msgspec.msgpack.decode(raw[4 : 4 + length]), raw[4 + length :]
