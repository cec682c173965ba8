"""Figures of the sampling chain and of branches."""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from explorer.figures.prediction import branches as tree
from explorer.figures.prediction import sampling as figures
from explorer.sampling import distribution, pick
from explorer.trace.request import ORDER, Sampling
from explorer.trace.step import Token
from explorer.trace.trace import Trace
from tests.figures.runs import Run

LN_2 = math.log(2)

DRAWN = Sampling(greedy=False, temperature=0.8, top_k=6, repetition_penalty=1.4, seed=5)


@pytest.fixture
def trace() -> Trace:
    run = Run()
    return run.decode(run.prefill(4), 3)


def test_the_number_drawn_lands_on_the_token_that_the_run_would_pick(trace: Trace) -> None:
    for index in range(4):
        chain = figures.chain(trace, index, DRAWN)
        draw = pick(trace.steps[index].logits, DRAWN, index, trace.context_ids(index))
        assert (chain.picked, chain.u) == (draw.token_id, draw.u)
        assert chain.preview
    greedy = figures.chain(trace, 0, Sampling())
    assert (greedy.u, greedy.landed, greedy.preview) == (None, None, False)
    assert greedy.picked == int(np.argmax(trace.steps[0].logits))


def test_a_curve_is_thinned_out_but_keeps_its_ends_and_its_sums() -> None:
    p = np.sort(np.random.default_rng(0).random(50_000))[::-1]
    p /= p.sum()
    curve = figures.curve(p)
    assert len(curve.rank) <= figures.POINTS
    assert (curve.rank[0], curve.rank[-1]) == (1, 50_000)
    assert curve.cumulative[-1] == pytest.approx(1)
    np.testing.assert_allclose(curve.cumulative, [p[:r].sum() for r in curve.rank])
    one = figures.curve(np.ones(1))
    assert (one.rank.tolist(), one.p.tolist()) == ([1], [1.0])


def test_standings_and_listing_agree_with_the_chain(trace: Trace) -> None:
    chain = figures.chain(trace, 1, DRAWN)
    listing = figures.listing(chain)
    dist = distribution(trace.steps[1].logits, DRAWN, trace.context_ids(1))
    np.testing.assert_array_equal(listing.final, dist.final)
    np.testing.assert_array_equal(listing.raw, dist.raw)
    for token_id in range(16):
        places = figures.standings(chain.stages, token_id)
        assert places[0].rank == listing.rank[token_id]
        assert places[-1].p == pytest.approx(dist.final[token_id])
        assert (places[-1].rank is None) == (dist.final[token_id] == 0)
    with pytest.raises(IndexError):
        figures.standings(chain.stages, 16)


def test_moving_a_link() -> None:
    assert figures.moved(ORDER, "top_p", -1) == (
        "penalty",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
    )
    assert figures.moved(ORDER, "penalty", -1) == ORDER
    assert figures.moved(ORDER, "min_p", 1) == ORDER
    assert figures.is_default(figures.moved(figures.moved(ORDER, "top_k", 1), "top_k", -1))


def test_orders_are_only_told_apart_where_they_differ(trace: Trace) -> None:
    def orders(**settings: float) -> figures.Orders | None:
        sampling = Sampling(greedy=False, **settings)  # type: ignore[arg-type]
        return figures.orders(trace, 0, figures.chain(trace, 0, sampling))

    assert figures.orders(trace, 0, figures.chain(trace, 0, Sampling())) is None
    assert orders(top_p=0.5) is None
    same = orders(temperature=0.5, top_p=0.0)
    assert same is not None
    assert not same.differ
    other = orders(temperature=0.3, top_p=0.7)
    assert other is not None
    assert other.differ


def with_ids(trace: Trace, *ids: int) -> Trace:
    """The same steps, other tokens chosen with probability 1/2, 1/4, …"""
    steps = tuple(
        replace(s, draw=msgspec.structs.replace(s.draw, raw_probability=0.5 ** (i + 1)))
        for i, s in enumerate(trace.steps[: len(ids)])
    )
    return replace(trace, steps=steps, chosen=tuple(Token(i, b"t") for i in ids))


def test_two_branches_are_aligned_at_their_fork(trace: Trace) -> None:
    pair = tree.pair(with_ids(trace, 1, 2, 3, 4), with_ids(trace, 1, 7))
    assert pair.shared == 1
    assert [c.nats / LN_2 for c in pair.first] == pytest.approx([2, 3, 4])
    nats = [sum(cost.nats for cost in side) for side in (pair.first, pair.second)]
    assert nats == pytest.approx([9 * LN_2, 2 * LN_2])
    assert tree.nats(0) == math.inf


def test_rows_of_the_tree_hold_every_node_once(trace: Trace) -> None:
    runs = [(1, 2, 3, 4), (5, 6), (1, 2, 9), (1, 8), (1, 2, 9, 9)]
    rows = tree.rows([(n, with_ids(trace, *ids)) for n, ids in enumerate(runs)])
    nodes = {ids[: i + 1] for ids in runs for i in range(len(ids))}
    assert sum(len(row.tokens) for row in rows) == len(nodes)
    for row in rows:
        ids = runs[row.number]
        assert tuple(t.id for t in row.tokens) == ids[row.fork :]
        if row.parent is not None:
            assert runs[rows[row.parent].number][: row.fork] == ids[: row.fork]
