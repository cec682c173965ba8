"""A model's own settings: read by type, and missed aloud where a run leaves them out."""

from __future__ import annotations

import pytest

from explorer.sampling import left_out, model_defaults
from explorer.trace.request import Sampling

GREEDY = Sampling()
WARM = Sampling(greedy=False, temperature=0.6, top_p=0.9)


def test_a_penalty_by_itself_goes_with_the_best_token() -> None:
    assert model_defaults({"repetition_penalty": 1.05}) == {
        "repetition_penalty": 1.05, "greedy": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "sampling"),
    [
        ({}, GREEDY),
        ({}, WARM),
        ({"do_sample": False}, WARM),
        ({"do_sample": False, "temperature": 0.3}, GREEDY),
        ({"temperature": 0.6, "top_p": 0.9}, GREEDY),  # as generate() reads it
        ({"temperature": 0.6, "top_p": 0.9}, WARM),  # as it is applied here
        ({"do_sample": True, "temperature": 0.6, "top_p": 0.9}, WARM),
        ({"repetition_penalty": 1.05}, Sampling(repetition_penalty=1.05)),
        ({"repetition_penalty": 1.0}, GREEDY),
    ],
)
def test_what_is_as_the_model_wants_it_needs_no_word(
    given: dict[str, object], sampling: Sampling
) -> None:
    assert left_out(given, sampling) == ""


def test_what_is_left_out_is_named() -> None:
    words = left_out({"repetition_penalty": 1.05}, GREEDY)
    assert words.startswith(
        "The model's recommended settings (greedy, repetition-penalty 1.05) are not"
    )
    words = left_out({"do_sample": True, "temperature": 0.6, "top_k": 20}, GREEDY)
    assert "(sampled, temperature 0.6, top-k 20)" in words
    assert "trace --model-defaults" in words  # the one command that has it; check says this too


def test_what_this_program_lacks_is_named_too() -> None:
    words = left_out({"no_repeat_ngram_size": 3}, GREEDY)
    assert "no_repeat_ngram_size, which this program does not support" in words
