"""The surprisal panel: each token's own figure, before and after the prompt was scored."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton

from explorer.trace.experiments import ScorePrompt
from explorer.trace.files import dxt
from explorer.trace.wire import messages as m
from explorer.ui.access.accessible import line_of
from explorer.ui.canvases.charts.chart import ChartReading
from explorer.ui.panels.surprisal import SurprisalPanel
from tests.session.saving.test_trace_files import made_trace
from tests.session.saving.test_trace_files import settle as read
from tests.session.scripted import PROMPT, card
from tests.ui.stage import WindowStage

SCORED = range(1, len(PROMPT))
FACTS = {
    "slots": list(SCORED),
    "nats": [math.log(slot + 1) for slot in SCORED],
    "entropy_bits": [2.0] * len(SCORED),
    "ranks": [3] * len(SCORED),
    "top": [[(1, 0.5)]] * len(SCORED),
    "passes": 1,
}


def opened(stage: WindowStage) -> SurprisalPanel:
    stage.window.docks.bring_up("surprisal")
    stage.paint()
    (panel,) = (p for p in stage.window.docks.panels if isinstance(p, SurprisalPanel))
    return panel


def drawn(panel: SurprisalPanel) -> ChartReading:
    found = panel.chart.drawn
    assert found is not None
    return found


def words(panel: SurprisalPanel) -> str:
    return "\n".join(label.text() for label in panel.findChildren(QLabel) if label.isVisible())


def button(panel: SurprisalPanel) -> QPushButton:
    return next(b for b in panel.findChildren(QPushButton) if b.text() == "Score the prompt")


def test_generated_tokens_are_known_at_once_and_the_prompt_when_it_was_scored(
    stage: WindowStage,
) -> None:
    stage.loaded().ran(2)
    panel = opened(stage)
    trace = stage.state.trace
    assert trace is not None
    made = [-math.log(step.draw.raw_probability) for step in trace.steps]
    places, nats = drawn(panel).series["surprisal"]
    assert places.tolist() == list(range(len(PROMPT) + 2))
    np.testing.assert_allclose(nats, [0.0] * len(PROMPT) + made)
    assert "prompt not scored yet" in words(panel)
    assert button(panel).isVisible()
    QTest.mouseClick(button(panel), Qt.MouseButton.LeftButton)
    asked = stage.engine.last(ScorePrompt)
    stage.say(m.Facts(run=asked.run, facts=FACTS))
    _, nats = drawn(panel).series["surprisal"]
    np.testing.assert_allclose(nats, [0.0, *FACTS["nats"], *made])
    _, entropy = drawn(panel).series["entropy (expected surprisal)"]
    assert entropy[0] == pytest.approx(2 * math.log(2))
    assert not button(panel).isVisible()
    assert f"(tokens: {len(SCORED)})" in words(panel)


def test_keys_read_each_token_and_a_click_goes_to_its_step(stage: WindowStage) -> None:
    stage.loaded().ran(3)
    panel = opened(stage)
    panel.chart.setFocus()
    QTest.keyClick(panel.chart, Qt.Key.Key_Home)
    assert "nothing comes before this token" in line_of(panel.chart)
    QTest.keyClick(panel.chart, Qt.Key.Key_Right)
    assert "no surprisal yet" in line_of(panel.chart)
    QTest.keyClick(panel.chart, Qt.Key.Key_End)
    assert "surprisal" in line_of(panel.chart)
    point = panel.chart.point_of(len(PROMPT) + 1).toPoint()
    QTest.mouseClick(panel.chart, Qt.MouseButton.LeftButton, pos=point)
    assert stage.state.step_index == 1


def test_the_unit_of_the_window_is_the_unit_of_the_axis(stage: WindowStage) -> None:
    stage.loaded().ran(2)
    panel = opened(stage)
    nats = drawn(panel)
    assert nats.ticks[1][0] == "0 nats"
    stage.window.preferences.toggle("nats")
    stage.paint()
    bits = drawn(panel)
    assert bits.ticks[1][0] == "0 bits"
    np.testing.assert_allclose(
        bits.series["surprisal"][1], nats.series["surprisal"][1] / math.log(2)
    )


def test_it_says_what_to_do_while_there_is_no_run(stage: WindowStage) -> None:
    panel = opened(stage.loaded())  # type: ignore[arg-type]
    assert panel.empty
    assert "press Step" in words(panel)


def scored(stage: WindowStage, nats: list[float]) -> SurprisalPanel:
    panel = opened(stage)
    QTest.mouseClick(button(panel), Qt.MouseButton.LeftButton)
    asked = stage.engine.last(ScorePrompt)
    stage.say(m.Facts(run=asked.run, facts={**FACTS, "nats": nats}))
    return panel


def test_a_token_of_probability_0_says_that_its_surprisal_has_no_end(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    panel = scored(stage, [math.inf, 3.0])
    shown = drawn(panel)
    assert shown.notes == ("↑ ∞ nats",)
    assert shown.ranges[1][1] == pytest.approx(3.0, rel=0.1)
    assert shown.series["surprisal"][1][1] > shown.ranges[1][1]
    panel.chart.setFocus()
    QTest.keyClick(panel.chart, Qt.Key.Key_Home)
    QTest.keyClick(panel.chart, Qt.Key.Key_Right)
    assert "surprisal ∞ nats, probability 0 %" in line_of(panel.chart)


def test_a_large_perplexity_is_a_whole_number(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    panel = scored(stage, [math.log(10_722)] * 2)
    assert "perplexity 10,722" in words(panel)


def test_a_run_without_the_mask_says_that_its_prompt_was_seen(stage: WindowStage) -> None:
    stage.loaded()
    stage.session.set_causal_mask(False)
    stage.ran(1, recompute=True)
    panel = scored(stage, [1.0, 2.0])
    assert words(panel).startswith("Causal mask off: the model could already see the prompt. ")
    panel.chart.setFocus()
    caveat = "(causal mask off: the model could already see this token)"
    QTest.keyClick(panel.chart, Qt.Key.Key_End)
    assert caveat not in line_of(panel.chart)
    QTest.keyClick(panel.chart, Qt.Key.Key_Left)
    assert caveat in line_of(panel.chart)
    stage.window.sequence.colours.box.setCurrentIndex(1)
    assert caveat in stage.window.sequence.strip.words(len(PROMPT) - 1)


def test_the_prompt_is_scored_by_the_model_of_the_run_alone(
    stage: WindowStage, tmp_path: Path
) -> None:
    stage.loaded().ran(1)
    panel = opened(stage)
    assert button(panel).isEnabled()
    trace = made_trace()
    asked = msgspec.structs.replace(trace.request, model="other")
    dxt.save(replace(trace, request=asked, card=card("other")), tmp_path / "run.dxt")
    stage.session.saving.open(tmp_path / "run.dxt")
    read(stage)
    stage.paint()
    assert button(panel).isVisible()
    assert not button(panel).isEnabled()
    assert "Only the model of this run can score its prompt" in button(panel).toolTip()


def test_a_prompt_that_cannot_be_scored_says_why(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    panel = opened(stage)
    stage.session.report("Something earlier.")
    QTest.mouseClick(button(panel), Qt.MouseButton.LeftButton)
    assert stage.state.error == ""  # the user asked: what was said before is over
    run = stage.engine.last(ScorePrompt).run
    stage.say(m.Failed(run=run, sentence="It failed."))
    assert stage.state.error == "It failed."
