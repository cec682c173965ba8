"""The atlas in the order of what heads do: they are found by it, and told what it is."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer.figures.attention.head_scores import HeadScores, scores
from explorer.session.state import Measured, Status
from explorer.trace.inside.attribution import Attribution, LogitPart, Target
from explorer.trace.inside.heads import HeadSweep, SweepHeads
from explorer.trace.interventions.kinds import Intervention, OtherRun, Patch, Silence
from explorer.trace.request import Sampling
from explorer.trace.trace import Trace
from explorer.ui.canvases.maps.atlas import AtlasView
from tests.figures.runs import Run
from tests.ui.board import Board, shown_board


@pytest.fixture
def board(qapp: QApplication) -> Iterator[Board]:
    with shown_board(qapp, 800, 500) as board:
        yield board


def _copying_run() -> tuple[Run, Trace]:
    """One head, Layer 1, head 2, reads the token just before; all others read evenly."""
    run = Run(layers=3, heads=4, kv_heads=4, sharpness=0.0)
    trace = run.prefill(7)
    record = trace.steps[0].layers[1]
    assert record.queries is not None
    assert record.keys is not None
    for slot in range(7):
        record.keys[slot, 2] = 30 * (np.arange(8) == slot)
        record.queries[slot, 2] = 30 * (np.arange(8) == slot - 1)
    return run, trace


def test_heads_are_found_by_what_they_do(board: Board) -> None:
    run, trace = _copying_run()
    board.show(trace=trace)
    board.settle()
    panel = board.panel
    panel.heads.order.setCurrentIndex(panel.heads.order.findData("previous"))
    board.settle()
    assert panel.heads.atlas.head_of(0, 0) == (1, 2)
    assert panel._head_words(1, 2) == "Layer 1, head 2: 100 % to the previous token on average"
    point = panel.heads.atlas.cell_rect(0, 0).center().toPoint()
    QTest.mouseClick(panel.heads.atlas.viewport(), Qt.MouseButton.LeftButton, pos=point)
    assert (board.state.selection.layer, board.state.selection.head) == (1, 2)
    board.show(trace=run.decode(trace))
    board.settle()
    assert panel._scores is not None
    assert panel._scores.slots == 8, "the order follows the steps"
    panel.heads.order.setCurrentIndex(0)
    assert panel.heads.atlas.head_of(0, 0) == (0, 0)
    assert panel._head_words(1, 2).startswith("Layer 1, head 2: '\u2068␣t0\u2069' (7) attends")


def test_the_atlas_says_how_far_an_order_is(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    heard = threading.Event()

    def slowly(*args: Any) -> Iterator[HeadScores]:
        for part in scores(*args):
            yield part
            if not part.complete:
                assert heard.wait(5)

    monkeypatch.setattr("explorer.ui.panels.attention.map_source._BETWEEN_PICTURES", 0)
    monkeypatch.setattr("explorer.ui.panels.attention.map_source.head_scores.scores", slowly)
    board.show(trace=_copying_run()[1])
    board.settle()
    atlas = board.panel.heads.atlas

    def listen(_: float) -> None:
        said.append(atlas.doing)
        heard.set()

    board.panel.source.ordering.connect(listen)
    board.panel.heads.order.setCurrentIndex(board.panel.heads.order.findData("previous"))
    board.settle()
    assert said
    assert all(re.fullmatch(r"sorting: \d+ %", words) for words in said)
    assert atlas.doing == ""


@pytest.mark.parametrize("kind", ["first", "previous", "induction", "entropy"])
def test_every_order_says_what_it_orders_by(board: Board, kind: str) -> None:
    board.show(trace=Run(layers=3, absent=(1,)).prefill(9))
    board.panel.heads.order.setCurrentIndex(board.panel.heads.order.findData(kind))
    board.settle()
    words = board.panel._head_words(0, 1)
    assert words.startswith("Layer 0, head 1: ")
    assert "average" in words or "no token here" in words
    assert "a recurrent layer" in board.panel._head_words(1, 1)


def test_an_order_of_another_model_is_dropped(board: Board) -> None:
    board.show(trace=Run(layers=6, heads=8).prefill(5))
    board.panel.heads.order.setCurrentIndex(1)
    board.settle()
    board.show(trace=Run(layers=2, heads=2).prefill(5))
    board.settle()
    assert sorted(board.panel.heads.atlas._order or ()) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    board.panel.grab()


def test_choosing_an_order_selects_the_best_head_and_names_it(board: Board) -> None:
    board.show(trace=_copying_run()[1])
    board.settle()
    panel = board.panel
    panel.heads.order.setCurrentIndex(panel.heads.order.findData("previous"))
    board.settle()
    assert (board.state.selection.layer, board.state.selection.head) == (1, 2)
    assert panel.caveat.text() == (
        "Strongest previous-token head: layer 1, head 2. 100 % to the previous token on average."
    )
    panel.heads.order.setCurrentIndex(0)
    board.settle()
    assert not panel.caveat.isVisible()
    assert (board.state.selection.layer, board.state.selection.head) == (1, 2)


def test_the_best_heads_are_shown_larger_and_can_be_clicked(board: Board) -> None:
    board.show(trace=_copying_run()[1])
    board.settle()
    atlas = board.panel.heads.atlas
    board.panel.find_head("previous")
    board.settle()
    board.panel.session.select(layer=0, head=0)
    first = atlas.cell_rect(0, 0)
    assert first.top() > 60, "room for larger thumbnails with two lines under them"
    point = QPoint(20, round(first.top() / 2))
    assert atlas.tip_at(point) == "Layer 1, head 2: 100 % to the previous token on average"
    QTest.mouseClick(atlas.viewport(), Qt.MouseButton.LeftButton, pos=point)
    assert (board.state.selection.layer, board.state.selection.head) == (1, 2)


def test_a_kind_of_head_is_found_in_one_click(board: Board) -> None:
    board.show(trace=_copying_run()[1])
    board.settle()
    menu = board.panel.heads.finder.menu()
    assert [act.text().replace("&", "") for act in menu.actions()] == [
        "Induction head",
        "Previous-token head",
        "First-token head",
        "Head that matters most",
        "Head that adds most",
    ]
    menu.actions()[1].trigger()
    board.settle()
    assert (board.state.selection.layer, board.state.selection.head) == (1, 2)
    board.panel.session.select(layer=0, head=0)
    menu.actions()[1].trigger()  # the same again
    board.settle()
    assert (board.state.selection.layer, board.state.selection.head) == (1, 2)


def test_without_a_repeat_induction_is_said_not_to_be_seen(board: Board) -> None:
    board.show(trace=_copying_run()[1])
    board.settle()
    before = board.state.selection
    board.panel.find_head("induction")
    board.settle()
    assert "induction can't be seen" in board.panel.caveat.text()
    assert board.state.selection == before


def test_a_head_that_a_file_names_is_kept(board: Board) -> None:
    board.show(trace=_copying_run()[1])
    board.settle()
    board.panel.choose({"order": "previous"})
    board.settle()
    assert (board.state.selection.layer, board.state.selection.head) != (1, 2)


def _swept(trace: Trace, logits: tuple[float, ...], **more: Any) -> Measured[HeadSweep]:
    found = HeadSweep(token=3, logit=1.0, probability=0.5, heads=(4, 4, 4), logits=logits,
                      probabilities=(0.5,) * len(logits))  # fmt: skip
    return Measured(trace.request, (), Sampling(), found, trace.card)


def test_heads_are_sorted_by_what_silencing_them_does(board: Board) -> None:
    trace = _copying_run()[1]
    board.show(trace=trace)
    board.settle()
    board.panel.find_head("effect")
    assert board.measured
    going = Status(activity="running", fraction=0.25, experiment=SweepHeads)
    part = {HeadSweep: _swept(trace, (0.5,) * 4)}
    board.show(status=going, measured=part)
    assert board.panel.heads.atlas.doing == "silencing: 25 %"
    before = board.state.selection
    logits = (1.0, 1.5, 0.9, 1.0, 1.0, 1.0, -6.25, 1.0, 1.0, 1.0, 1.0, 2.0)
    board.show(status=Status(activity="idle"), measured={HeadSweep: _swept(trace, logits)})
    board.settle()
    atlas = board.panel.heads.atlas
    assert atlas.doing == ""
    assert (before.layer, before.head) == (0, 0)
    assert (board.state.selection.layer, board.state.selection.head) == (1, 2)
    assert atlas.head_of(0, 0) == (1, 2)
    assert "layer 1, head 2. −7.25 on the chosen token's logit" in board.panel.caveat.text()
    board.measured = False
    board.show(trace=_copying_run()[1], measured={})  # another run: the order is not known there
    board.settle()
    assert board.panel.heads.atlas.head_of(0, 0) == (0, 0)
    assert not board.measured, "only who asks for it has the heads silenced"


def test_a_sweep_that_was_cut_short_sorts_what_it_has(board: Board) -> None:
    trace = _copying_run()[1]
    board.show(trace=trace, measured={HeadSweep: _swept(trace, (1.0, -2.0, 1.0))})
    board.settle()
    board.panel.choose({"order": "effect"})
    board.settle()
    assert not board.measured
    assert [board.panel.heads.atlas.head_of(0, at) for at in range(2)] == [(0, 1), (0, 0)]


def _summed(trace: Trace, slot: int, against: Target | None = None) -> Measured[Attribution]:
    parts = (
        LogitPart(kind="embedding", value=9.0),
        LogitPart(kind="head", layer=0, head=1, value=-8.0),
        LogitPart(kind="head", layer=1, head=2, value=2.5),
        LogitPart(kind="head", layer=2, head=0, value=1.0),
        LogitPart(kind="mlp", layer=2, value=5.0),
    )
    target = Target(id=3, raw=b" {x", logit=9.5)
    found = Attribution(slot=slot, target=target, against=against, parts=parts, gap=0.0)
    return Measured(trace.request, (), Sampling(), found, trace.card)


def test_heads_are_sorted_by_what_they_add_to_the_token(board: Board) -> None:
    trace = _copying_run()[1]
    board.show(trace=trace, measured={Attribution: _summed(trace, 6)})
    board.settle()
    board.panel.find_head("contribution")
    board.settle()
    atlas, caveat = board.panel.heads.atlas, board.panel.caveat
    assert [atlas.head_of(0, at) for at in range(2)] == [(1, 2), (2, 0)]
    assert (board.state.selection.layer, board.state.selection.head) == (1, 2)
    assert "Adds most: layer 1, head 2. +2.50 to the logit of '\u2068␣{x\u2069'." in caveat.text()
    lead = _summed(trace, 6, Target(id=4, raw=b" y", logit=1.0))
    board.show(measured={Attribution: lead})
    assert "+2.50 to the lead of '\u2068␣{x\u2069' over '\u2068␣y\u2069'." in caveat.text()
    board.show(measured={Attribution: _summed(trace, 2)})  # of another token: not this order
    board.settle()
    assert atlas.head_of(0, 0) == (0, 0)
    assert not caveat.isVisible()


def test_heads_that_the_sum_does_not_tell_apart_are_not_sorted(board: Board) -> None:
    trace = _copying_run()[1]
    whole = _summed(trace, 6)
    parts = (LogitPart(kind="attention", layer=0, value=1.0),)
    whole = replace(whole, result=msgspec.structs.replace(whole.result, parts=parts))
    board.show(trace=trace, measured={Attribution: whole})
    board.panel.find_head("contribution")
    board.settle()
    assert "can't be told apart" in board.panel.caveat.text()
    assert board.state.selection.head == 0


def test_silenced_and_patched_heads_are_marked_each_in_its_way(board: Board) -> None:
    _, trace = _copying_run()
    silence = Silence(layer=1, head=2)
    patch = Patch(layer=1, head=2, source=OtherRun(tokens=(1, 2)))
    mlp = Patch(layer=1, part="mlp", source=patch.source)
    atlas = board.panel.heads.atlas

    def picture(*asked: Intervention) -> np.ndarray:
        request = msgspec.structs.replace(trace.request, interventions=asked)
        board.show(trace=replace(trace, request=request))
        board.settle()
        box = atlas.head_rect(1, 2)
        assert box is not None
        image = atlas.grab(box.toAlignedRect()).toImage()
        return np.array(
            [[image.pixel(x, y) for x in range(image.width())] for y in range(image.height())]
        )

    plain, crossed, framed = picture(), picture(silence), picture(patch)
    assert (plain != crossed).any()
    assert (plain != framed).any()
    assert (crossed != framed).any()
    np.testing.assert_array_equal(picture(patch, silence), crossed, "the last one counts")
    np.testing.assert_array_equal(picture(mlp), plain)
    picture(silence)
    assert atlas.tip_at(box_middle(atlas, 1, 2)).endswith(" · L1 H2 silenced")
    assert "silenced" not in atlas.tip_at(box_middle(atlas, 1, 1))


def box_middle(atlas: AtlasView, layer: int, head: int) -> QPoint:
    box = atlas.head_rect(layer, head)
    assert box is not None
    return box.center().toPoint()
