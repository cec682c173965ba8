"""Whatever the logits and the settings: a distribution, transformers' own cut, a draw inside it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from explorer import sampling
from explorer.trace.request import ORDER, Sampling
from tests.sampling.transformers_chain import require_equal

MOST_TOKENS = 24
PREVIOUS = st.lists(st.integers(0, 3) | st.integers(0, MOST_TOKENS - 1), max_size=8)
FINITE = st.floats(-(2.0**100), 2.0**100, width=32)
EQUAL = st.sampled_from((-1.0, 0.0, 1.0))
# Steps of an eighth, so that many are equal and none is nearly so.
COARSE = st.integers(-64, 64).map(lambda eighths: eighths / 8)


def vectors(one: st.SearchStrategy[float]) -> st.SearchStrategy[np.ndarray]:
    """(V,) float32 logits, of which the first is a number; others may be impossible."""
    rest = st.lists(one | st.just(-np.inf), max_size=MOST_TOKENS - 1)
    return st.builds(lambda first, more: np.array([first, *more], np.float32), one, rest)


def settings(
    temperature: st.SearchStrategy[float], penalty: st.SearchStrategy[float]
) -> st.SearchStrategy[Sampling]:
    """Each link on or off, in any order."""
    share = st.floats(0, 1)
    return st.builds(
        Sampling,
        greedy=st.booleans(),
        temperature=st.just(1.0) | temperature,
        top_k=st.integers(0, MOST_TOKENS + 2),
        top_p=st.just(1.0) | share,
        min_p=st.just(0.0) | share,
        repetition_penalty=st.just(1.0) | penalty,
        order=st.permutations(ORDER).map(tuple),
        seed=st.integers(0, 2**63 - 1),
    )


ANY = settings(st.floats(0, 1e300), st.floats(1e-3, 1e3))
USUAL = settings(st.floats(0.05, 20), st.floats(0.1, 10))


def penalised(logits: np.ndarray, factor: float, previous: list[int]) -> list[float]:
    """The logits after the repetition penalty, one by one."""
    return [
        (x * factor if x < 0 else x / factor) if token_id in previous else x
        for token_id, x in enumerate(logits.tolist())
    ]


@given(vectors(FINITE) | vectors(EQUAL), ANY, PREVIOUS)
def test_every_stage_is_a_distribution_in_order_of_logit_then_id(
    logits: np.ndarray, chosen: Sampling, previous: list[int]
) -> None:
    values = logits.tolist()
    for stage in sampling.stages(logits, chosen, previous):
        if stage.name == "penalty":
            values = penalised(logits, chosen.repetition_penalty, previous)
        assert np.isclose(stage.p.sum(), 1)
        assert (stage.p >= 0).all()
        assert 0 < stage.mass_kept <= 1 + 1e-9
        in_order = sorted(stage.ids.tolist(), key=lambda token_id: (-values[token_id], token_id))
        assert stage.ids.tolist() == in_order


@given(vectors(FINITE), ANY, PREVIOUS)
def test_what_is_left_adds_up_and_the_rest_is_impossible(
    logits: np.ndarray, chosen: Sampling, previous: list[int]
) -> None:
    dist = sampling.distribution(logits, chosen, previous)
    assert np.isclose(dist.raw.sum(), 1)
    assert np.isclose(dist.final.sum(), 1)
    np.testing.assert_array_equal(dist.final[dist.ids], dist.p)
    assert np.count_nonzero(dist.final) == np.count_nonzero(dist.p)
    assert sorted(dist.order.tolist()) == list(range(len(logits)))


@given(vectors(COARSE), USUAL.filter(lambda chosen: not chosen.takes_best), PREVIOUS)
def test_the_tokens_kept_are_those_of_transformers(
    logits: np.ndarray, chosen: Sampling, previous: list[int]
) -> None:
    inside = [token_id for token_id in previous if token_id < len(logits)]
    # The penalty comes first: after a cut through equal tokens it would tell them apart.
    cuts = tuple(link for link in chosen.order if link != "penalty")
    drawn = Sampling(**{**_fields(chosen), "order": ("penalty", *cuts)})
    require_equal(logits, drawn, inside)


def _fields(chosen: Sampling) -> dict[str, object]:
    return {name: getattr(chosen, name) for name in chosen.__struct_fields__}


@given(vectors(FINITE), ANY, st.integers(0, 1000), PREVIOUS)
def test_the_token_picked_is_one_that_was_kept(
    logits: np.ndarray, chosen: Sampling, step: int, previous: list[int]
) -> None:
    draw = sampling.pick(logits, chosen, step, previous)
    dist = sampling.distribution(logits, chosen, previous)
    assert draw.token_id in dist.ids.tolist()
    assert draw.probability == dist.final[draw.token_id] > 0
    assert np.isclose(draw.raw_probability, dist.raw[draw.token_id])
    assert (draw.u is None) == chosen.takes_best
    if chosen.takes_best:
        assert draw.token_id == dist.ids[0]


@given(vectors(FINITE), ANY, st.floats(0, 1, exclude_max=True) | st.just(1 - 2**-53))
def test_every_number_lands_on_a_token_that_can_be_drawn(
    logits: np.ndarray, chosen: Sampling, u: float
) -> None:
    p = sampling.distribution(logits, chosen).p
    place = sampling.landing(p, u)
    assert p[place] > 0
    assert p[:place].sum() <= u + 1e-9
    assert p[: place + 1].sum() >= u - 1e-9
