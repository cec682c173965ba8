"""What an engine answers to an experiment is a result only if its parts fit together."""

from __future__ import annotations

from typing import Any

import pytest

from explorer.trace.experiments import (
    CacheComparison,
    CacheExperiment,
    FoundSequence,
    UnfitAnswer,
    read_result,
)
from tests.session.answers import ANSWERS

CACHE = ANSWERS[CacheExperiment]
NO_STEPS = {"positions": [], "ms": []}


def test_a_comparison_of_one_token_is_read() -> None:
    assert read_result(CACHE, CacheComparison).tokens == 1


@pytest.mark.parametrize(
    "spoilt",
    [
        {"tokens": 0, "ids": [], "cached": NO_STEPS, "uncached": NO_STEPS},
        {"ids": []},
        {"ids": [5, 6]},
        {"cached": NO_STEPS},
        {"tokens": 2},
    ],
)
def test_a_comparison_has_one_entry_a_step_and_a_step(spoilt: dict[str, Any]) -> None:
    with pytest.raises(UnfitAnswer):
        read_result({**CACHE, **spoilt}, CacheComparison)


@pytest.mark.parametrize("raw", [[b" a"], [b" a", b" b", b" c"]])
def test_a_sequence_has_the_bytes_of_each_token(raw: list[bytes]) -> None:
    with pytest.raises(ValueError, match="one entry a token"):
        FoundSequence(ids=(1, 2), raw=tuple(raw), log_probability=-1.0, probability=0.3)
