"""Every number of every frame of an engine has its bounds, and beyond them it is refused."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from explorer.trace.step import Token
from explorer.trace.wire import framing
from explorer.trace.wire import messages as m
from explorer.trace.wire.packing import StepHeader
from tests.trace import frames, leaves

# What a measurement or an experiment may give though something went wrong.
FOUND = {"measured", "tolerance", "max_logit_difference", "nats", "unshifted_nats", "alone_nats"}
FREE = {"facts", "generation_defaults", "fingerprint"}  # by name, whatever is in them
SETTINGS = {"temperature", "repetition_penalty"}  # as large as a user likes
VALUES = (float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 2**64 - 1, -(2**63), -1)


def name_of(at: frames.Path) -> str:
    """The field that a number belongs to: where it is in a list or a dict says nothing."""
    free = [part for part in at if part in FREE]
    return str(free[0] if free else [part for part in at if isinstance(part, str)][-1])


def hostile() -> Iterator[tuple[str, object, bytes]]:
    """Field, value and frame of every number of every kind of frame set to every odd value."""
    for event in frames.events():
        raw = frames.frame(event)
        for at in frames.numbers(raw):
            for value in VALUES:
                yield f"{type(event).__name__} {name_of(at)}", value, frames.changed(raw, at, value)


def read(raw: bytes) -> m.Event | None:
    return framing.read_event(io.BytesIO(raw))


def test_every_frame_is_sound_as_it_is() -> None:
    for event in frames.events():
        assert type(read(frames.frame(event))) is type(event)


def test_the_samples_hold_every_kind_of_frame_and_every_number() -> None:
    made = {type(event): frames.frame(event) for event in frames.events()}
    assert set(m.Event.__subclasses__()) - {m.Lost} == made.keys()
    for kind, raw in made.items():
        if kind is m.Spelled:  # arrays alone
            continue
        structs = (StepHeader, Token) if kind is m.Stepped else (kind,)
        defined = {name for _, name in leaves.defined(*structs)} - {"run"}
        held = {part for at in frames.numbers(raw) for part in at}
        assert defined - held == set(), kind


def test_a_number_beyond_its_bounds_is_refused_wherever_it_is() -> None:
    taken: dict[object, set[str]] = {value: set() for value in map(str, VALUES)}
    count = 0
    for field, value, raw in hostile():
        count += 1
        try:
            read(raw)
        except framing.WireError:
            continue
        taken[str(value)].add(field.split()[1])
    assert count > 1000
    assert taken["1e+308"] == taken["-1e+308"] == set()
    assert taken["nan"] | taken["inf"] | taken["-inf"] <= FOUND | FREE
    assert taken[str(2**64 - 1)] | taken[str(-(2**63))] <= FOUND | FREE | SETTINGS
    # A mask of -1 is none, and a share a little below 0 is 0.
    assert taken["-1"] <= FOUND | FREE | {"mask", "scaling", "fraction"}


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_are_refused(odd: float) -> None:
    (event,) = (e for e in frames.events() if isinstance(e, m.Stepped))
    logits = np.full_like(event.step.logits, odd)
    bad = msgspec.structs.replace(event, step=replace(event.step, logits=logits))
    with pytest.raises(framing.WireError, match="no numbers"):
        read(frames.frame(bad))


def test_a_batch_whose_rows_do_not_fit_is_refused() -> None:
    (event,) = (e for e in frames.events() if isinstance(e, m.Batched))
    first = msgspec.structs.replace(event.result.rows[0], alone=())
    odd = msgspec.structs.replace(event.result, rows=(first, *event.result.rows[1:]))
    with pytest.raises(framing.WireError, match="row 1 of the batch"):
        read(frames.frame(m.Batched(result=odd)))
