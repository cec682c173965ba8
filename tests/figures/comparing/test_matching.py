"""Slots, layers and heads of one run find their counterparts in another one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.figures.comparing.matching import Hand, by_depth, matched
from explorer.trace.request import RunRequest
from explorer.trace.step import Token
from explorer.trace.trace import Trace
from tests.figures.runs import card


def run(*words: str, generated: int = 0) -> Trace:
    tokens = tuple(Token(sum(word.encode()), word.encode()) for word in words)
    prompt, chosen = tokens[: len(tokens) - generated], tokens[len(tokens) - generated :]
    return Trace(request=RunRequest(), card=card(1, 1, 1, 1), prompt=prompt, chosen=chosen)


def test_a_token_finds_its_text_where_the_other_tokenizer_ends_it() -> None:
    left = run("The", " cap", "ital", " of", " France")
    right = run("The", " capital", " o", "f", " Fr", "ance")
    found = matched(left, right, by_id=False)
    # " cap" + "ital" is " capital", " of" is " o" + "f": the last token of a piece has read it all.
    assert [found.other(slot, "left") for slot in range(5)] == [0, 1, 1, 3, 5]
    assert [found.other(slot, "right") for slot in range(6)] == [0, 2, 3, 3, 4, 4]
    assert found.first_difference is None


def test_what_one_side_lacks_has_no_counterpart() -> None:
    found = matched(run("a", " red", " b"), run("a", " blue", " b"), by_id=True)
    assert [found.other(slot, "left") for slot in range(3)] == [0, None, 2]
    assert found.first_difference == (1, 1)
    longer = matched(run("a", "b"), run("a", "b", "c"), by_id=True)
    assert longer.first_difference == (None, 2)


def test_a_long_rest_is_not_searched() -> None:
    left, right = run("a", "b", *"xyz"), run("a", "c", *"xyz")
    whole = matched(left, right, by_id=True, most=16)
    assert whole.other(3, "left") == 3
    short = matched(left, right, by_id=True, most=15)
    assert [short.other(slot, "left") for slot in range(5)] == [0, None, None, None, None]
    assert short.first_difference == whole.first_difference == (1, 1)


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_counterparts_of_one_vocabulary_are_the_same_token_and_mutual(
    left: list[str], right: list[str]
) -> None:
    a, b = run(*left), run(*right)
    found = matched(a, b, by_id=True)
    hands: tuple[tuple[Hand, Trace, Trace], ...] = (("left", a, b), ("right", b, a))
    for hand, here, there in hands:
        back: Hand = "right" if hand == "left" else "left"
        for slot, token in enumerate(here.tokens):
            other = found.other(slot, hand)
            if other is not None:
                assert there.tokens[other].id == token.id
                assert found.other(other, back) == slot


@pytest.mark.parametrize(("count", "other"), [(2, 30), (30, 2), (6, 30), (1, 5), (5, 1), (7, 7)])
def test_depth_goes_from_first_to_first_and_from_last_to_last(count: int, other: int) -> None:
    places = [by_depth(place, count, other) for place in range(count)]
    assert places == sorted(places)
    assert places[0] == 0
    assert places[-1] == (other - 1 if count > 1 else 0)
    assert set(places) <= set(range(other))
