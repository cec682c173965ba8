"""A block's stages as they are drawn: boards, strips, pairs, products and experts."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from explorer.cli.commands.layer import walk_document
from explorer.figures.inside import block
from explorer.trace import attention
from explorer.trace.inside.walk import LayerStage, LayerWalk, Turn
from explorer.trace.request import RunRequest
from explorer.trace.trace import Trace
from explorer.ui.panels.block.words import score
from tests.figures.inside.walks import ANGLES, STAGES, made, walk
from tests.session.scripted import PROMPT, card, made_step


def stage(name: str) -> LayerStage:
    return next(one for one in walk().stages if one.name == name)


def run() -> Trace:
    request = RunRequest(prompt="hello")
    return Trace(request=request, card=card(), prompt=PROMPT, steps=(made_step(0),))


def test_the_table_has_the_figures_of_the_command() -> None:
    head, *rows = block.stage_table(walk())
    told = walk_document(walk())["stages"]
    assert [row[0] for row in rows] == list(STAGES) == [one["name"] for one in told]
    for row, one in zip(rows, told, strict=True):
        named = dict(zip(head, row, strict=True))
        assert named["norm"] == one["norm"]
        assert named["gap"] == ("" if one["gap"] is None else one["gap"])
        assert named["shape"] == "x".join(map(str, one["shape"]))
        assert (named["formula"], named["module"]) == (one["formula"], one["module"])


def test_a_vector_is_wrapped_and_a_head_has_a_row() -> None:
    found = block.grid(stage("residual stream"), 0, 2, wrap=3)
    assert found is not None
    assert (found.form, found.numbers.shape, found.top) == ("vector", (3, 3), 3.5)
    assert np.isnan(found.numbers[2, 2])
    heads = block.grid(stage("Q after RoPE"), 1, 2)
    assert heads is not None
    assert (heads.form, heads.row) == ("heads", 1)
    hidden = block.grid(made("mask", [[1, -np.inf]], first_key=4), 0, 1)
    assert hidden is not None
    assert (hidden.form, hidden.top) == ("keys", 1.0)
    state = block.grid(stage("state: kept"), 1, 2)
    assert state is not None
    assert (state.form, state.numbers.shape, state.head) == ("matrix", (3, 4), 1)
    assert block.grid(LayerStage(name="x", formula="", shape=(9,), norm=1.0), 0, 1) is None


def test_heads_that_share_a_key_share_its_row() -> None:
    assert [block.row_of_head(3, head, 9) for head in (0, 2, 3, 8)] == [0, 0, 1, 2]
    assert block.row_of_head(4, 0, 9) is None
    assert block.row_of_head(9, 9, 9) is None


def test_a_strip_keeps_what_is_farthest_from_zero() -> None:
    long = np.zeros(1000, np.float32)
    long[500], long[501], long[900] = 2.0, -5.0, 3.0
    short = block.strip(made("x", long), 0, 1, most=100)
    assert (short.min(), short.max(), len(short)) == (-5.0, 3.0, 100)
    np.testing.assert_array_equal(
        block.strip(stage("scores"), 1, 2), np.asarray(stage("scores").numbers)[1]
    )


def test_the_pairs_are_those_of_the_head_before_and_after() -> None:
    one, two = block.turned_pairs(walk(), stage("Q after RoPE"), 1, 2)
    for pair, angle in zip((one, two), ANGLES, strict=True):
        before, after = complex(*pair.before), complex(*pair.after)
        assert after == pytest.approx(before * np.exp(1j * angle), rel=1e-5)
        assert pair.angle == pytest.approx(angle)
        assert pair.frequency == pytest.approx(angle / 2)
    assert one.places == (0, 2)
    assert block.turned_pairs(walk(), stage("Q"), 1, 2) == []


def test_a_score_is_the_sum_of_its_products_times_the_scale() -> None:
    trace, record = run(), made_step(0).layers[1]
    assert record.keys is not None
    for head in (0, 1):
        terms = block.score_terms(trace, 0, 1, head, query=2, key=1)
        assert terms is not None
        own = attention.scores(record, record.keys, head, slice(2, 3))[0, 1]
        assert terms.score == pytest.approx(own, rel=1e-6)
        assert terms.products.sum() * 0.5 == pytest.approx(own, rel=1e-6)
        weight = attention.weights(record, record.keys, head, slice(2, 3))[0, 1]
        assert terms.weight == pytest.approx(weight)
        assert not terms.hidden
    later = block.score_terms(trace, 0, 1, 0, query=0, key=2)
    assert later is not None
    assert (later.hidden, later.weight) == (True, 0.0)
    assert block.score_terms(trace, 0, 1, 0, query=0, key=9) is None
    assert block.score_terms(trace, 0, 1, 7, query=0, key=0) is None
    rows = list(block.term_table(later))
    assert [row[0] for row in rows] == ["index", 0, 1, 2, 3, "sum", "score"]


def test_what_position_adds_to_a_score_is_named() -> None:
    step = made_step(0)
    bias = np.zeros((step.layers[1].heads, 3, 3), np.float32)
    bias[0, 2, 1] = 0.75
    biased = replace(step.layers[1], bias=bias)
    trace = replace(run(), steps=(replace(step, layers=(step.layers[0], biased)),))
    terms = block.score_terms(trace, 0, 1, 0, query=2, key=1)
    assert terms is not None
    assert biased.keys is not None
    whole = attention.scores(biased, biased.keys, 0, slice(2, 3))[0, 1]
    assert terms.score + terms.added == pytest.approx(whole, rel=1e-6)
    assert list(block.term_table(terms))[-1] == ("added", "", "", 0.75)
    assert "; 0.75 is added for the distance. Weight" in score(terms, "key", None)


def test_the_load_counts_the_tokens_of_each_expert() -> None:
    found = block.experts(walk())
    assert found is not None
    assert (found.ids, found.weights, found.tokens) == ((2, 0), (0.75, 0.25), 3)
    assert found.load.tolist() == [2, 1, 3]
    assert found.router is not None
    none = msgspec.structs.replace(walk(), experts=())
    assert block.experts(none) is None


def test_the_numbers_of_a_stage_are_a_table() -> None:
    rows = list(block.number_table(stage("scores")))
    assert rows[0] == ("key", 0, 1, 2)
    assert rows[2][1:] == tuple(np.asarray(stage("scores").numbers)[1].tolist())
    assert list(block.number_table(stage("router")))[1:] == [(0, 0.25), (1, -1.0), (2, 2.0)]


def test_a_walk_that_is_damaged_is_refused() -> None:
    told = msgspec.to_builtins(walk(), builtin_types=(bytes,))
    assert msgspec.convert(told, LayerWalk) == walk()
    turn = told["stages"][3]["turn"]
    for wrong in ({"start": 1}, {"frequencies": b"\0" * 4}, {"angles": b""}):
        broken = {**told, "stages": [{**told["stages"][3], "turn": {**turn, **wrong}}]}
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(broken, LayerWalk)
    assert msgspec.convert(turn, Turn).pairs == 2
