"""What tokens are coloured by: known for what was generated, asked for of the prompt."""

from __future__ import annotations

import math

import pytest

from explorer.figures.prediction import surprisal as figures
from explorer.trace.experiments import PromptScores
from tests.trace.runs import PROMPT, made_trace

SCORES = PromptScores(
    slots=(2, 3),
    nats=(math.log(2), math.inf),
    entropy_bits=(1.0, 3.0),
    ranks=(0, 11),
    top=(((4, 0.5), (5, 0.25)), ()),
    passes=1,
)


def test_generated_tokens_are_known_from_their_steps_and_the_prompt_from_its_scores() -> None:
    trace = made_trace(3)
    known = figures.foreseen(trace, SCORES)
    assert len(known) == len(trace.tokens)
    assert known[:2] == (None, None)  # padding, and the first token
    assert known[2] is not None
    assert (known[2].nats, known[2].top) == (math.log(2), ((4, 0.5), (5, 0.25)))
    for step, one in zip(trace.steps, known[len(PROMPT) :], strict=True):
        assert one is not None
        assert one.probability == pytest.approx(step.draw.raw_probability)
        assert (one.rank, one.entropy_bits) == (step.draw.rank, step.draw.entropy_bits)
    assert figures.foreseen(trace, None)[: len(PROMPT)] == (None,) * len(PROMPT)


def test_levels_reach_the_top_at_a_blind_guess() -> None:
    known = figures.foreseen(made_trace(0), SCORES)
    assert figures.levels(known, "surprisal", 4) == (None, None, pytest.approx(0.5), 1.0)
    assert figures.levels(known, "entropy", 4) == (None, None, pytest.approx(0.5), 1.0)
    assert figures.levels(known, "probability", 4) == (None, None, pytest.approx(0.5), 0.0)


def test_the_ends_of_the_scale() -> None:
    assert figures.scale("surprisal", 1024) == ("0", "6.9 nats")
    assert figures.scale("entropy", 1024) == ("0", "6.9 nats")
    assert figures.scale("probability", 1024)[1] == "100 %"
