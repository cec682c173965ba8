"""Next token, KV cache and timings: what they say of a run, and what a click wishes."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel

from explorer.trace.request import Sampling
from explorer.ui.canvases.tokens.token_bars import TokenBars
from explorer.ui.look.theme import THEMES
from explorer.ui.panel.panel import Panel
from tests.ui import pointer
from tests.ui.stage import WindowStage
from tests.ui.waiting import show


def panel(stage: WindowStage, name: str) -> Panel:
    return next(p for p in stage.window.docks.panels if name == p.ID)


def words(shown: Panel) -> str:
    return "\n".join(label.text() for label in shown.findChildren(QLabel) if label.isVisible())


def rows(shown: Panel, view: str) -> list[tuple[object, ...]]:
    table = shown.views()[view].table
    assert table is not None
    return [tuple(row) for row in table()]


def test_every_panel_says_what_to_do_while_it_is_empty(stage: WindowStage) -> None:
    for dock in stage.window.docks.docks:
        shown = dock.panel
        dock.show()
        dock.raise_()
        stage.paint()
        if shown.ID in ("training", "plan"):  # they need neither a run nor a prompt
            assert {"training": "Press Train.", "plan": "press Plan."}[shown.ID] in words(shown)
            continue
        assert shown.empty, shown.ID
        assert "Step" in words(shown), shown.ID
    stage.loaded().ran(1)
    for name in ("next-token", "kv-cache", "timings"):
        assert not panel(stage, name).empty
    stage.session.reset()
    for name in ("next-token", "kv-cache", "timings"):
        assert panel(stage, name).empty


def test_every_panel_explains_itself_and_has_a_stable_id(stage: WindowStage) -> None:
    panels = stage.window.docks.panels
    assert len({p.ID for p in panels}) == len(panels)
    for shown in panels:
        assert shown.EXPLANATION
        assert shown.accessibleName() == shown.TITLE


def test_next_token_shows_the_whole_distribution(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    table = rows(panel(stage, "next-token"), "Next token")
    assert table[0][:3] == ("id", "text", "bytes_hex")
    assert sum(float(row[3]) for row in table[1:]) == pytest.approx(1)  # type: ignore[arg-type]
    assert [row[0] for row in table[1:] if row[5] is True] == [10]


def test_next_token_follows_sampling_without_the_model(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    asked = len(stage.engine.asked)
    shown = panel(stage, "next-token")
    stage.session.set_sampling(Sampling(greedy=False, top_k=2))
    kept = [row for row in rows(shown, "Next token")[1:] if float(row[4]) > 0]  # type: ignore[arg-type]
    assert len(kept) == 2
    assert len(stage.engine.asked) == asked
    assert "2 tokens possible" in words(shown)
    assert "chosen with: greedy" in words(shown)
    stage.session.set_sampling(Sampling(greedy=False, top_p=1e-6))
    assert "1 token possible" in words(shown)


def test_a_click_on_a_bar_forces_that_token(stage: WindowStage) -> None:
    stage.loaded().ran(2)
    bars = panel(stage, "next-token").views()["Next token"].widget
    assert isinstance(bars, TokenBars)
    table = rows(panel(stage, "next-token"), "Next token")[1:-1]
    named = {10 + i for i in range(20)} - {11}  # what the scripted step knows the bytes of
    row = next(i for i, values in enumerate(table) if values[0] in named)
    place = QPoint(bars.width() // 2, round(17 + 21 * (row + 0.5)))
    pointer.move(bars, place)
    wanted = stage.state.selection.token_id
    assert wanted == table[row][0]
    QTest.mouseClick(bars, Qt.MouseButton.LeftButton, pos=place)
    assert stage.state.trace is not None
    assert stage.state.trace.chosen[-1].id == wanted
    assert stage.state.trace.chosen[-1].origin == "forced"
    assert "forced by you" in words(panel(stage, "next-token"))


def test_the_row_of_everything_else_cannot_be_forced(qapp: QApplication) -> None:
    from explorer.ui.canvases.tokens.token_bars import BarRow

    bars = TokenBars(THEMES["light"], ("raw", "after"))
    bars.resize(400, 300)
    bars.set_rows([BarRow(5, "five", 0.6, "60 %"), BarRow(-1, "others", 0.4, "40 %", rest=True)])
    show(bars)
    told: list[int] = []
    bars.clicked.connect(told.append)
    for y in range(0, 300, 4):
        QTest.mouseClick(bars, Qt.MouseButton.LeftButton, pos=QPoint(200, y))
    assert set(told) == {5}
    bars.close()


def test_broken_logits_are_a_sentence_not_a_chart(stage: WindowStage) -> None:
    from dataclasses import replace

    from explorer.trace.wire import messages as m
    from tests.session.scripted import made_step

    stage.loaded()
    stage.session.step()
    run = stage.prompted()
    bad = np.full(40, np.nan, np.float32)
    step = replace(made_step(0), logits=bad)
    token = step.top[0]
    stage.say(m.Stepped(run=run, step=step, token=token))
    assert panel(stage, "next-token").empty
    assert "NaN" in words(panel(stage, "next-token"))


def test_kv_cache_sets_measured_beside_the_formula(stage: WindowStage) -> None:
    stage.session.start_engine()
    stage.session.open_model("tiny")
    stage.session.set_prompt("x")
    stage.drain()
    stage.answer_load(kv_bytes_per_token=64)
    stage.ran(2)
    shown = panel(stage, "kv-cache")
    assert "256 bytes measured = formula" in words(shown)
    assert "1 KV head·4·4 bytes = 64 × 4 tokens" in words(shown)
    assert rows(shown, "Cache by layer") == [
        ("layer", "kind", "bytes", "formula_bytes"),
        (0, "full", 128, 128),
        (1, "full", 128, 128),
    ]
    assert [row[:3] for row in rows(shown, "Cache growth")[1:]] == [(0, 3, 192), (1, 4, 256)]


def test_kv_cache_says_why_there_is_none(stage: WindowStage) -> None:
    stage.loaded()
    stage.session.set_causal_mask(False)
    stage.ran(1, recompute=True)
    shown = panel(stage, "kv-cache")
    assert shown.empty
    assert "without the causal mask" in words(shown)


def test_nothing_is_saved_by_a_cache_before_the_second_pass(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    shown = words(panel(stage, "timings"))
    assert "3 positions computed" in shown
    assert "without a cache" not in shown


def test_timings_tell_prefill_from_decode(stage: WindowStage) -> None:
    stage.loaded().ran(3)
    shown = panel(stage, "timings")
    assert "Prefill 10 ms, then 10 ms/token (100/s)" in words(shown)
    assert "5 positions computed; without a cache: 12" in words(shown)
    table = rows(shown, "Time by token")
    assert [row[1] for row in table[1:]] == ["prefill", "decode", "decode"]
    assert rows(shown, "Time by layer")[-1][:2] == ("rest", 8.0)


def test_a_click_on_a_pass_selects_its_step(stage: WindowStage) -> None:
    stage.loaded().ran(4)
    chart = panel(stage, "timings").views()["Time by token"].widget
    place = QPoint(round(chart.width() * 0.4), chart.height() // 2)
    QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=place)
    assert stage.state.selection.step == 1


def test_a_hidden_panel_catches_up_when_it_is_shown(stage: WindowStage) -> None:
    dock = next(d for d in stage.window.docks.docks if d.panel.ID == "timings")
    dock.close()
    stage.paint()
    stage.loaded().ran(2)
    assert dock.panel.empty
    dock.show()
    stage.paint()
    assert not dock.panel.empty
