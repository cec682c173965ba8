"""Every number of every struct that a file holds has its bounds, and beyond them it is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from explorer.trace.card import Capability, ModelCard
from explorer.trace.chat import ChatTurn
from explorer.trace.files import dxt
from explorer.trace.files.saved_extras import SavedExtras, Sibling
from explorer.trace.files.saved_view import SavedView
from explorer.trace.interventions.kinds import Cells, OtherRun, Patch, Scale, Silence
from explorer.trace.step import RankShare
from explorer.trace.trace import Trace
from explorer.trace.wire.bounds import bound_of, require_bounded
from tests.trace import leaves
from tests.trace.batches import result, row
from tests.trace.runs import edited, made_trace

HUGE = (2**31, 2**53 + 1, 10**400, -1, 1e308)


def whole() -> tuple[Trace, SavedExtras]:
    """A session in which no optional number is missing."""
    made = made_trace(2)
    able = Capability(name="cache", offered=True, words="Keeps keys.", measured=1e-6)
    card = msgspec.structs.replace(
        made.card, pad_id=0, missing_bytes=(3,), layer_kinds=("full",),
        capabilities=(*made.card.capabilities, able),
    )  # fmt: skip
    steps = tuple(
        replace(step, norm_ms=0.5, left_out=((0, 1),), ranks=(RankShare(8, 2.5, 0.5),))
        for step in made.steps
    )
    changes = (
        Silence(layer=1, head=2),
        Cells(layer=0, head=1, queries=(1, 2), keys=(0, 1), back=(1, 2)),
        Scale(layer=0, head=1, factor=2.0),
        Patch(layer=1, head=1, positions=(1, 1), first=1, source=OtherRun(tokens=(3, 4))),
    )
    request = msgspec.structs.replace(made.request, interventions=changes, input_ids=(3, 4))
    turns = (ChatTurn(role="user", first_slot=0, last_slot=1, message=0, text=(0, 1)),)
    trace = replace(made, card=card, steps=steps, request=request, turns=turns)
    longer = trace.appended(replace(steps[-1], index=2), trace.chosen[-1])
    seen = SavedView(
        step=1, layer=1, head=2, query=3, key=2, zoom=1.5, choices={"attention": {"zoom": 1.5}}
    )
    beside = SavedExtras(
        (Sibling("A", trace), Sibling("B", longer.truncated(1))), 0, result(row(2), row(4)), seen
    )
    return trace, beside


@pytest.fixture
def full(tmp_path: Path) -> Path:
    trace, beside = whole()
    path = tmp_path / "full.dxt"
    dxt.save(trace, path, beside)
    return path


def body_of(path: Path) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    edited(path, lambda head, body: found.append(body))
    return found[0]


def test_the_sample_holds_every_number_that_is_defined(full: Path) -> None:
    held = {field for field, _ in leaves.numbers(body_of(full))}
    assert leaves.defined() - held == set()
    assert len(held) > 70
    dxt.load_whole(full)


def test_a_number_beyond_its_bounds_is_refused_wherever_it_is(full: Path) -> None:
    whole_file = full.read_bytes()
    sound = body_of(full)
    first = dict(reversed(list(leaves.numbers(sound))))
    accepted = []
    for (kind, name), at in first.items():
        integer = isinstance(_at(sound, at), int)
        for value in HUGE:
            if bound_of(kind, name, value if integer else float(min(value, 1e308))).holds(value):
                continue
            full.write_bytes(whole_file)
            edited(full, lambda head, body, at=at, value=value: leaves.put(body, at, value))
            said = refusal(full)
            if not 0 < len(said) < 300 or "\n" in said:
                accepted.append((kind.__name__, name, value, said))
    assert accepted == []


def refusal(path: Path) -> str:
    """What is said against a file; empty if it opens."""
    try:
        dxt.load_whole(path)
    except dxt.DxtError as error:
        return str(error)
    return ""


def _at(body: Any, at: leaves.Path) -> Any:
    for key in at:
        body = body[key]
    return body


@pytest.mark.parametrize(
    ("at", "value", "words"),
    [
        (("batch", "request", "extra"), 2**63 - 1, "extra is 9,223,372,036,854,775,807"),
        (("batch", "request", "steps"), 2**53 + 1, "steps is 9,007,199,254,740,993"),
        (("batch", "request", "extra"), 5, "more padding"),
        (("request", "capture_every"), 0, "capture_every is 0, not a number from 1 to 2,147"),
        (("request", "pad"), 2 * 10**9, "pad is 2,000,000,000"),
        (("request", "pad"), 1000, "more padding"),
        (("steps", 0, "header", "draw", "probability"), 1e308, "probability"),
        (("card", "fingerprint", "config"), 10**400, "damaged"),
    ],
)
def test_what_is_refused_is_named(full: Path, at: leaves.Path, value: Any, words: str) -> None:
    edited(full, lambda head, body: leaves.put(body, at, value))
    with pytest.raises(dxt.DxtError, match=words) as refused:
        dxt.load_whole(full)
    assert str(refused.value).endswith(dxt.AFTER_DAMAGE)


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_only_what_a_measurement_can_give_may_be_no_number(full: Path, number: str) -> None:
    whole_file = full.read_bytes()
    open_to_it = set()
    for (kind, name), at in dict(leaves.numbers(body_of(full))).items():
        if at[0] not in leaves.LATER:
            continue
        full.write_bytes(whole_file)
        edited(full, lambda head, body, at=at: leaves.put(body, at, {"not finite": number}))
        if refusal(full):
            continue
        open_to_it.add((kind, name))
    assert {name for _, name in open_to_it} == {
        "measured", "tolerance", "nats", "unshifted_nats", "alone_nats",
    }  # fmt: skip


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_are_refused(tmp_path: Path, number: float) -> None:
    made = made_trace(2)
    logits = made.steps[1].logits.copy()
    logits[3] = number
    odd = replace(made, steps=(made.steps[0], replace(made.steps[1], logits=logits)))
    dxt.save(odd, tmp_path / "odd.dxt")
    with pytest.raises(dxt.DxtError, match="no numbers"):
        dxt.load(tmp_path / "odd.dxt")


def test_a_new_field_is_bounded_without_being_named() -> None:
    class New(msgspec.Struct):
        count: int = 0
        sizes: tuple[int, ...] = ()
        ms: float = 0.0
        card: ModelCard | None = None

    require_bounded(New(5, (1, 2), 1.5))
    for odd in (New(2**31), New(sizes=(1, -1, 2)), New(ms=float("nan")), New(ms=-1.0)):
        with pytest.raises(ValueError, match=r"count|sizes|ms"):
            require_bounded([odd])
