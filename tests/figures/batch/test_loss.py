"""The loss of a padded batch, with and without mistakes."""

from __future__ import annotations

import math

import pytest

from explorer.figures.batch import loss as figures
from explorer.figures.batch.token_grid import Cell, GridBlock
from tests.trace.batches import result, row

BATCH = result(row(2), row(4))  # 1 + 3 real targets of 2 nats; 2 padded ones of 9


def line(block: GridBlock, name: str) -> tuple[Cell | None, ...]:
    return next(one.cells for one in block.lines if one.name == name)


def texts(block: GridBlock, name: str) -> list[str]:
    return ["" if cell is None else cell.text for cell in line(block, name)]


def test_the_mean_counts_real_targets_only() -> None:
    assert figures.mean(BATCH) == figures.Mean(2.0, 4)
    assert figures.mean(BATCH).bits == pytest.approx(2 / math.log(2))
    assert figures.mean_alone(BATCH) == figures.Mean(2.0, 4)


def test_on_the_left_the_first_token_is_not_predicted_from_padding() -> None:
    left = result(row(2, "left"), row(4, "left"))
    assert figures.mean(left) == figures.Mean(2.0, 4)


def test_the_mistakes_change_the_mean() -> None:
    assert figures.mean(BATCH, pads=True) == figures.Mean((4 * 2 + 2 * 9) / 6, 6)
    assert figures.mean(BATCH, shifted=False) == figures.Mean(0.5, 6)
    both = figures.mean(BATCH, pads=True, shifted=False)
    assert both == figures.Mean((6 * 0.5 + 2 * 7) / 8, 8)


def test_words_on_the_mean_and_on_the_mistakes() -> None:
    assert "2.0000 nats (2.8854 bits), averaged over 4 real targets" in figures.summary(BATCH)
    assert "as well" in figures.summary(BATCH)
    odd = result(row(2, alone_nats=(2.5,)), row(4))
    assert "(difference 0.12)" in figures.summary(odd)
    assert "4.333 nats over 6 targets instead of 2.000 over 4" in figures.effect_words(
        BATCH, "pads"
    )
    assert "0.500 nats over 6 targets" in figures.effect_words(BATCH, "shift")
    assert "no change" in figures.effect_words(result(row(4)), "pads")
    assert "There is no loss" in figures.summary(result(row(1)))
    assert "Not measured" in figures.effect_words(result(row(1)), "pads")


def test_inputs_stand_above_the_targets_they_predict() -> None:
    block = figures.blocks(BATCH, 50)[0]
    assert texts(block, "input") == ["␣w0", "␣w1", "pad"]
    assert texts(block, "target") == ["␣w1", "pad", "pad"]
    assert texts(block, "nats") == ["2.00", "", ""]
    assert texts(block, "bits") == ["2.89", "", ""]
    assert texts(block, "rank") == ["1", "", ""]
    level = line(block, "nats")[0]
    assert level is not None
    assert level.level == pytest.approx(2 / math.log(50))
    assert "Most likely tokens:" in level.tip
    assert "mean 2.000 nats over 1 target" in block.title


def test_counting_pads_and_not_shifting_show_in_the_grid() -> None:
    padded = figures.blocks(BATCH, 50, pads=True)[0]
    assert texts(padded, "nats") == ["2.00", "9.00", "9.00"]
    assert [cell.framed for cell in line(padded, "nats") if cell] == [False, True, True]
    copied = figures.blocks(BATCH, 50, shifted=False)[0]
    assert texts(copied, "input") == texts(copied, "target") == ["␣w0", "␣w1", "pad", "pad"]
    assert texts(copied, "nats") == ["0.50", "0.50", "", ""]
    assert copied.mood == "bad"


def test_a_surprisal_that_is_no_number_is_said_not_coloured() -> None:
    odd = row(2, unshifted_nats=(math.nan,) * 4)
    block = figures.blocks(result(odd), 50, shifted=False)[0]
    assert [cell.level for cell in line(block, "nats") if cell] == [None, None]
    assert "Not measured" in figures.effect_words(result(odd), "shift")


def test_the_table_holds_real_predictions_beside_the_row_alone() -> None:
    rows = list(figures.table(BATCH))
    assert len(rows) == 1 + 4
    assert rows[1] == (1, 0, "␣w0", "␣w1", 2.0, 2.0 / math.log(2), 1, 2.0)


def test_loss_by_position_is_at_the_slot_of_each_target_that_counts() -> None:
    short, long = figures.by_position(BATCH)
    assert (short.slots, short.nats) == ((1,), (2.0,))
    assert (long.slots, long.nats) == ((1, 2, 3), (2.0, 2.0, 2.0))
    padded, _ = figures.by_position(BATCH, pads=True)
    assert padded.nats == (2.0, 9.0, 9.0)
    unshifted, _ = figures.by_position(BATCH, shifted=False)
    assert unshifted.slots[0] == 0


def test_the_mean_by_position_is_over_the_rows_that_have_a_target_there() -> None:
    rows = (figures.RowLoss((1, 2), (1.0, 5.0)), figures.RowLoss((2, 3), (3.0, 7.0)))
    assert figures.mean_by_position(rows) == figures.RowLoss((1, 2, 3), (1.0, 4.0, 7.0))
    assert figures.mean_by_position(()) == figures.RowLoss((), ())
