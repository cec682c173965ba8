"""The strip coloured by how the model foresaw its tokens, over a scripted engine."""

from __future__ import annotations

import math

import pytest
from PySide6.QtGui import QColor

from explorer.trace.experiments import ScorePrompt
from explorer.trace.wire import messages as m
from explorer.ui.canvases.tokens.token_box import level_ink
from explorer.ui.look.theme import Ink
from tests.session.scripted import PROMPT
from tests.ui.stage import WindowStage

SURPRISAL, PROBABILITY = 1, 3
FACTS = {
    "slots": list(range(1, len(PROMPT))),
    "nats": [math.log(4)] * (len(PROMPT) - 1),
    "entropy_bits": [2.0] * (len(PROMPT) - 1),
    "ranks": [3] * (len(PROMPT) - 1),
    "top": [[(1, 0.5)]] * (len(PROMPT) - 1),
    "passes": 1,
}


def scored(stage: WindowStage) -> None:
    asked = stage.engine.last(ScorePrompt)
    assert asked.request == stage.state.trace.request  # type: ignore[union-attr]
    stage.say(m.Facts(run=asked.run, facts=FACTS))


def test_choosing_asks_for_the_prompt_once_and_shows_it(stage: WindowStage) -> None:
    sequence = stage.window.sequence
    stage.loaded().ran(2)
    assert stage.engine.count(ScorePrompt) == 0
    sequence.colours.box.setCurrentIndex(SURPRISAL)
    assert sequence.strip.levels[: len(PROMPT)] == (None,) * len(PROMPT)
    assert all(level is not None for level in sequence.strip.levels[len(PROMPT) :])
    assert "has not been scored" in sequence.strip.words(1)
    scored(stage)
    vocabulary = stage.state.trace.card.vocab_size  # type: ignore[union-attr]
    expected = min(1.0, math.log(4) / math.log(vocabulary))
    assert sequence.strip.levels[0] is None
    assert "nothing comes before" in sequence.strip.words(0)
    assert sequence.strip.levels[1] == pytest.approx(expected)
    assert "1.39 nats, probability 25.0 %, rank 4" in sequence.strip.words(1)
    stage.session.step()
    stage.steps(1)
    stage.finish()
    assert len(sequence.strip.levels) == len(PROMPT) + 3
    assert stage.engine.count(ScorePrompt) == 1
    sequence.colours.box.setCurrentIndex(PROBABILITY)
    assert sequence.strip.levels[1] == pytest.approx(0.25)
    sequence.colours.box.setCurrentIndex(0)
    assert sequence.strip.levels == ()
    assert "nats" not in sequence.strip.words(1)


def colour(stage: WindowStage, slot: int) -> QColor:
    """What fills the box of a token."""
    stage.paint()
    strip = stage.window.sequence.strip
    image, rect = strip.grab().toImage(), strip.box_rect(slot)
    ratio = image.devicePixelRatio()
    return image.pixelColor(round((rect.left() + 3) * ratio), round(rect.center().y() * ratio))


def test_the_colour_is_painted_and_goes_again(stage: WindowStage) -> None:
    sequence = stage.window.sequence
    stage.loaded().ran(2)
    plain = colour(stage, 1)
    sequence.colours.box.setCurrentIndex(SURPRISAL)
    scored(stage)
    level = sequence.strip.levels[1]
    assert level is not None
    assert colour(stage, 1) == QColor(level_ink(level, Ink("", "", "")).fill) != plain
    sequence.colours.box.setCurrentIndex(0)
    assert colour(stage, 1) == plain


def test_another_prompt_is_asked_for_when_it_has_run(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    stage.window.sequence.colours.box.setCurrentIndex(SURPRISAL)
    scored(stage)
    stage.session.set_prompt("another")
    assert stage.engine.count(ScorePrompt) == 1
    stage.ran(1)
    assert stage.engine.count(ScorePrompt) == 2
    assert stage.window.sequence.strip.levels[1] is None
    stage.session.step()  # the user's own wish takes the engine
    assert m.Cancel(run=stage.engine.last(ScorePrompt).run) in stage.engine.asked


def test_a_prompt_that_cannot_be_scored_is_not_asked_for_again_and_again(
    stage: WindowStage,
) -> None:
    stage.loaded().ran(1)
    stage.window.sequence.colours.box.setCurrentIndex(SURPRISAL)
    run = stage.engine.last(ScorePrompt).run
    stage.say(m.Failed(run=run, sentence="It failed; try another."))
    assert stage.state.error == "It failed; try another."
    assert stage.engine.count(ScorePrompt) == 1
