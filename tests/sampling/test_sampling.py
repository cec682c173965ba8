"""The sampling chain against transformers' own processors, and its edges."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from explorer import sampling
from explorer.sampling import SamplingError
from explorer.trace.request import Sampling


def drawn(**settings: float) -> Sampling:
    return Sampling(greedy=False, **settings)  # type: ignore[arg-type]


def transformers_chain(logits: np.ndarray, settings: Sampling) -> np.ndarray:
    scores = torch.tensor(logits, dtype=torch.float64)[None]
    scores = TemperatureLogitsWarper(settings.temperature)(None, scores)
    if settings.top_k:
        scores = TopKLogitsWarper(settings.top_k)(None, scores)
    if settings.top_p < 1:
        scores = TopPLogitsWarper(settings.top_p)(None, scores)
    return torch.softmax(scores, -1)[0].numpy()


@pytest.mark.parametrize("seed", range(40))
def test_chain_equals_transformers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits = (rng.standard_normal(500) * rng.uniform(0.5, 6)).astype(np.float32)
    settings = drawn(
        temperature=float(rng.uniform(0.1, 2)),
        top_k=int(rng.integers(0, 60)),
        top_p=float(rng.uniform(0.05, 1)),
    )
    ours = sampling.distribution(logits, settings).final
    theirs = transformers_chain(logits, settings)
    assert ((ours > 0) == (theirs > 0)).all()
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_top_p_keeps_the_smallest_set_that_reaches_p() -> None:
    logits = np.log([0.5, 0.3, 0.15, 0.05])
    final = sampling.distribution(logits, drawn(top_p=0.79)).final
    np.testing.assert_allclose(final, [0.625, 0.375, 0, 0], atol=1e-12)
    final = sampling.distribution(logits, drawn(top_p=0.81)).final
    assert np.count_nonzero(final) == 3


def test_top_p_zero_keeps_one_token_and_one_keeps_all() -> None:
    logits = np.array([1.0, 3.0, 2.0])
    np.testing.assert_array_equal(sampling.distribution(logits, drawn(top_p=0)).final, [0, 1, 0])
    assert np.count_nonzero(sampling.distribution(logits, drawn(top_p=1)).final) == 3


def test_top_k_off_beyond_vocabulary_and_with_ties() -> None:
    logits = np.array([2.0, 2.0, 1.0, 2.0])
    assert np.count_nonzero(sampling.distribution(logits, drawn(top_k=0)).final) == 4
    assert np.count_nonzero(sampling.distribution(logits, drawn(top_k=99)).final) == 4
    # the tie at the second place is kept whole, as transformers does
    assert np.count_nonzero(sampling.distribution(logits, drawn(top_k=2)).final) == 3


def test_temperature_zero_is_greedy_and_divides_by_nothing() -> None:
    draw = sampling.pick(np.array([1.0, 5.0, 5.0]), drawn(temperature=0), 0)
    assert (draw.token_id, draw.how, draw.probability, draw.u) == (1, "greedy", 1.0, None)


def test_tiny_temperature_and_huge_logits_stay_finite() -> None:
    final = sampling.distribution(np.array([1e4, -1e4, 9.9e3]), drawn(temperature=1e-6)).final
    assert np.isfinite(final).all()
    assert final[0] == pytest.approx(1)


def test_minus_infinity_is_probability_zero() -> None:
    dist = sampling.distribution(np.array([0.0, -np.inf, 0.0]), drawn())
    np.testing.assert_allclose(dist.final, [0.5, 0, 0.5])
    assert sampling.entropy_bits(dist.raw) == pytest.approx(1)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_broken_logits_are_reported(bad: float) -> None:
    with pytest.raises(SamplingError, match="NaN or infinite"):
        sampling.pick(np.array([0.0, bad]), drawn(), 0)


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": -1},
        {"temperature": float("nan")},
        {"top_k": -1},
        {"top_p": 1.5},
        {"seed": -1},
    ],
)
def test_settings_out_of_range_are_one_sentence(settings: dict[str, float]) -> None:
    with pytest.raises(SamplingError, match=r"must"):
        sampling.distribution(np.zeros(3), drawn(**settings))


def test_same_seed_and_step_draw_the_same_token_whatever_came_before() -> None:
    logits = np.random.default_rng(1).standard_normal(200)
    first = [sampling.pick(logits, drawn(seed=7), step) for step in range(20)]
    again = [sampling.pick(logits, drawn(seed=7), step) for step in reversed(range(20))]
    assert first == again[::-1]
    other = [sampling.pick(logits, drawn(seed=8), step) for step in range(20)]
    assert [d.u for d in first] != [d.u for d in other]


def test_draws_follow_the_distribution() -> None:
    logits = np.log([0.6, 0.3, 0.1])
    ids = [sampling.pick(logits, drawn(seed=3), step).token_id for step in range(3000)]
    share = np.bincount(ids, minlength=3) / 3000
    np.testing.assert_allclose(share, [0.6, 0.3, 0.1], atol=0.03)


def test_cut_tokens_are_never_drawn() -> None:
    logits = np.log([0.4, 0.35, 0.25])
    ids = {sampling.pick(logits, drawn(top_k=2), step).token_id for step in range(500)}
    assert ids == {0, 1}


def test_rank_counts_ties_by_id() -> None:
    logits = np.array([1.0, 3.0, 3.0, 0.0])
    ranks = [sampling.force(logits, Sampling(), i).rank for i in range(4)]
    assert ranks == [2, 0, 1, 3]


def test_forcing_an_unknown_id_names_the_range() -> None:
    with pytest.raises(SamplingError, match="0 to 2"):
        sampling.force(np.zeros(3), Sampling(), 3)


def test_ranking_of_floats_equals_a_stable_sort() -> None:
    rng = np.random.default_rng(0)
    values = np.round(rng.standard_normal(5000) * 3, 1).astype(np.float32)  # many ties
    values[:5] = [0.0, -0.0, -np.inf, np.float32(1e-45), 3e38]
    expected = np.argsort(-values.astype(np.float64), kind="stable")
    np.testing.assert_array_equal(sampling.ranking(values), expected)
    for count in (1, 2, 7, len(values) - 1, len(values), len(values) + 3):
        np.testing.assert_array_equal(sampling.leading(values, count), expected[:count])
