"""What is said of an exception that nobody foresaw."""

from __future__ import annotations

import pytest

from explorer.engine.faults import failure

LOG = ". See the log for details."


@pytest.mark.parametrize("words", ["it failed", "it failed.", "it failed...", "it \n failed. "])
def test_a_sentence_ends_once(words: str) -> None:
    said = failure(1, ValueError(words)).sentence
    assert said == f"The engine hit an unexpected error (ValueError): it failed{LOG}"


def test_an_error_without_words_is_named() -> None:
    assert failure(1, KeyError()).sentence == f"The engine hit an unexpected error (KeyError){LOG}"


@pytest.mark.parametrize("words", ["many words " * 90, "x" * 999])
def test_a_long_error_is_cut_and_says_so(words: str) -> None:
    failed = failure(1, ValueError(words))
    assert failed.sentence.endswith(f"…{LOG}")
    assert len(failed.sentence) <= 300 + len(LOG)
    assert words.strip() in failed.details
