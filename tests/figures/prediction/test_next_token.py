"""The next-token chart: exact shares, the chosen token always in sight, three digits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from explorer.figures.prediction import next_token
from explorer.figures.prediction.next_token import settings_words
from explorer.sampling import SamplingError, distribution
from explorer.trace.request import Sampling
from explorer.trace.trace import Trace
from tests.session.scripted import PROMPT, card, stepped

DRAWN = Sampling(greedy=False, temperature=0.7, top_k=5, seed=3)


def trace(steps: int = 1) -> Trace:
    from explorer.trace.request import RunRequest

    made = Trace(request=RunRequest(model="tiny"), card=card(), prompt=PROMPT)
    for index in range(steps):
        event = stepped(0, index)
        made = made.appended(event.step, event.token)
    return made


def test_bars_are_by_descending_logit_and_everything_adds_up() -> None:
    figure = next_token.chart(trace(), 0, DRAWN, 8)
    raw = [bar.raw for bar in figure.bars if not bar.chosen]
    assert raw == sorted(raw, reverse=True)
    assert sum(bar.raw for bar in figure.bars) + figure.rest_raw == pytest.approx(1)
    assert sum(bar.final for bar in figure.bars) + figure.rest_final == pytest.approx(1)
    assert len(figure.bars) + figure.rest_count == card().vocab_size


def test_shares_are_those_of_the_sampling_chain() -> None:
    made = trace()
    figure = next_token.chart(made, 0, DRAWN, 8)
    expected = distribution(made.steps[0].logits, DRAWN)
    for bar in figure.bars:
        assert bar.raw == expected.raw[bar.token_id]
        assert bar.final == expected.final[bar.token_id]
    assert figure.kept == 5
    assert [bar.kept for bar in figure.bars[:6]].count(True) == 5


def test_the_most_probable_token_alone_is_left_where_nothing_is_drawn() -> None:
    greedy = next_token.chart(trace(), 0, Sampling(), 4)
    dist = distribution(trace().steps[0].logits, Sampling())
    wanted = set(dist.order[:3].tolist())
    assert wanted <= {bar.token_id for bar in greedy.bars}
    for bar in greedy.bars:
        assert bar.raw == pytest.approx(dist.raw[bar.token_id])
        assert bar.final == dist.final[bar.token_id]
    assert (greedy.kept, greedy.rest_final) == (1, 0)


def test_the_chosen_token_has_a_row_even_if_it_is_the_least_probable() -> None:
    made = trace()
    worst = int(np.argmin(made.steps[0].logits))
    token = replace_id(made, worst)
    figure = next_token.chart(token, 0, Sampling(), 3)
    assert len(figure.bars) == 3
    assert [bar.token_id for bar in figure.bars if bar.chosen] == [worst]


def replace_id(made: Trace, token_id: int) -> Trace:
    from explorer.trace.step import Token

    return replace(made, chosen=(Token(token_id, b"odd", "forced"),))


def test_two_ids_spelled_alike_stay_two_bars() -> None:
    made = trace()
    step = made.steps[0]
    from explorer.trace.step import Token

    best = [int(i) for i in np.argsort(-step.logits)[:2]]
    twins = tuple(Token(i, b" same") for i in best)
    made = replace(made, steps=(replace(step, top=twins),))
    figure = next_token.chart(made, 0, Sampling(), 6)
    assert [bar.token_id for bar in figure.bars[:2]] == best
    assert [bar.token and bar.token.raw for bar in figure.bars[:2]] == [b" same", b" same"]


def test_a_token_whose_bytes_are_not_known_is_not_guessed() -> None:
    made = trace()
    made = replace(made, steps=(replace(made.steps[0], top=()),))
    figure = next_token.chart(made, 0, Sampling(), 6)
    assert {bar.token is None for bar in figure.bars if not bar.chosen} == {True}


def test_other_settings_than_those_it_was_picked_with_are_told() -> None:
    assert next_token.chart(trace(), 0, Sampling(), 5).same_settings
    assert not next_token.chart(trace(), 0, DRAWN, 5).same_settings


def test_broken_logits_are_a_sentence() -> None:
    made = trace()
    bad = made.steps[0].logits.copy()
    bad[3] = np.nan
    made = replace(made, steps=(replace(made.steps[0], logits=bad),))
    with pytest.raises(SamplingError, match="NaN"):
        next_token.chart(made, 0, Sampling(), 5)


def test_settings_in_words() -> None:
    assert settings_words(Sampling(temperature=0, greedy=False)).startswith("greedy")
    words = settings_words(Sampling(greedy=False, temperature=0.7, top_k=40, top_p=0.9, seed=5))
    assert words == "temperature 0.7, top-k 40, top-p 0.9, seed 5"


@pytest.mark.parametrize(
    ("sampling", "kept", "beyond_k", "tied_out"),
    [
        (Sampling(greedy=False, top_k=3), 5, 2, 0),
        (Sampling(greedy=False, top_k=5), 5, 0, 0),
        (Sampling(greedy=False, top_p=0.55), 3, 0, 2),
        (Sampling(greedy=False, top_p=0.3), 1, 0, 0),
        (Sampling(greedy=False), 40, 0, 0),
        (Sampling(top_k=3, top_p=0.5), 1, 0, 0),
    ],
)
def test_ties_are_counted(sampling: Sampling, kept: int, beyond_k: int, tied_out: int) -> None:
    """One token of 0.4, four of 0.1 each, and the rest."""
    made = trace()
    shares = np.array([0.4, *[0.1] * 4, *[0.2 / 35] * 35])
    step = replace(made.steps[0], logits=np.log(shares).astype(np.float32))
    figure = next_token.chart(replace(made, steps=(step,)), 0, sampling, 4)
    assert (figure.kept, figure.beyond_k, figure.tied_out) == (kept, beyond_k, tied_out)
