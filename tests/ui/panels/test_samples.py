"""Many draws and the search: what is asked, and the figures in words that are true of them."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtWidgets import QLabel

from explorer.trace.experiments import DrawMany, Draws, SearchSequences
from explorer.trace.request import Sampling
from explorer.trace.wire import messages as m
from explorer.ui.panels.samples import DrawsPanel
from tests.ui.stage import WindowStage
from tests.ui.waiting import wait_until

FIRST = [
    {"id": 10, "raw": b" a", "exact": 0.75, "raw_probability": 0.6, "drawn": 7},
    {"id": 11, "raw": b"\n", "exact": 0.25, "raw_probability": 0.2, "drawn": 3},
]
DRAWN = {
    "count": 10, "asked": 10, "length": 1, "passes": 1, "distinct": 2, "first": FIRST,
    "continuations": [{"ids": [10], "raw": b" a", "drawn": 7}, {"ids": [11], "raw": b"\n",
                       "drawn": 3}],
}  # fmt: skip


def panel_of(stage: WindowStage) -> DrawsPanel:
    dock = next(d for d in stage.window.docks.docks if d.panel.ID == "draws")
    dock.show()
    dock.raise_()
    stage.paint()
    assert isinstance(dock.panel, DrawsPanel)
    return dock.panel


def words(shown: DrawsPanel) -> str:
    return "\n".join(label.text() for label in shown.findChildren(QLabel) if label.isVisible())


def test_draws_are_asked_for_with_the_controls_settings_and_shown(stage: WindowStage) -> None:
    stage.loaded().ran(2)
    shown = panel_of(stage)
    assert not shown.draw_button.isEnabled()
    assert "Greedy always gives the same" in words(shown)
    sampling = Sampling(greedy=False, temperature=0.5)
    stage.session.set_sampling(sampling)
    shown.count.setValue(10)
    shown.length.setValue(1)
    shown.draw_button.click()
    asked = stage.engine.last(DrawMany)
    assert (asked.count, asked.length, asked.sampling, asked.chosen) == (10, 1, sampling, (10,))
    assert stage.state.status.activity == "running"
    stage.say(m.Progress(run=asked.run, text="Drawing: 1 passes", fraction=0.5))
    assert stage.state.status.fraction == 0.5
    stage.say(m.Facts(run=asked.run, facts=DRAWN))
    assert stage.state.status.activity == "idle"
    assert "10 samples of 1 token each (1 pass): 2 different continuations." in words(shown)
    assert "differ by 5.0 percentage points" in words(shown)
    bars = shown.bars.rows
    assert [(r.label, r.first, r.second) for r in bars] == [("␣a", 0.75, 0.7), ("↵", 0.25, 0.3)]
    stage.session.select(step=0)  # another prefix
    assert "10 samples" not in words(shown)
    stage.session.select(step=1)
    assert "10 samples" in words(shown)


def test_draws_show_as_they_come_and_those_made_stay_when_the_rest_is_stopped(
    stage: WindowStage,
) -> None:
    stage.loaded().ran(1)
    stage.session.set_sampling(Sampling(greedy=False))
    shown = panel_of(stage)
    shown.draw_button.click()
    run = stage.engine.last(DrawMany).run
    wait_until(lambda: stage.window.docks.settled)
    assert "Sampling…" in words(shown)
    first = [{**FIRST[0], "drawn": 3}, {**FIRST[1], "drawn": 1}]
    again = [{**DRAWN["continuations"][0], "drawn": 4}]
    part = {**DRAWN, "count": 4, "asked": 50, "first": first, "continuations": again}
    stage.say(m.PartFacts(run=run, facts=part), m.Progress(run=run, text="…", fraction=0.1))
    wait_until(lambda: stage.window.docks.settled)
    assert "4 of 50 samples so far" in words(shown)
    assert [row.second for row in shown.bars.rows] == [0.75, 0.25]
    assert not shown.draw_button.isEnabled()
    assert shown.stop_draws_button.isEnabled()
    shown.stop_draws_button.click()
    assert stage.engine.last(m.Cancel).run == run
    stage.say(m.PartFacts(run=run, facts={**part, "count": 5}))  # stale
    assert "Stopped after 4 of 50 samples" in words(shown)
    assert not shown.stop_draws_button.isEnabled()
    shown.draw_button.click()
    wait_until(lambda: stage.window.docks.settled)
    assert "50 samples" not in words(shown)  # those of before are not the first of the new ones


def test_pause_and_step_end_an_experiment(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    stage.session.set_sampling(Sampling(greedy=False))
    stage.session.measure(DrawMany, count=10, length=5)
    run = stage.engine.last(DrawMany).run
    stage.session.pause()
    assert stage.engine.last(m.Cancel).run == run
    assert stage.state.status.activity == "idle"
    stage.say(m.Facts(run=run, facts=DRAWN))
    assert stage.state.measured_of(Draws) is None  # stale


def found(**changes: Any) -> dict[str, Any]:
    one = {"ids": [1, 2], "raw": [b" a", b" b"], "log_probability": -2.3, "probability": 0.1}
    two = {"ids": [3, 4], "raw": [b" c", b"\n"], "log_probability": -1.6, "probability": 0.2}
    return {
        "length": 2, "width": 4, "passes": 9, "greedy": one, "best": two, "beats_greedy": True,
        "proven": True, "bound": 0.2, **changes,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "2 times as likely as the greedy one. Proved in 9 passes."),
        ({"beats_greedy": False, "best": found()["greedy"]}, "No better sequence exists"),
        (
            {"beats_greedy": False, "best": found()["greedy"], "proven": False, "bound": 0.25},
            "within these limits. Not settled in 9 passes: a sequence of up to 25.0 %",
        ),
        ({"proven": False}, "2 times as likely as the greedy one. Not settled in 9 passes"),
    ],
)
def test_the_search_says_what_is_proven_and_no_more(
    stage: WindowStage, changes: dict[str, Any], said: str
) -> None:
    stage.loaded().ran(1)
    shown = panel_of(stage)
    shown.tabs.setCurrentIndex(1)
    shown.search_button.click()
    asked = stage.engine.last(SearchSequences)
    assert (asked.length, asked.width, asked.passes) == (4, 4, 200)
    stage.say(m.Facts(run=asked.run, facts=found(**changes)))
    assert said in words(shown)
    assert shown.found_table.item(0, 1).text() == "␣a␣b"  # type: ignore[union-attr]


def test_without_its_model_it_says_what_is_needed(stage: WindowStage) -> None:
    stage.session.measure(SearchSequences, length=4, width=4, passes=100)
    assert "Open the model and press Step" in stage.state.error


def test_a_scene_or_file_turns_to_the_search(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    shown = panel_of(stage)
    assert shown.choices() == {"tab": 0.0}
    shown.choose({"tab": 1.0})
    assert shown.tabs.currentIndex() == 1
    for unknown in ({"tab": 7.0}, {"tab": "search"}, {}):
        shown.choose(unknown)
        assert shown.choices() == {"tab": 1.0}
