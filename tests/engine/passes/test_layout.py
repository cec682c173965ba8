"""Wherever the padding is: positions count real tokens, and the readout is the last of them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.engine.passes.context.dropped_turns import oldest_turns
from explorer.engine.passes.layout import Layout, lay_out, lay_out_batch
from explorer.engine.text.asked_prompt import without_oldest
from explorer.trace.chat import ChatTurn, Message
from explorer.trace.request import RunRequest, Side

IDS = st.lists(st.integers(0, 2**31 - 1), max_size=12)
PROMPT = IDS.filter(bool)
SIDES = st.sampled_from(("left", "right"))
PADS = st.integers(0, 12)
PAD_ID = 2**31 - 7


def require_sound(layout: Layout, real: list[int]) -> None:
    """Its real tokens are these, in order; positions and readout by the definition."""
    slots = range(len(layout.ids))
    assert len(layout.attention_mask) == len(layout.position_ids) == len(layout.ids)
    assert set(layout.attention_mask) <= {0, 1}
    seen = itertools.accumulate(layout.attention_mask)
    expected = [count - 1 for count in seen]
    for slot, mask, position in zip(slots, layout.attention_mask, layout.position_ids, strict=True):
        assert position == (expected[slot] if mask else 0)
    kept = [slot for slot in slots if layout.attention_mask[slot]]
    assert [layout.ids[slot] for slot in kept] == real
    assert layout.readout == kept[-1]
    assert layout.position_ids[layout.readout] == len(real) - 1
    assert layout.padded == (len(kept) < len(layout.ids))


@given(PROMPT, IDS, SIDES | st.none(), PADS)
def test_one_sequence(prompt: list[int], chosen: list[int], side: Side | None, pad: int) -> None:
    layout = lay_out(prompt, chosen, RunRequest(padding=side, pad=pad), PAD_ID)
    require_sound(layout, prompt + chosen)
    pads = pad if side else 0
    assert len(layout.ids) == pads + len(prompt) + len(chosen)
    before = 0 if side == "left" else len(prompt)
    assert layout.attention_mask[before : before + pads] == (0,) * pads
    assert layout.ids[before : before + pads] == (PAD_ID,) * pads


@given(PROMPT, IDS, SIDES, PADS, st.sampled_from([0, 7]))
def test_a_sequence_that_grew_is_the_one_laid_out_at_once(
    prompt: list[int], chosen: list[int], side: Side, pad: int, moved: int
) -> None:
    request = RunRequest(padding=side, pad=pad, position_offset=moved)
    grown = lay_out(prompt, (), request, PAD_ID)
    for token_id in chosen:
        grown = grown.grown(token_id)
    whole = lay_out(prompt, chosen, request, PAD_ID)
    assert grown == whole
    for slots in range(len(whole.ids) + 1):
        first = whole.first(slots)
        assert first.ids == whole.ids[:slots]
        assert first.attention_mask == whole.attention_mask[:slots]
        assert first.position_ids == whole.position_ids[:slots]
        assert (first.offset, first.places) == (whole.offset, ())


@given(st.lists(PROMPT, min_size=1, max_size=5), SIDES, PADS, st.data())
def test_a_batch_and_each_of_its_rows(
    prompts: list[list[int]], side: Side, extra: int, data: st.DataObject
) -> None:
    batch = lay_out_batch(prompts, side, extra, PAD_ID)
    real = [list(prompt) for prompt in prompts]
    assert batch.slots == max(map(len, prompts)) + extra
    for chosen in data.draw(st.lists(st.tuples(*[st.integers(0, 9) | st.none()] * len(prompts)))):
        batch = batch.grown(chosen)
        for row, token_id in zip(real, chosen, strict=True):
            row.extend(() if token_id is None else (token_id,))
    assert {len(row.ids) for row in batch.rows} == {batch.slots}
    for row, ids in zip(batch.rows, real, strict=True):
        require_sound(row, ids)
    assert batch.readouts == tuple(row.readout for row in batch.rows)


@pytest.mark.parametrize(
    ("roles", "spans"),
    [
        ("suauau", ((1, 3), (3, 5))),
        ("uau", ((0, 2),)),
        ("auau", ((0, 1), (1, 3))),
        ("suasuau", ((1, 3),)),  # the next turn stands behind another system message
        ("susau", ()),
        ("su", ()),
    ],
)
def test_a_run_leaves_out_what_the_prompt_would(
    roles: str, spans: tuple[tuple[int, int], ...]
) -> None:
    named = {"s": "system", "u": "user", "a": "assistant"}
    messages = [Message(named[one], "text") for one in roles]  # one slot each
    turns = [
        ChatTurn(role=one.role, first_slot=i, last_slot=i, message=i)
        for i, one in enumerate(messages)
    ]
    assert oldest_turns(messages, turns) == spans
    kept = list(range(len(messages)))
    for number in range(1, len(spans) + 1):
        kept = without_oldest(messages, kept)
        assert kept == [i for i in range(len(roles)) if not spans[0][0] <= i < spans[number - 1][1]]
