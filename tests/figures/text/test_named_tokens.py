"""A token meant by its number or its text, spelled as it is or as it is shown."""

from __future__ import annotations

import pytest

from explorer.figures.text.named_tokens import beginning, named
from explorer.trace.step import Token
from explorer.trace.vocabulary import Vocabulary

SPELLED = (b"a", b" a", b"2", b"\n", b" ab", b"a", "\u00e9".encode())
NAMES = Vocabulary.of([Token(i, raw) for i, raw in enumerate(SPELLED)])


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("a", [0, 5, 1]),
        ("\u2423a", [1]),
        ("2", [2]),
        ("#1", [1]),
        ("1", [1]),
        ("\u21b5", [3]),
        ("\u00e9", [6]),
        ("99", []),
        ("\ud800", []),
        ("\u00b2", []),
    ],
)
def test_by_number_by_text_and_with_a_space_before_it(text: str, ids: list[int]) -> None:
    assert named(text, len(NAMES), NAMES) == ids


def test_without_a_vocabulary_only_known_tokens_have_a_text() -> None:
    assert named("a", 100, None, {7: Token(7, b" a"), 3: Token(3, b"a")}) == [3, 7]
    assert named("55", 100, None) == [55]


def test_what_is_named_comes_before_what_begins_with_it() -> None:
    assert beginning("a", NAMES, 9) == [0, 5, 1, 4]
    assert beginning("a", NAMES, 2) == [0, 5]
    assert beginning("", NAMES, 9) == []
