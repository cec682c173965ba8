"""Tokens of two runs are matched by id or by text, and no token is lost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.figures.comparing.alignment import Piece, aligned, first_difference
from explorer.trace.step import Token


def tokens(*words: str) -> tuple[Token, ...]:
    return tuple(Token(sum(word.encode()), word.encode()) for word in words)


def sides(pieces: Sequence[Piece]) -> tuple[list[int], list[int]]:
    return [s for one in pieces for s in one.left], [s for one in pieces for s in one.right]


def test_the_same_tokens_are_pieces_of_one_token() -> None:
    read = tokens("The", " cat", " sat")
    found = aligned(read, read, by_id=True)
    assert found == tuple(Piece(t.text, (i,), (i,)) for i, t in enumerate(read))
    assert first_difference(found) is None


def test_other_splits_of_the_same_text_meet_where_both_end_a_token() -> None:
    left = tokens("The", " cap", "ital", " of", " France")
    right = tokens("The", " capital", " o", "f", " Fr", "ance")
    assert aligned(left, right, by_id=False) == (
        Piece("The", (0,), (0,)),
        Piece(" capital", (1, 2), (1,)),
        Piece(" of", (3,), (2, 3)),
        Piece(" France", (4,), (4, 5)),
    )


def test_a_template_around_a_prompt_is_on_its_side_alone() -> None:
    raw = tokens("Name", " a", " colour")
    chat = tokens("<user>", "Name", " a", " colour", "<end>", "\n")
    found = aligned(raw, chat, by_id=True)
    assert found[0] == Piece("<user>", (), (0,))
    assert [one.left for one in found if one.left] == [(0,), (1,), (2,)]
    assert [one.right for one in found if one.left] == [(1,), (2,), (3,)]
    assert first_difference(found) == 0


def test_what_differs_is_told_of_both_sides() -> None:
    found = aligned(tokens("a", " red", " b"), tokens("a", " blue", " b"), by_id=True)
    assert found[1:3] == (Piece(" red", (1,), ()), Piece(" blue", (), (1,)))
    assert first_difference(found) == 1


def test_padding_is_left_out_and_positions_stay_slots() -> None:
    padded = (Token(0, b"<pad>", "padding"), *tokens("a", "b"))
    assert aligned(padded, tokens("a", "b"), by_id=True) == (
        Piece("a", (1,), (0,)), Piece("b", (2,), (1,)),
    )  # fmt: skip


@pytest.mark.parametrize("by_id", [True, False])
@given(
    st.lists(st.sampled_from(["a", "b", "ab", "", "é", "🙂"]), max_size=12),
    st.lists(st.sampled_from(["a", "b", "ab", "", "é", "🙂"]), max_size=12),
)
def test_every_token_is_in_one_piece_in_order(
    by_id: bool, left: list[str], right: list[str]
) -> None:
    found = aligned(tokens(*left), tokens(*right), by_id)
    assert sides(found) == (list(range(len(left))), list(range(len(right))))
    for one in found:
        if one.left and one.right:
            assert "".join(left[i] for i in one.left) == "".join(right[i] for i in one.right)


def test_long_texts_are_matched_up_to_the_first_difference() -> None:
    left, right = tokens(*"a" * 3000, "x", *"b" * 3000), tokens(*"a" * 3000, "y", *"b" * 3000)
    found = aligned(left, right, by_id=True)
    assert first_difference(found) == 3000
    assert sides(found) == (list(range(6001)), list(range(6001)))
