"""Masked beside unmasked in the panel: real passes of a tiny model, and the same scores."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer.figures.attention import difference
from explorer.figures.attention import maps as figures
from explorer.figures.attention.map_request import DrawnMaps
from explorer.figures.attention.mask_pair import Side, without_mask
from explorer.figures.prediction import comparison
from explorer.figures.text import tokens as spelling
from explorer.session.state import (
    State,
)
from explorer.trace.attention import weights
from explorer.trace.card import Capability, SelfCheck
from explorer.trace.comparison import Comparison, other_side
from explorer.trace.experiments import PrefixExperiment, PrefixShift
from explorer.trace.interventions.kinds import Silence
from explorer.trace.interventions.lines import read as read_line
from explorer.trace.trace import Trace
from explorer.ui.access.accessible import line_of
from explorer.ui.canvases.maps.drawing.cell_marks import KINDS
from explorer.ui.canvases.maps.heatmap import Heatmap
from explorer.ui.kit.elided import ElidedLabel
from explorer.ui.look.theme import DARK, LIGHT
from explorer.ui.panels.attention import words
from explorer.ui.panels.attention.comparison_tray import NextTokenBox
from explorer.ui.panels.attention.maps_page import MapsPage
from tests.engine import folders
from tests.figures.runs import Run
from tests.session.jobs.test_comparison import Owner
from tests.ui.board import Board, shown_board
from tests.ui.waiting import wait_until


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> State:
    """A tiny Llama's run of three steps, its comparison and its prefix experiment."""
    folder = Path(str(tmp_path_factory.mktemp("model"))) / "tiny"
    owner = Owner(str(folders.write_folder(folder, folders.model(eos_token_id=None))))
    try:
        owner.step(3)
        owner.session.compare(True)
        owner.compared()
        owner.session.measure(PrefixExperiment)
        return owner.until(
            lambda s: s.measured_of(PrefixShift) is not None and s.status.activity == "idle"
        )
    finally:
        owner.session.close()


@pytest.fixture
def board(qapp: QApplication) -> Iterator[Board]:
    with shown_board(qapp, 620, 500) as board:
        yield board


def _show(board: Board, state: State) -> None:
    board.show(
        trace=state.trace,
        card=state.card,
        comparing=True,
        comparison=state.comparison,
        status=state.status,
    )
    board.settle()


def _drawn(board: Board) -> DrawnMaps:
    assert board.panel._drawn is not None
    return board.panel._drawn


def _choose(board: Board, value: str) -> None:
    choice = board.panel.compare_bar.choice
    choice.setCurrentIndex(choice.findData(value))
    board.settle()


def test_three_maps_of_two_real_runs(board: Board, compared: State) -> None:
    _show(board, compared)
    masked, unmasked, change = _drawn(board).maps
    trace, other = compared.trace, compared.comparison
    assert trace is not None
    assert other is not None
    assert masked is not None
    assert unmasked is not None
    assert change is not None
    np.testing.assert_array_equal(masked.map.weights, figures.full_map(trace, 2, 0, 0).weights)
    record = other.step.layers[0]
    assert record.keys is not None
    real = weights(record, record.keys, 0)
    np.testing.assert_allclose(unmasked.map.weights, real, atol=1e-6)
    np.testing.assert_allclose(change.map.weights, real - masked.map.weights, atol=1e-6)
    assert masked.top == unmasked.top
    assert "second run" in board.panel.compare_bar.line
    maps = board.panel.pages.maps.maps
    assert all(one.isVisible() for one in maps)
    assert len({(one.plot.width(), one.plot.height()) for one in maps}) == 1


def test_the_same_scores_are_named_and_equal_in_the_first_layer_only(
    board: Board, compared: State
) -> None:
    _show(board, compared)
    for layer, same in ((0, True), (1, False)):
        board.select(layer=layer, head=1)
        _choose(board, "run")
        real = _drawn(board).maps[1]
        _choose(board, "scores")
        dropped = _drawn(board).maps[1]
        assert real is not None
        assert dropped is not None
        apart = float(np.abs(real.map.weights - dropped.map.weights).max())
        assert (apart <= 1e-5) is same
    assert "Only layer 0 matches" in board.panel.compare_bar.line


def test_zoom_and_cursor_are_shared(board: Board, compared: State) -> None:
    _show(board, compared)
    first, second, third = board.panel.pages.maps.maps
    second.zoom(3.0)
    assert first.view is second.view is third.view
    assert first._still is None, "the others are drawn anew"
    second.go_to(1, 4)
    assert first.current == third.current == (1, 4)
    line = board.panel.readout.text()
    assert "with the mask masked" in line
    assert ", without " in line
    assert "change +" in line
    second.set_cursor(None)
    assert first.current is None


