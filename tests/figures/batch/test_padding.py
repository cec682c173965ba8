"""What the padded grid and its sentences say of a batch."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from explorer.figures.batch import padding as figures
from explorer.figures.batch.token_grid import Cell, GridBlock
from explorer.trace.batch import BatchRequest, BatchResult, BatchRow, Reading
from tests.trace.batches import RIGHT, WRONG, result, row


def line(block: GridBlock, name: str) -> tuple[Cell | None, ...]:
    return next(one.cells for one in block.lines if one.name == name)


def texts(block: GridBlock, name: str) -> list[str]:
    return ["" if cell is None else cell.text for cell in line(block, name)]


def left(*lengths: int) -> BatchResult:
    rows = tuple(row(length, "left") for length in lengths)
    asked = BatchRequest(prompts=("p",) * len(lengths), padding="left")
    return result(*rows, request=asked)


def mistaken(*rows: BatchRow, wrong: Any, **more: Any) -> BatchResult:
    asked = BatchRequest(prompts=("p",) * len(rows), padding="right", wrong=wrong)
    return result(*rows, request=asked, **more)


def test_the_grid_of_a_right_padded_row() -> None:
    block = figures.blocks(result(row(2), row(4)))[0]
    assert texts(block, "tokens") == ["␣w0", "␣w1", "pad", "pad"]
    assert texts(block, "mask") == ["1", "1", "0", "0"]
    assert texts(block, "position") == ["0", "1", "0", "0"]
    assert texts(block, "read") == ["", "▲ here", "", "▲ [:, -1]"]
    framed = [cell is not None and cell.framed for cell in line(block, "tokens")]
    assert framed == [False, True, False, False]
    assert block.mood == "good"
    assert [chart.mood for chart in block.charts] == ["plain", "good", "bad"]
    assert "Δ 12" in block.charts[2].title
    assert [share.label for share in block.charts[2].shares] == ["↵", "␣Paris"]


def test_where_both_ways_of_reading_agree_one_mark_says_so() -> None:
    longest = figures.blocks(result(row(2), row(4)))[1]
    assert texts(longest, "read") == ["", "", "", "▲ here = [:, -1]"]
    assert texts(figures.blocks(left(2, 4))[0], "read")[3] == "▲ here = [:, -1]"


def test_mask_and_positions_that_are_wrong_stand_out() -> None:
    odd = row(
        2, "left", attention_mask=(1,) * 4, position_ids=(0, 1, 2, 3), verdict="wrong mask",
        max_abs_diff_vs_alone=3.5,
    )  # fmt: skip
    block = figures.blocks(mistaken(odd, wrong=("mask", "positions")))[0]
    moods = [cell.mood for cell in line(block, "mask") if cell]
    assert moods == ["bad", "bad", "plain", "plain"]
    assert [cell.mood for cell in line(block, "position") if cell][2:] == ["bad", "bad"]
    assert "should be 1" in line(block, "position")[3].tip  # type: ignore[union-attr]
    assert block.mood == "bad"
    assert "wrong mask" in block.title
    assert "3.5" in block.title


def test_the_finding_on_the_right_names_the_cause_and_the_answers() -> None:
    words = figures.finding(result(row(2), row(4)))
    assert "1 of 2 rows ends in padding" in words
    assert "reads a padding position: " in words
    assert (
        "prompt 1 answers '\u2068↵\u2069' (50.0 %) instead of '\u2068␣Paris\u2069' (75.0 %)"
        in words
    )
    assert "very row matches its prompt run alone (max |Δ logit| 1e-05)" in words


def test_the_finding_where_the_first_choice_stays() -> None:
    same = Reading(slot=3, top=RIGHT, max_abs_diff=2.0)
    words = figures.finding(result(row(2, at_last_slot=same), row(4)))
    assert "are off by 2, but its top token is still" in words


def test_the_finding_on_the_left_and_without_padding() -> None:
    assert "reads the right position" in figures.finding(left(2, 4))
    assert "no padding" in figures.finding(result(row(4), row(4)))


def test_the_finding_with_mistakes() -> None:
    broken = row(
        2, readout=3, verdict="wrong readout", max_abs_diff_vs_alone=12.5,
        at_last_slot=Reading(slot=3, top=WRONG, max_abs_diff=12.5),
    )  # fmt: skip
    words = figures.finding(mistaken(broken, row(4, immune=True), wrong=("readout",)))
    assert words.startswith("Deliberate mistake: read the last position")
    assert "1 of 2 rows differ from their prompts run alone, by up to 12.5" in words
    assert "↵" in words
    immune = figures.finding(mistaken(row(2, immune=True), wrong=("positions",)))
    assert "It has no effect here" in immune
    late = row(2, verdict="wrong mask", max_abs_diff_vs_alone=4.0, step_diffs=(1e-5, 4.0))
    assert "with the second token" in figures.finding(mistaken(late, wrong=("mask",)))


def test_an_immune_row_says_that_the_mistake_does_not_show() -> None:
    block = figures.blocks(mistaken(row(4, immune=True), wrong=("mask",)))[0]
    assert "the mistake has no effect" in block.title
    assert block.mood == "good"


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ("readout", "1 of 2 rows change, by up to 12.5"),
        ("positions", "no row changes (at most 1e-05)"),
        ("mask", "2 of 2 rows change, by up to 3.25"),
    ],
)
def test_the_effect_of_each_mistake_is_the_measured_one(mistake: Any, words: str) -> None:
    assert words in figures.effect_words(result(row(2), row(4)), mistake)


def test_an_effect_that_comes_with_decoding_is_said() -> None:
    late = row(2, verdict="wrong positions", max_abs_diff_vs_alone=4.0)
    shown = mistaken(late, wrong=("positions",))
    assert "after the first token" in figures.effect_words(shown, "positions")
    assert "after the first" not in figures.effect_words(result(row(2)), "positions")


def test_how_the_batch_goes_on_beside_the_row_alone() -> None:
    ids = tuple(one.token for one in RIGHT)
    same = figures.blocks(result(row(4, generated=ids, generated_alone=ids)))[0]
    assert [name for name, _ in same.notes] == ["continues"]
    other = figures.blocks(result(row(4, generated=ids, generated_alone=ids[::-1])))[0]
    assert dict(other.notes) == {"continues": "␣Paris ␣Rome", "alone": "␣Rome ␣Paris"}
    assert figures.blocks(result(row(4)))[0].notes == ()


def test_the_table_has_a_line_a_slot() -> None:
    rows = list(figures.table(result(row(2), row(4))))
    assert len(rows) == 1 + 2 * 4
    assert rows[2] == (1, 1, 11, "␣w1", 1, 1, 1, True)
    assert rows[3][:7] == (1, 2, 0, "<|end|>", 0, 0, 0)


def test_the_padding_token_is_named_with_its_source() -> None:
    words = figures.padding_words(msgspec.structs.replace(result(row(2)), pad_note="EOS serves."))
    assert words == "Padding token: <|end|> (id 0). EOS serves."


def test_the_example_in_the_finding_is_a_row_whose_answer_changes() -> None:
    same = Reading(slot=3, top=RIGHT, max_abs_diff=99.0)
    words = figures.finding(result(row(1, at_last_slot=same), row(2), row(4)))
    assert "prompt 2 answers" in words
