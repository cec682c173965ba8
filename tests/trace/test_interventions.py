"""Interventions as lines of text, and which cells they cover."""

from __future__ import annotations

import re

import msgspec
import numpy as np
import pytest

from explorer.trace.interventions.cells import (
    ALLOWED,
    AS_IS,
    CUT,
    added,
    changes,
    of_head,
    switched,
)
from explorer.trace.interventions.kinds import Cells, Intervention, Silence, written
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
    "allow *.*:5<-7", "restore 1.*:5-9<-0-3", "silence 1.0=mean", "scale 1.0:2",
    "scale *.*:0.25", "scale 1.0:1.2345678", "patch 1.0:5<-3 of 12,7,44,9",
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
        (read_silence, "1.mlp=mean", "1.0=mean"),
        (read_silence, "1=mean", "1.0=mean"),
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
        (read_patch, "1:*<-* of 1 with silence 1.0=mean", "its mean over the prompt"),
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
    assert found(changes([read_cells(text)], 4, (0, 5), (0, 5))[0]) == cells
    one = read_cells(text, "allow")
    assert found(changes([one], 4, (2, 5), (1, 5))[0]) == {
        (q - 2, k - 1) for q, k in cells if q >= 2 and k >= 1
    }
    seen = found(changes([one], 4, (1, 5), (0, 5), stride=2)[0])
    assert {((q - 1) // 2, k // 2) for q, k in cells if q} == seen


def found(states: np.ndarray) -> set[tuple[int, int]]:
    return set(zip(*map(np.ndarray.tolist, np.nonzero(states)), strict=True))


def asked(*lines: str) -> tuple[Intervention, ...]:
    return tuple(map(read, lines))


def test_of_two_that_change_a_cell_the_later_one_counts_in_each_head() -> None:
    lines = ("cut 1.*:*<-0", "allow 1.0:3<-0-5", "restore *.1:4<-*", "cut 2.0:*<-*")
    heads = [of_head(asked(*lines), 1, head, (0, 6), (0, 6)) for head in range(3)]
    assert [head[3, 0] for head in heads] == [ALLOWED, CUT, CUT]
    assert [head[4, 0] for head in heads] == [CUT, AS_IS, CUT]
    assert [head[3, 5] for head in heads] == [ALLOWED, AS_IS, AS_IS]
    cells = [one for one in asked(*lines) if isinstance(one, Cells) and one.layer != 2]
    whole = changes(cells, 3, (0, 6), (0, 6))
    for head in range(3):
        np.testing.assert_array_equal(whole[head], heads[head])
    assert changes([Cells(keys=(0, 0))], 9, (0, 6), (0, 6)).shape == (1, 6, 6)


@pytest.mark.parametrize(
    ("now", "more", "left"),
    [
        (["cut 1.0:5<-3"], "restore 1.0:5<-3", []),
        (["cut 1.0:5<-3"], "restore *.*:5-6<-*", []),
        (["cut 1.0:5<-3"], "restore 1.1:5<-3", ["cut 1.0:5<-3"]),
        (["cut 1.*:5<-3"], "restore 1.1:5<-3", ["cut 1.*:5<-3", "restore 1.1:5<-3"]),
        (["cut 1.0:*<-3"], "restore 1.0:5<-3", ["cut 1.0:*<-3", "restore 1.0:5<-3"]),
        (["allow 1.0:5<-3"], "cut 1.0:*<-3", ["cut 1.0:*<-3"]),
        (["cut 1.0:5<-3"], "cut 1.0:*<-q-1-2", ["cut 1.0:*<-q-1-2"]),
        (["cut 1.0:5<-3"], "cut 1.0:*<-q-3+", ["cut 1.0:5<-3", "cut 1.0:*<-q-3+"]),
        (["cut 1.0:*<-q-1-2"], "cut 1.0:*<-q-1+", ["cut 1.0:*<-q-1+"]),
        (["cut 1.0:*<-*"], "cut 1.0:*<-q-1+", ["cut 1.0:*<-*", "cut 1.0:*<-q-1+"]),
        (["silence 1.0", "silence 1.1"], "silence 1.0=mean", ["silence 1.1", "silence 1.0=mean"]),
        (["silence 1.mlp"], "silence 1", ["silence 1.mlp", "silence 1"]),
        (["scale 1.0:2", "scale 1.*:3"], "scale 1.0:4", ["scale 1.*:3", "scale 1.0:4"]),
        (["scale 1.0:2", "scale 1.*:3"], "scale 1.0:1", ["scale 1.*:3"]),
    ],
)  # fmt: skip
def test_what_is_left_of_earlier_ones(now: list[str], more: str, left: list[str]) -> None:
    assert written(added(asked(*now), read(more))) == left


def test_only_what_lets_a_token_see_a_later_one_switches_the_cache_off() -> None:
    assert not Cells(queries=(5, 5), keys=(3, 3), allowed=True).sees_later
    assert not Cells(back=(0, 3), allowed=True).sees_later
    assert not Cells(queries=(5, 5), keys=(7, 7)).sees_later
    assert Cells(queries=(5, 5), keys=(3, 7), allowed=True).sees_later
    assert Cells(queries=(5, 5), allowed=True).sees_later
    assert RunRequest(interventions=(Silence(layer=0),)).uses_cache
    outside = RunRequest(interventions=(Cells(queries=(5, 5), keys=(3, 3), allowed=True),))
    assert not outside.sees_later
    assert not outside.uses_cache
    assert "window" in outside.cache_reason
    assert RunRequest(interventions=(Cells(keys=(3, 3), restored=True),)).uses_cache


def test_a_switch_takes_the_place_of_what_was_done_otherwise_there() -> None:
    now = asked("cut 1.0:5<-3", "cut 1.0:*<-3", "silence 1.0", "scale *.*:2")
    for one in now:
        assert one not in switched(now, one)
        assert switched(switched(now, one), one)[-1] == one
    allowed = switched(now, read("allow 1.0:5<-3"))
    assert written(allowed)[0] == "cut 1.0:*<-3"
    assert written(allowed)[-1] == "allow 1.0:5<-3"
    assert written(switched(now, read("silence 1.0=mean")))[-2:] == [
        "scale *.*:2",
        "silence 1.0=mean",
    ]
