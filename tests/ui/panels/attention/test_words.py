"""Rows and cells of attention in words."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np

from explorer.figures.attention.map_blocks import ABSENT, MASKED, READ
from explorer.figures.attention.maps import QueryRow
from explorer.figures.text.tokens import labels
from explorer.trace.interventions.kinds import Silence
from explorer.ui.panels.attention import words
from tests.figures.runs import Run


def test_a_row_says_where_its_attention_goes() -> None:
    trace = Run().prefill(3, [b"The", b" capital", b"\n"])
    names = labels(trace.tokens)
    read = QueryRow(2, np.float32([0.82, 0.1, 0.08]), np.full(3, READ), 0, 0.0)
    assert words.shares(read, names) == "82.0 % to '\u2068The\u2069' (0)"
    said = words.shares(read, names, 3)
    assert "10.0 % to '\u2068␣capital\u2069' (1)" in said
    assert said.endswith("8.0 % to itself")
    nothing = QueryRow(0, np.zeros(3, np.float32), np.full(3, MASKED), 0, 0.0)
    assert words.shares(nothing, names) == "no attention"
    sunk = QueryRow(2, np.float32([0.5, 0, 0]), np.full(3, READ), 0, 0.5)
    assert "50.0 % to the attention sink" in words.shares(sunk, names)


def test_a_cell_says_its_share_or_why_it_has_none() -> None:
    assert words.cell_words(READ, 0.25, 3, 1) == "25.0 %"
    assert words.cell_words(MASKED, 0, 1, 3) == "masked"
    assert "did not exist yet" in words.cell_words(ABSENT, 0, 1, 3)
    assert "cache" in words.cell_words(ABSENT, 0, 5, 1)


def test_a_comparison_names_the_interventions_or_says_that_there_are_none() -> None:
    trace = Run().prefill(4)
    assert words.comparison("interventions", trace, 0) == (
        "This run has no interventions, so both sides are the same."
    )
    request = msgspec.structs.replace(trace.request, interventions=(Silence(layer=0, head=1),))
    said = words.comparison("interventions", replace(trace, request=request), 0)
    assert said.endswith("this run, with L0 H1 silenced.")
