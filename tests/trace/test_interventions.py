"""Interventions as lines of text, and which cells they cover."""

from __future__ import annotations

import re

import msgspec
import numpy as np
import pytest

from explorer.trace.interventions.kinds import Cells, Silence, written
from explorer.trace.interventions.lines import (
    read,
    read_cells,
    read_patch,
    read_scale,
    read_silence,
)
from explorer.trace.request import RunRequest

LINES = (
    "silence 1.0", "silence 12.mlp", "silence 3", "cut 1.0:5<-3", "cut *.*:*<-*",
    "cut 1.*:3-5<-0-2", "cut *.2:*<-q-1", "cut 0.0:*<-q-4+", "cut 0.0:7<-q-2-3",
    "allow *.*:5<-7", "scale 1.0:2", "scale *.*:0.25", "patch 1.0:5<-3 of 12,7,44,9",
    "patch 3.mlp:*<-* of 5", "patch 2:4-5<-0-1 of 12,7 without mask with silence 1; cut 1.0:1<-0",
)  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_read_and_written_alike_and_travels(line: str) -> None:
    found = read(line)
    assert written([found]) == [line]
    request = RunRequest(interventions=(found,))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(request), type=RunRequest) == request


def test_a_request_of_an_earlier_version_has_none() -> None:
    assert msgspec.json.decode(b'{"prompt": "a"}', type=RunRequest).interventions == ()


@pytest.mark.parametrize(
    ("reader", "text", "words"),
    [
        (read, "stop 1.0", "no intervention"),
        (read, "", "no intervention"),
        (read_silence, "1.x", "1.mlp"),
        (read_silence, "*.0", "1.mlp"),
        (read_silence, "-1", "1.mlp"),
        (read_cells, "1.0:5", "1.0:5<-3"),
        (read_cells, "1:5<-3", "1.0:5<-3"),
        (read_cells, "1.0:5-3<-1", "ends before it begins"),
        (read_scale, "1.0:fast", "factor"),
        (read_scale, "1.0:-1", "factor"),
        (read_scale, "1.0:nan", "factor"),
        (read_scale, "1.0:1e-", "factor"),
        (read_patch, "1.0:5<-3", "1.0:5<-3 of 12,7,44,9"),
        (read_patch, "1.0:5<-3 of", "1.0:5<-3 of 12,7,44,9"),
        (read_patch, "1.0:5<-3 of 1,x", "1.0:5<-3 of 12,7,44,9"),
        (read_patch, "1.0:*<-3 of 1,2,3,4", "Write * on both sides"),
        (read_patch, "1.0:1-2<-3 of 1,2,3,4", "ranges of different length"),
        (read_patch, "1.0:1<-4 of 1,2,3,4", "positions 0 to 3, no position 4"),
        (read_patch, "1:*<-* of 1 with patch 1:*<-* of 2", "patched itself"),
        (read_patch, "1:*<-* of 1 with nonsense", "no intervention"),
    ],
)
def test_what_is_no_intervention_is_one_sentence_with_an_example(reader, text, words) -> None:
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        reader(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("*.*:3<-1", {(3, 1)}),
        ("*.*:2-3<-*", {(q, k) for q in (2, 3) for k in range(5)}),
        ("*.*:*<-q-1", {(1, 0), (2, 1), (3, 2), (4, 3)}),
        ("*.*:*<-q-3+", {(3, 0), (4, 0), (4, 1)}),
        ("*.*:4<-q-0-1", {(4, 4), (4, 3)}),
        ("*.*:9<-9", set()),
    ],
)
def test_which_cells_are_covered(text: str, cells: set[tuple[int, int]]) -> None:
    slots = np.arange(5)
    covered = read_cells(text).covers(slots, slots)
    assert set(zip(*map(np.ndarray.tolist, np.nonzero(covered)), strict=True)) == cells


def test_only_what_lets_a_token_see_a_later_one_switches_the_cache_off() -> None:
    assert not Cells(queries=(5, 5), keys=(3, 3), allowed=True).sees_later
    assert not Cells(back=(0, 3), allowed=True).sees_later
    assert not Cells(queries=(5, 5), keys=(7, 7)).sees_later
    assert Cells(queries=(5, 5), keys=(3, 7), allowed=True).sees_later
    assert Cells(queries=(5, 5), allowed=True).sees_later
    assert RunRequest(interventions=(Silence(layer=0),)).uses_cache