def test_the_atlas_shows_either_side_or_the_difference(board: Board, compared: State) -> None:
    _show(board, compared)
    heads = board.panel.heads
    shown = {}
    for which in ("difference", "masked", "unmasked"):
        heads.side.setCurrentIndex(heads.side.findData(which))
        board.settle()
        assert heads.atlas.shown is not None
        assert heads.atlas.shown.signed == (which == "difference")
        shown[which] = heads.atlas.shown.levels
    assert shown["masked"][0, 0, 0, 3] == 1
    assert shown["unmasked"][0, 0, 0, 3] > 1
    board.show(comparing=False)
    board.settle()
    np.testing.assert_array_equal(heads.atlas.shown.levels, shown["masked"])


def test_while_the_other_run_is_missing_the_panel_says_so(board: Board, compared: State) -> None:
    _show(board, replace(compared, comparison=None))
    masked, unmasked, change = _drawn(board).maps
    assert masked is not None
    assert unmasked is None
    assert change is None
    assert board.panel.pages.maps.maps[1]._note
    assert "Step" in board.panel.compare_bar.line
    _show(board, compared)
    assert all(_drawn(board).maps)
    assert "second run" in board.panel.compare_bar.line


def test_next_tokens_of_both_runs(board: Board, compared: State) -> None:
    _show(board, compared)
    box = board.panel.tray.next
    assert "total variation 0." in box.line.text()
    header, *rows = box.table()
    names = ("probability_with_mask", "probability_without_mask")
    assert header == ("id", "text", *names, "logit_with_mask", "logit_without_mask")
    trace = compared.trace
    assert trace is not None
    top = int(np.argmax(trace.steps[2].logits))
    assert top in [row[0] for row in rows]


def test_the_prefix_experiment_is_shown_and_says_when_it_is_old(
    board: Board, compared: State
) -> None:
    _show(board, compared)
    assert compared.card is not None
    board.panel.tray.prefix.button.click()
    assert board.measured
    assert board.panel.tray.details.isChecked()
    board.show(measured=compared.measured)
    line = board.panel.tray.prefix.line.text()
    assert line.startswith("With the mask, earlier outputs do not change")
    assert "without it: by up to" in line
    plot = board.panel.tray.prefix.plot
    drawn = plot.drawn
    assert drawn is not None
    measured = compared.result(PrefixShift)
    assert measured is not None
    for name, found in (("with mask", measured.masked), ("without mask", measured.unmasked)):
        assert found is not None
        known = np.array([*found.layers, found.logits])
        shown = np.where(known > 0, np.maximum(known, 1e-8), 0)
        np.testing.assert_allclose(drawn.series[name][1], shown, rtol=1e-6)
    assert drawn.ticks[0][-1] == "logits"
    plot.setFocus()
    QTest.keyClick(plot, Qt.Key.Key_Home)
    assert "layer 0" in line_of(plot)
    QTest.keyClick(plot, Qt.Key.Key_End)
    assert "logits" in line_of(plot)
    board.select(step=0)
    assert board.panel.tray.prefix.line.text().startswith("Measured on")


def test_a_model_that_refuses_is_told_in_its_own_words(board: Board, compared: State) -> None:
    assert compared.card is not None
    no = Capability(name="causal_off", offered=False, words="the switch changes nothing here")
    card = msgspec.structs.replace(compared.card, capabilities=(no,))
    asked: list[bool] = []
    board.compare = asked.append  # type: ignore[method-assign]
    board.show(trace=compared.trace, card=card)
    board.panel.tools.compare.click()
    board.settle()
    assert asked == [], "no run is asked for"
    assert "the switch changes nothing here" in board.panel.compare_bar.line
    assert len(_drawn(board).maps) == 1
    _choose(board, "scores")
    assert len(_drawn(board).maps) == 3
    assert "Only layer 0" in board.panel.compare_bar.line


def _windowed() -> tuple[Trace, Comparison]:
    trace = Run(window=4).prefill(12)
    dropped = without_mask(Side(trace, 0))
    return trace, Comparison((), other_side(trace.request), dropped.trace.steps[0])


