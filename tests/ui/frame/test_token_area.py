"""The sequence on top of the panels: the slider through the steps, and a click on a token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication

from explorer.trace.wire import messages as m
from tests.ui.stage import WindowStage


@pytest.fixture
def stage(qapp: QApplication, tmp_path: Path) -> Iterator[WindowStage]:
    stage = WindowStage(qapp, tmp_path)
    yield stage
    stage.look.zoom(0)
    stage.close()


def test_the_timeline_selects_and_then_stays_with_the_latest(stage: WindowStage) -> None:
    stage.loaded().ran(4)
    slider = stage.window.sequence.timeline.slider
    assert (slider.maximum(), slider.value()) == (3, 3)
    slider.setValue(1)
    assert stage.state.selection.step == 1
    slider.setValue(3)
    assert stage.state.selection.step is None


def test_which_step_is_looked_at_is_there_to_be_read(stage: WindowStage) -> None:
    stage.resize(1280, 720)
    stage.loaded().ran(3)
    stage.paint()
    timeline = stage.window.sequence.timeline
    assert timeline.rect().contains(timeline.label.geometry())
    assert timeline.label.shown == "Token 3 of 3"


def test_what_a_model_that_opens_waits_for_is_said_where_its_tokens_will_be(
    stage: WindowStage,
) -> None:
    stage.session.start_engine()
    stage.session.open_model("tiny")
    stage.drain()
    run = stage.engine.last(m.Load).run
    stage.say(m.Progress(run=run, text="Testing this: only the first time", fraction=0.5))
    words = stage.window.sequence._empty
    assert words.isVisible()
    assert words.text().startswith("Testing this: only the first time. You can")
    stage.answer_load()
    assert words.text().startswith("The tokens of your prompt")


def test_a_click_on_a_generated_token_goes_to_the_step_that_made_it(stage: WindowStage) -> None:
    stage.loaded().ran(3)
    stage.window.sequence.strip.picked.emit(len(stage.state.trace.prompt))  # type: ignore[union-attr]
    assert stage.state.selection.step == 0
    stage.window.sequence.strip.picked.emit(1)
    assert (stage.state.selection.step, stage.state.selection.query) == (0, 1)


class _Layouts(QObject):
    """Counts how often a widget was asked to lay itself out."""

    count = 0

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.count += event.type() == QEvent.Type.LayoutRequest
        return False


def test_a_step_lays_out_nothing_anew(stage: WindowStage) -> None:
    """A label that grew by a letter would have the whole window laid out with every step."""
    stage.loaded().ran(3)
    stage.paint()
    layouts = _Layouts()
    stage.window.sequence.timeline.installEventFilter(layouts)
    stage.session.select(step=0)
    stage.paint()
    assert stage.window.sequence.timeline.label.text() == "Token 1 of 3 (reading the prompt)"
    assert not layouts.count


@pytest.mark.parametrize("zoom", [0, 3])
def test_the_longest_words_have_room(stage: WindowStage, zoom: int) -> None:
    stage.look.zoom(zoom)
    stage.loaded().ran(4)
    stage.paint()
    label = stage.window.sequence.timeline.label
    assert label.text() == "Token 4 of 4"
    assert label.shown == label.text()
