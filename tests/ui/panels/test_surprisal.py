"""The surprisal panel: each token's own figure, before and after the prompt was scored."""

from __future__ import annotations

import math

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton

from explorer.trace.experiments import ScorePrompt
from explorer.trace.wire import messages as m
from explorer.ui.access.accessible import line_of
from explorer.ui.canvases.charts.chart import ChartReading
from explorer.ui.panels.surprisal import SurprisalPanel
from tests.session.scripted import PROMPT
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
    stage.window.docks.open("surprisal")
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
    assert "nothing comes before it" in line_of(panel.chart)
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