def test_a_sliding_window_is_named(board: Board) -> None:
    trace, other = _windowed()
    board.show(trace=trace, comparing=True, comparison=other)
    board.settle()
    assert "Layer 0 keeps its window of 4 tokens" in board.panel.compare_bar.line
    unmasked = _drawn(board).maps[1]
    assert unmasked is not None
    assert unmasked.map.weights[0, 3] > 0
    assert unmasked.map.weights[0, 4] == 0


def test_a_layer_without_the_others_window_is_told_apart(board: Board) -> None:
    trace, other = _windowed()
    card = msgspec.structs.replace(trace.card, windows=(4, 0))
    step = trace.steps[0]
    layers = (step.layers[0], replace(step.layers[1], window=0))
    trace = replace(trace, card=card, steps=(replace(step, layers=layers),))
    board.show(trace=trace, comparing=True, comparison=other)
    board.select(layer=1)
    assert (
        "Layer 1 has no window; other layers keep theirs (4 tokens)."
        in board.panel.compare_bar.line
    )
    assert "Every token attends to all others" in board.panel.compare_bar.line
    board.select(layer=0)
    assert "Layer 0 keeps its window of 4 tokens" in board.panel.compare_bar.line
    assert "every token" not in board.panel.compare_bar.line


def test_every_view_of_a_comparison_can_be_drawn(board: Board, compared: State) -> None:
    _show(board, compared)
    tools = board.panel.tools
    pictures = []
    for view in ("arcs", "row", "maps"):
        tools.view.setCurrentIndex(tools.view.findData(view))
        board.settle()
        assert board.panel.pages.currentWidget() is board.panel.pages.by_view[view]
        for theme in (DARK, LIGHT):
            board.panel.set_theme(theme)
            pictures.append(board.panel.pages.grab().toImage())
        names = board.panel.views()
        table = next(iter(names.values())).table
        assert table is not None
        assert len(list(table())) > 5
        array = next(iter(names.values())).array
        assert array is not None
        count = _drawn(board).request.look.slots
        assert array()().shape == ((3, count) if view == "row" else (3, count, count))
    assert all(a != b for a, b in pairwise(pictures))


def test_a_run_without_the_mask_has_the_masked_one_beside_it(board: Board) -> None:
    trace = Run(causal=False, bits=True).prefill(9)
    masked_step = Run(seed=1).prefill(9).steps[0]
    other = Comparison((), other_side(trace.request), masked_step)
    board.show(trace=trace, comparing=True, comparison=other)
    board.settle()
    masked, unmasked, _ = _drawn(board).maps
    assert masked is not None
    assert unmasked is not None
    assert masked.map.weights[0, 1] == 0
    np.testing.assert_array_equal(unmasked.map.weights, figures.full_map(trace, 0, 0, 0).weights)
    _choose(board, "scores")
    dropped = _drawn(board).maps[1]
    assert dropped is not None
    assert dropped.map.weights[0, 1] > 0
    part = dropped.map.weights[4, :5]
    np.testing.assert_allclose(part / part.sum(), masked.map.weights[4, :5], atol=1e-5)


def test_the_line_on_top_says_what_the_colours_mean(board: Board, compared: State) -> None:
    _show(board, compared)
    assert "Orange: more" in board.panel.explanation
    board.show(comparing=False)
    assert "brighter = more" in board.panel.explanation


