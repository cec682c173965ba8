"""The residual stream: its parts, their figures by layer, and the colours of a board."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.inside import stream
from explorer.figures.inside.stream import STREAM, Colours, StreamColumns
from tests.figures.inside.streams import found
from tests.session.saving.test_trace_files import made_trace


def test_every_layer_has_its_parts_and_those_it_lacks_have_no_figure() -> None:
    known = StreamColumns().with_result(found([0, 1]), ())
    assert list(known.parts) == [("attention", 0), ("mlp", 0), ("mlp", 1)]
    column = known.columns[1]
    assert known.by_layer(column, STREAM, "norm").tolist() == [2, 20, 200]
    attention = known.by_layer(column, ("attention", 0), "norm")
    np.testing.assert_array_equal(attention, [4, np.nan])
    np.testing.assert_allclose(known.by_layer(column, ("mlp", 0), "cosine"), [0.2, 0.9])
    np.testing.assert_allclose(known.by_layer(column, ("mlp", 1), "cosine"), [np.nan, -0.5])


def test_tokens_that_were_read_one_by_one_are_one_board() -> None:
    trace = made_trace()
    known = StreamColumns().with_result(found([0]), ()).with_result(found([2]), ())
    first, none, third = known.true_of(trace, 0)[:3]
    assert first is not None
    assert none is None
    assert third is not None
    assert (first.norms[2], third.norms[2]) == (100, 300)
    assert known.gap == pytest.approx(2e-7)


def test_norms_have_a_logarithmic_scale_and_cosines_their_own() -> None:
    known = StreamColumns().with_result(found([0, 9]), ())
    figures = [known.by_layer(one, STREAM, "norm") for one in known.columns.values()]
    colours = stream.colours_of(figures, "norm")
    assert (colours.low, colours.high) == (1, 1000)
    assert [colours.level(value) for value in (1, 10, 1000, 5000, 0)] == pytest.approx(
        [0, 1 / 3, 1, 1, 0]
    )
    assert stream.colours_of(figures, "cosine").level(-0.5) == -0.5
    assert Colours("norm", 3, 3).level(3) == 1  # one figure alone


def test_the_table_has_the_stream_and_every_write_of_a_token() -> None:
    known = StreamColumns().with_result(found([2]), ())
    rows = list(stream.table(known, [(1, None), (2, known.columns[2])]))
    assert rows[1] == (2, "embedding", "stream", "", 3.0, -0.25)
    assert rows[-1] == (2, 1, "mlp", "mlp.shared", 12.0, -0.5)
    assert len(rows) == 1 + 3 + 4
