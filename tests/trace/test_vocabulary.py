"""The vocabulary as arrays: every byte back, equal spellings told apart, odd frames refused."""

from __future__ import annotations

import io

import numpy as np
import pytest

from explorer.trace.step import Token
from explorer.trace.vocabulary import Vocabulary
from explorer.trace.wire import framing, messages

TOKENS = (
    Token(0, b"a"), Token(1, b""), Token(2, b"\xf0\x9f"), Token(3, b"<|end|>", special=True),
    Token(4, b"a"), Token(5, b" a"),
)  # fmt: skip


def test_every_token_comes_back_over_the_wire() -> None:
    stream = io.BytesIO()
    framing.write_event(stream, messages.Spelled(run=7, vocabulary=Vocabulary.of(TOKENS)))
    stream.seek(0)
    event = framing.read_event(stream)
    assert isinstance(event, messages.Spelled)
    assert event.run == 7
    assert len(event.vocabulary) == 6
    assert tuple(event.vocabulary.token(i, "prompt") for i in range(6)) == TOKENS
    assert framing.read_event(stream) is None


def test_two_ids_of_one_spelling_are_both_found() -> None:
    vocabulary = Vocabulary.of(TOKENS)
    assert vocabulary.spelled(b"a") == (0, 4)
    assert vocabulary.spelled(b" a") == (5,)
    assert vocabulary.spelled(b"") == (1,)
    assert vocabulary.spelled(b"b") == ()


def test_ids_that_begin_alike_the_shortest_first() -> None:
    vocabulary = Vocabulary.of([*TOKENS, Token(6, b"ab"), Token(7, b"b")])
    assert vocabulary.beginning(b"a", 9) == (0, 4, 6)
    assert vocabulary.beginning(b"a", 2) == (0, 4)
    assert vocabulary.beginning(b"abc", 9) == ()
    assert vocabulary.beginning(b"", 2) == (1, 0)


def test_ids_in_order_of_their_bytes() -> None:
    assert Vocabulary.of(TOKENS).by_bytes().tolist() == [1, 5, 3, 0, 4, 2]


@pytest.mark.parametrize("token_id", [-1, 6])
def test_ids_that_do_not_exist(token_id: int) -> None:
    with pytest.raises(IndexError):
        Vocabulary.of(TOKENS).token(token_id)


@pytest.mark.parametrize(
    "change",
    [
        {"offsets": np.array([0, 1], np.int64)},
        {"offsets": np.array([0, 1, 0, 2, 9, 9, 12], np.int64)},
        {"offsets": np.array([0, 1, 1, 3, 10, 11, 99], np.int64)},
        {"data": np.zeros(13, np.float32)},
        {"special": np.zeros((6, 1), np.uint8)},
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, np.ndarray]) -> None:
    arrays = {**Vocabulary.of(TOKENS).packed(), **change}
    with pytest.raises(ValueError, match="vocabulary"):
        Vocabulary.unpacked(arrays)
    with pytest.raises(ValueError, match="lacks"):
        Vocabulary.unpacked({})
