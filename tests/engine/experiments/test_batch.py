"""A padded batch against the model called by hand: right, wrong on purpose, decoded, scored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from explorer.engine.errors import BadInput, Cancelled, EngineError
from explorer.engine.experiments import batch
from explorer.trace.batch import BatchRequest
from explorer.trace.request import Side
from tests.engine.experiments.batches import (
    KINDS,
    LENGTHS,
    PROMPTS,
    SIDES,
    alone,
    ended,
    greedy,
    ids_of,
    probability,
    run,
    runner_of,
)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", KINDS)
def test_each_row_equals_itself_alone_in_prefill_and_decode(kind: str, side: Side) -> None:
    runner = runner_of(kind)
    result = run(runner, padding=side, extra=8, steps=6)
    assert result.slots == max(LENGTHS) + 8
    for row, prompt in zip(result.rows, PROMPTS, strict=True):
        assert (row.verdict, row.immune) == ("right", False)
        assert len(row.step_diffs) == 6
        assert row.max_abs_diff_vs_alone == max(row.step_diffs) < 1e-4
        expected = greedy(runner, ids_of(prompt), 6)
        assert [t.id for t in row.generated] == expected
        assert [t.id for t in row.generated_alone] == expected
        logits = alone(runner, ids_of(prompt))[-1]
        best = int(logits.argmax())
        for top in (row.alone, row.at_last_real.top):
            assert top[0].token.id == best
            assert top[0].probability == pytest.approx(probability(logits, best), abs=1e-5)
    apart = side == "right" and not runner.loaded.card.offers("right_padding")
    assert bool(result.decoded_apart) is apart


def test_an_architecture_that_counts_slots_decodes_its_rows_apart() -> None:
    assert not runner_of("gemma3_text").loaded.card.offers("right_padding")
    assert (
        "continued alone" in run(runner_of("gemma3_text"), padding="right", steps=2).decoded_apart
    )
    assert run(runner_of("gemma3_text"), padding="right", steps=1).decoded_apart == ""


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", ["mamba", "minimax", "moshi"])
def test_a_cache_of_another_kind_is_not_trusted_with_a_batch(kind: str, side: Side) -> None:
    """Recurrent states take padding in, and caches that the config does not fit keep too little."""
    runner = runner_of(kind)
    assert runner.loaded.card.layer_kinds == ()  # the card does not warn of it
    result = run(runner, PROMPTS[:2], padding=side, steps=3)
    for row, prompt in zip(result.rows, PROMPTS, strict=False):
        assert row.verdict == "right"
        assert [token.id for token in row.generated] == greedy(runner, ids_of(prompt), 3)


@pytest.mark.parametrize("kind", KINDS)
def test_right_padding_read_at_the_last_slot(kind: str) -> None:
    """Wrong for every row that ends earlier, right for the longest, in figures."""
    result = run(runner_of(kind), padding="right", wrong=("readout",))
    for row, length in zip(result.rows, LENGTHS, strict=True):
        assert row.readout == max(LENGTHS) - 1
        assert row.last_real == length - 1
        assert row.at_last_real.max_abs_diff < 1e-4
        if length == max(LENGTHS):
            assert (row.verdict, row.immune) == ("right", True)
            assert row.at_last_slot.max_abs_diff < 1e-4
        else:
            assert (row.verdict, row.immune) == ("wrong readout", False)
            assert row.max_abs_diff_vs_alone == row.at_last_slot.max_abs_diff > 0.1
            assert row.effects["readout"] == row.max_abs_diff_vs_alone


def test_left_padding_is_read_at_the_last_slot_anyway() -> None:
    result = run(runner_of("llama"), padding="left", wrong=("readout",))
    assert all(row.immune and row.readout == row.last_real for row in result.rows)


def test_no_position_ids_on_the_left_breaks_learned_positions_by_what_the_usual_loop_gives() -> (
    None
):
    runner = runner_of("gpt2")
    result = run(runner, padding="left", wrong=("positions",))
    width = max(LENGTHS)
    for row, prompt in zip(result.rows, PROMPTS, strict=True):
        ids = ids_of(prompt)
        assert row.position_ids == tuple(range(width))
        pads = width - len(ids)
        fed = torch.tensor([[0] * pads + ids])
        mask = torch.tensor([[0] * pads + [1] * len(ids)])
        with torch.inference_mode():
            usual = runner.model(input_ids=fed, attention_mask=mask).logits[0, -1].numpy()
        expected = np.abs(usual - alone(runner, ids)[-1]).max()
        assert row.max_abs_diff_vs_alone == pytest.approx(expected, abs=1e-4)
        assert row.verdict == ("wrong positions" if pads else "right")
        assert (row.max_abs_diff_vs_alone > 0.1) is bool(pads)


@pytest.mark.parametrize("kind", ["llama", "bloom", "opt", "gemma3_text"])
def test_relative_or_own_positions_are_immune_and_it_is_said(kind: str) -> None:
    result = run(runner_of(kind), padding="left", wrong=("positions",), steps=3)
    assert all(row.verdict == "right" and row.immune for row in result.rows)


@pytest.mark.parametrize("kind", KINDS)
def test_no_mask_lets_rows_read_the_padding_on_their_left(kind: str) -> None:
    rows = run(runner_of(kind), padding="left", wrong=("mask",)).rows
    for row, length in zip(rows, LENGTHS, strict=True):
        assert row.attention_mask == (1,) * max(LENGTHS)
        assert row.verdict == ("right" if length == max(LENGTHS) else "wrong mask")
        assert (row.max_abs_diff_vs_alone > 1e-3) is (length < max(LENGTHS))


def test_no_mask_on_the_right_shows_only_once_the_batch_goes_on() -> None:
    runner = runner_of("llama")
    assert all(row.immune for row in run(runner, padding="right", wrong=("mask",)).rows)
    later = run(runner, padding="right", wrong=("mask",), steps=2).rows
    assert [row.verdict for row in later].count("wrong mask") == len(LENGTHS) - 1


def test_of_two_mistakes_the_one_that_breaks_the_row_is_named() -> None:
    rows = run(runner_of("gpt2"), padding="right", wrong=("positions", "readout")).rows
    assert [row.verdict for row in rows].count("wrong readout") == len(LENGTHS) - 1


def test_the_masks_positions_and_padding_of_a_row() -> None:
    result = run(runner_of("llama"), ("5 6", "7 8 9"), padding="right", extra=1)
    row = result.rows[0]
    assert [t.id for t in row.tokens] == [5, 6, 0, 0]
    assert [t.origin for t in row.tokens] == ["prompt", "prompt", "padding", "padding"]
    assert row.attention_mask == row.real == (1, 1, 0, 0)
    assert row.position_ids == (0, 1, 0, 0)
    assert (row.readout, row.at_last_slot.slot) == (1, 3)


def test_an_end_token_in_the_prompt_stays_attended_where_padding_is_the_end_token() -> None:
    runner = ended(runner_of("llama"), 0, pad_id=0)
    for side in SIDES:
        result = run(runner, ("5 0 6", "0 0 7 8 9 5", "4 0"), padding=side, steps=3)
        assert result.pad.id == 0
        assert [sum(row.attention_mask) for row in result.rows] == [3, 6, 2]
        assert all(row.max_abs_diff_vs_alone < 1e-4 for row in result.rows)


def test_a_row_that_ended_waits_while_the_others_go_on() -> None:
    plain = run(runner_of("llama"), steps=6)
    end = plain.rows[0].generated[1].id
    runner = ended(runner_of("llama"), end)
    for side in SIDES:
        rows = run(runner, padding=side, steps=6).rows
        for row, before in zip(rows, plain.rows, strict=True):
            ids = [t.id for t in before.generated]
            whole = ids[: ids.index(end) + 1] if end in ids else ids
            assert [t.id for t in row.generated] == whole
        assert len(rows[0].generated) <= 2


@pytest.mark.parametrize(
    ("eos", "pad", "words"), [((7,), 7, "end token is used"), ((), 0, "id 0 is used")]
)
def test_without_a_padding_token_the_lab_says_what_it_used(
    eos: tuple[int, ...], pad: int, words: str
) -> None:
    runner = ended(runner_of("llama"), *eos, pad_id=None, capabilities=())
    result = run(runner, padding="left")
    assert (result.pad.id, result.pad.origin) == (pad, "padding")
    assert words in result.pad_note
    assert all(row.verdict == "right" for row in result.rows)


@pytest.mark.parametrize(
    ("prompts", "more", "words"),
    [
        (("5 6", "", "7"), {}, "Prompt 2 has no tokens"),
        ((), {}, "1 to 16 prompts"),
        (("5",) * 17, {}, "there are 17"),
        (("5", "6"), {"steps": 0}, "at least 1 step"),
        (("5", "6 7"), {"extra": 70}, r"72 positions.*at most 64"),
    ],
)
def test_what_cannot_be_run_is_one_sentence(
    prompts: tuple[str, ...], more: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        run(runner_of("llama"), prompts, **more)


def test_one_prompt_alone_needs_no_padding_at_all() -> None:
    row = run(runner_of("llama"), ("5 6 7",), loss=True).rows[0]
    assert row.verdict == "right"
    assert row.attention_mask == (1, 1, 1)


def test_a_side_that_the_model_cannot_be_padded_on_is_refused_in_words() -> None:
    from explorer.trace.card import Capability

    found = Capability(name="left_padding", offered=False, words="left padding moves its logits")
    runner = ended(runner_of("llama"), capabilities=(found,))
    with pytest.raises(BadInput, match="Left padding moves its logits"):
        run(runner, padding="left")


def test_padding_that_moves_the_logits_is_refused_not_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """GPT-2 fed its padded rows with slot numbers although nothing wrong was asked for."""
    from explorer.engine.experiments.padded.batch_pass import BatchPass

    feed = BatchPass._arguments
    monkeypatch.setattr(
        BatchPass,
        "_arguments",
        lambda self, layout, wrong, *rest: feed(self, layout, {*wrong, "positions"}, *rest),
    )
    with pytest.raises(BadInput, match=r"with left padding.*right padding"):
        run(runner_of("gpt2"), padding="left")


def test_rows_that_are_not_a_number_are_an_error_not_a_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from explorer.engine.experiments.padded.batch_pass import BatchPass

    logits = BatchPass.logits
    monkeypatch.setattr(
        BatchPass, "logits", lambda self, *a, **k: logits(self, *a, **k) * np.float32("nan")
    )
    with pytest.raises(EngineError, match="NaN"):
        run(runner_of("llama"))


def test_cancel_ends_it_within_a_layer() -> None:
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 4

    with pytest.raises(Cancelled):
        batch.run(runner_of("llama"), BatchRequest(prompts=PROMPTS), lambda *_: None, stop)
    assert asked == 5
    assert not runner_of("llama").layers[0]._forward_pre_hooks


def test_progress_goes_up_to_the_end() -> None:
    told: list[float | None] = []
    request = BatchRequest(prompts=PROMPTS, steps=3, loss=True)
    batch.run(runner_of("gpt2"), request, lambda _, share: told.append(share), lambda: False)
    shares = [share for share in told if share is not None]
    assert shares == sorted(shares)
    assert len(shares) == len(told) > 8
    assert 0 <= shares[0] < shares[-1] <= 1
