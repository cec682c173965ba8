"""Panels that ask by themselves: where no answer will come they say why, and never wait for one."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtWidgets import QLabel

from explorer.trace.experiments import Experiment
from explorer.trace.request import Form
from explorer.trace.wire import messages as m
from explorer.ui.panel.panel import Panel
from tests.session.scripted import PROMPT
from tests.ui.stage import WindowStage
from tests.ui.waiting import wait_until

ASKING = ("block", "stream", "lens", "attribution")


def opened(stage: WindowStage, name: str) -> Panel:
    panel = stage.window.docks.bring_up(name)
    stage.paint()
    assert panel is not None
    return panel


def words(panel: Panel) -> str:
    return "\n".join(label.text() for label in panel.findChildren(QLabel) if label.isVisible())


@pytest.mark.parametrize("name", ASKING)
def test_the_engine_was_lost(stage: WindowStage, name: str) -> None:
    stage.loaded().ran(1)
    panel = opened(stage, name)
    stage.say(m.Lost(sentence="The engine's process ended."))
    said = words(panel)
    assert "…" not in said
    assert "Restart it" in said or "has not been read yet" in said


@pytest.mark.parametrize("name", ASKING)
def test_a_position_of_padding_is_looked_at(stage: WindowStage, name: str) -> None:
    stage.loaded()
    stage.session.step(1)
    run = stage.engine.last(m.Advance).run
    tokens = (msgspec.structs.replace(PROMPT[0], origin="padding"), *PROMPT[1:])
    stage.say(m.Prompted(run=run, tokens=tokens))
    stage.steps(1)
    stage.finish()
    stage.session.select(query=0)
    assert "Position 0 is padding and is not read" in words(opened(stage, name))


@pytest.mark.parametrize("form", ["as-is", "float32"])
@pytest.mark.parametrize("name", [*ASKING, "model"])
def test_what_a_file_as_it_is_does_not_give_can_be_had_converted(
    stage: WindowStage, name: str, form: Form
) -> None:
    stage.session.start_engine()
    stage.session.open_model("a.gguf", form=form)
    stage.drain()
    stage.answer_load(form=form)
    stage.session.set_prompt("x")
    stage.ran(1)
    panel = opened(stage, name)
    wait_until(lambda: stage.state.status.experiment is not None)
    stage.say(m.Failed(run=stage.engine.last(Experiment).run, sentence="Not offered."))
    stage.paint()
    assert "Not offered." in words(panel)
    assert panel.convert.isVisible() == (form == "as-is")
    if form == "as-is":
        panel.convert.click()
        stage.drain()
        asked = stage.engine.last(m.Load)
        assert (asked.model, asked.form) == ("a.gguf", "float32")