def test_a_finished_atlas_is_kept_and_a_check_of_the_trace_works_nothing_out_again(
    board: Board, compared: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    _show(board, compared)
    heads = board.panel.heads
    levels = heads.atlas.shown.levels
    drawn = _drawn(board)

    def never(*_: object) -> None:
        raise AssertionError("worked out again")

    for which in ("masked", "unmasked"):
        heads.side.setCurrentIndex(heads.side.findData(which))
        board.settle()
    monkeypatch.setattr(difference, "build_atlas", never)
    heads.side.setCurrentIndex(heads.side.findData("difference"))
    board.settle()
    assert heads.atlas.shown.levels is levels
    assert compared.trace is not None
    board.show(trace=replace(compared.trace, self_check=SelfCheck(passed=True)))
    board.settle()
    assert _drawn(board) is drawn


@pytest.mark.parametrize(("vocabulary", "here"), [(1000, True), (60_000, False)])
def test_large_vocabularies_are_compared_off_the_windows_thread(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch, vocabulary: int, here: bool
) -> None:
    made_in: list[threading.Thread] = []

    def noted(*args: Any) -> comparison.NextTokens:
        made_in.append(threading.current_thread())
        return compare(*args)

    compare = comparison.next_tokens
    monkeypatch.setattr(comparison, "next_tokens", noted)
    box = NextTokenBox(LIGHT)
    rng, step = np.random.default_rng(0), Run().prefill(3).steps[0]
    steps = [replace(step, logits=rng.normal(size=vocabulary).astype(np.float32)) for _ in range(2)]
    box.show_steps(steps[0], steps[1], "")
    wait_until(lambda: not box.busy)
    assert "total variation" in box.line.text()
    assert (made_in[-1] is threading.main_thread()) is here
    box.show_steps(steps[0], None, "not yet")
    assert box.line.text() == "not yet"


@pytest.mark.parametrize("due", [False, True])
def test_maps_that_have_just_appeared_are_painted_one_after_the_other(
    board: Board, compared: State, monkeypatch: pytest.MonkeyPatch, due: bool
) -> None:
    maps = board.panel.pages.maps.maps
    seen: list[tuple[str, int]] = []

    def noted(name: str) -> None:
        act = getattr(Heatmap, name)

        def note(one: Heatmap, *args: Any, **kwargs: Any) -> None:
            seen.append((name, maps.index(one)))
            act(one, *args, **kwargs)

        monkeypatch.setattr(Heatmap, name, note)

    _show(board, compared)
    board.show(comparing=False)
    board.settle()
    page = board.panel.pages.maps
    shown: list[tuple[Any, ...]] = []
    with monkeypatch.context() as held_back:
        held_back.setattr(MapsPage, "show_drawn", lambda _page, *args: shown.append(args))
        board.show(comparing=True)
        board.settle()
    noted("set_map")
    noted("_paint_still")
    QTimer.singleShot(0, page, lambda: page.show_drawn(*shown[-1]))  # as a worker's answer comes
    if due:  # a turn of the loop in which a timer is due ends with timers, not with painting
        timer = QTimer(page)
        timer.start(0)
        wait_until(lambda: page.beside and not page.busy)
        timer.stop()
    board.settle()
    first, second, third = (seen.index(("set_map", place)) for place in range(3))
    assert ("_paint_still", 0) in seen[first:second]
    assert ("_paint_still", 1) in seen[second:third]
    assert ("_paint_still", 2) in seen[third:]


def test_what_makes_the_maps_room_smaller_is_painted_before_them(
    board: Board, compared: State
) -> None:
    _show(board, compared)
    page = board.panel.pages.maps
    before = [one.geometry() for one in page.maps]
    page.resize(page.width() - 60, page.height() - 60)
    assert [one.geometry() for one in page.maps] == before
    assert board.panel.busy
    board.settle()
    assert [one.geometry() for one in page.maps] != before


def test_a_file_as_it_is_beside_its_float32(board: Board, compared: State) -> None:
    trace, real = compared.trace, compared.comparison
    assert trace is not None
    assert real is not None
    card = msgspec.structs.replace(trace.card, form="float32", stored_dtype="Q4_1")
    request = msgspec.structs.replace(trace.request, form="float32")
    trace = replace(trace, request=request, card=card)
    other = Comparison(real.chosen, other_side(request, "form"), real.step, card, "form")
    board.show(trace=trace, card=card, comparing=True, compare_of="form", comparison=other)
    _choose(board, "form")
    converted, as_it_is, _ = _drawn(board).maps
    assert converted is not None
    assert as_it_is is not None
    np.testing.assert_array_equal(converted.map.weights, figures.full_map(trace, 2, 0, 0).weights)
    assert as_it_is.map.weights.max() > 0
    assert (as_it_is.map.weights != converted.map.weights).any()
    titles = {label.text() for label in board.panel.pages.maps.findChildren(ElidedLabel)}
    assert {"in float32", "as it is", "as it is − float32"} <= titles
    assert "the file as it is (Q4_1), run by llama.cpp" in board.panel.compare_bar.line
    read = words.cell(_drawn(board), spelling.extended((), (), trace.tokens), 1, 0)
    assert "in float32" in read
    assert ", as it is" in read
    assert not board.panel.tray.prefix.isVisible(), "it is about the mask"
    board.panel.compare()
    board.settle()
    assert (board.state.comparing, board.state.compare_of) == (True, "mask")


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> State:
    """The same model's run of two steps with a silent head, and its comparison."""
    folder = Path(str(tmp_path_factory.mktemp("model"))) / "tiny"
    owner = Owner(str(folders.write_folder(folder, folders.model(eos_token_id=None))))
    try:
        owner.session.set_interventions([Silence(layer=0, head=1)])
        owner.step(2)
        owner.session.compare(True, "interventions")
        return owner.compared()
    finally:
        owner.session.close()


def shown_beside(board: Board, changed: State) -> tuple[Trace, Comparison]:
    """The run with interventions, and the one without that the board shows beside it."""
    trace, other = changed.trace, changed.comparison
    assert trace is not None
    assert other is not None
    board.show(
        trace=trace, card=changed.card, request=trace.request, comparing=True,
        compare_of="interventions", comparison=other,
    )  # fmt: skip
    return trace, other


def test_a_run_with_interventions_beside_the_model_as_it_is(board: Board, changed: State) -> None:
    trace, other = shown_beside(board, changed)
    board.select(layer=1, head=0)
    board.settle()
    assert board.panel.compare_bar.beside == "interventions", "the list follows the state"
    before, after, change = _drawn(board).maps
    assert before is not None
    assert after is not None
    assert change is not None
    np.testing.assert_array_equal(after.map.weights, figures.full_map(trace, 1, 1, 0).weights)
    record = other.step.layers[1]
    assert record.keys is not None
    np.testing.assert_allclose(before.map.weights, weights(record, record.keys, 0), atol=1e-6)
    np.testing.assert_allclose(change.map.weights, after.map.weights - before.map.weights)
    assert float(np.abs(change.map.weights).max()) > 1e-4
    titles = {label.text() for label in board.panel.pages.maps.findChildren(ElidedLabel)}
    assert {"no interventions", "with interventions", "with − without"} <= titles
    assert "this run, with L0 H1 silenced" in board.panel.compare_bar.line
    assert "more with the interventions" in board.panel.explanation
    assert not board.panel.tray.prefix.isVisible(), "it is about the mask"
    board.panel.compare_interventions()
    assert not board.state.comparing


def test_the_key_under_a_comparison_names_the_marks_of_changed_cells(
    board: Board, changed: State
) -> None:
    trace, _ = shown_beside(board, changed)
    board.settle()
    page = board.panel.pages.maps
    before = page.key.rows_in(200)
    assert not page.key.shown & KINDS.keys()
    now = read_line("cut *.*:2<-0")
    after = read_line("allow *.*:0<-1")
    made = msgspec.structs.replace(trace.request, interventions=(now,))
    asked = msgspec.structs.replace(trace.request, interventions=(now, after))
    board.show(trace=replace(trace, request=made), request=asked)
    board.settle()
    assert page.key.shown & KINDS.keys() == {"cut", "allowed-next"}
    assert page.key.rows_in(200) > before
    assert page.key.height() >= page.key.row_height() * min(page.key.rows_in(page.key.width()), 3)


def test_what_becomes_of_a_token_follows_the_mouse(board: Board, changed: State) -> None:
    trace, other = shown_beside(board, changed)
    board.panel.tray.details.setChecked(True)
    board.settle()
    box = board.panel.tray.next
    sides = other.step.logits, trace.steps[1].logits

    def figures_of(token: int) -> str:
        before, after = (f"{side[token]:.2f}".replace("-", "−") for side in sides)
        return f"logit {before} → {after} ("

    chosen = trace.chosen_ids[1]
    assert figures_of(chosen) in box.token_line.text()
    row = next(row for row in box.bars.rows if row.key not in (chosen, -1))
    assert row.change_text[0] in "+−<0"
    box.bars.hovered.emit(row.key)
    assert board.state.selection.token_id == row.key
    assert figures_of(row.key) in box.token_line.text()
    box.bars.hovered.emit(None)
    assert figures_of(chosen) in box.token_line.text()


def test_without_interventions_there_is_nothing_to_compare_and_the_panel_says_so(
    board: Board, compared: State
) -> None:
    _show(board, compared)
    choice = board.panel.compare_bar.choice
    assert choice.findData("interventions") < 0
    assert compared.trace is not None
    wanted = msgspec.structs.replace(
        compared.trace.request, interventions=(Silence(layer=0, head=1),)
    )
    board.show(request=wanted)
    _choose(board, "interventions")
    assert "Press Step to run with them" in board.panel.compare_bar.line
    board.show(request=compared.trace.request)
    assert "This run has no interventions" in board.panel.compare_bar.line
    board.show(comparing=False)
    board.settle()
    assert choice.findData("interventions") < 0


def test_a_model_with_one_form_has_nothing_to_compare_it_with(
    board: Board, compared: State
) -> None:
    _show(board, compared)
    choice = board.panel.compare_bar.choice
    assert choice.findData("form") < 0
