"""What a step costs the window's thread, at the size of the small teaching model.

Processor time, not time on the clock: it hardly depends on what else the machine does.  The limits
are far above what is measured, so that only a real slip fails.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEventLoop
from PySide6.QtWidgets import QApplication

from explorer.trace import messages as m
from explorer.trace.trace import Trace
from explorer.ui.panels.attention import AttentionPanel
from tests.figures.runs import Run
from tests.ui.stage import WindowStage

PROMPT, STEPS, VOCABULARY = 112, 24, 49_152
STEP_MS = 60.0  # all four panels; about 25 on two shared cores
TURN_MS = 50.0  # of one turn of Qt's loop: longer, and the window is felt to hang


@pytest.fixture
def stage(qapp: QApplication, tmp_path: Path) -> Iterator[WindowStage]:
    stage = WindowStage(qapp, tmp_path)
    stage.window.resize(1280, 720)
    stage.loaded()
    yield stage
    stage.close()


def run_of_the_teaching_models_size() -> Trace:
    """30 layers of 9 heads, and a vocabulary to match."""
    run = Run(layers=30, heads=9, kv_heads=3, head_dim=64)
    made = run.decode(run.prefill(PROMPT), STEPS)
    rng = np.random.default_rng(1)
    steps = []
    for step in made.steps:
        logits = rng.standard_normal(VOCABULARY).astype(np.float32)
        logits.flags.writeable = False
        steps.append(replace(step, logits=logits))
    return replace(made, steps=tuple(steps))


def turns(stage: WindowStage, event: m.Event) -> list[float]:
    """Milliseconds of this thread in each turn of the loop, from the event to the last picture."""
    (panel,) = (p for p in stage.window.docks.panels if isinstance(p, AttentionPanel))
    began = time.thread_time()
    stage.say(event)
    found = [time.thread_time() - began]
    while panel.source.busy:
        began = time.thread_time()
        stage.app.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
        found.append(time.thread_time() - began)
    began = time.thread_time()
    stage.paint()
    return [1000 * seconds for seconds in (*found, time.thread_time() - began)]


@pytest.mark.timeout(120)
def test_a_step_is_painted_in_all_panels_without_holding_the_window_up(stage: WindowStage) -> None:
    trace = run_of_the_teaching_models_size()
    stage.session.run()
    run = stage.engine.last(m.Advance).run
    stage.say(m.Prompted(run=run, tokens=trace.prompt))
    spent = []
    for step, token in zip(trace.steps, trace.chosen, strict=True):
        spent.append(turns(stage, m.Stepped(run=run, step=step, token=token)))
    assert stage.state.trace is not None
    assert len(stage.state.trace.steps) == STEPS + 1
    for panel in stage.window.docks.panels[:4]:
        assert not panel.empty, panel.ID
    decode = spent[3:]  # without the first pictures of each kind
    assert statistics.median(map(sum, decode)) < STEP_MS
    assert statistics.median(map(max, decode)) < TURN_MS
