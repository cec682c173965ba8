"""While the first step is on its way, empty panels say what the engine does."""

from __future__ import annotations

from explorer.session.driver import UNREAD_EARLIER
from explorer.trace.wire import messages as m
from tests.ui.stage import WindowStage
from tests.ui.waiting import wait_until

STANDING = ("attention", "next-token", "kv-cache", "timings")


def said(stage: WindowStage) -> set[str]:
    """What the empty panels that are seen say, once all show the newest state."""
    wait_until(lambda: stage.window.docks.settled)
    docks = [dock for dock in stage.window.docks.docks if dock.in_front]
    return {dock.panel._empty.text() for dock in docks if dock.panel.empty}


def test_opening_a_model_is_told_in_the_panels(stage: WindowStage) -> None:
    stage.session.start_engine()
    stage.drain()
    stage.session.open_model("tiny")
    assert said(stage) == {"Opening tiny…"}
    run = stage.engine.last(m.Load).run
    stage.say(m.Progress(run=run, text="Reading the weights", fraction=0.5))
    assert said(stage) == {"Reading the weights"}
    stage.answer_load()
    assert all("Step" in words for words in said(stage))


def test_a_long_prompt_is_told_with_its_tokens_and_its_end(stage: WindowStage) -> None:
    stage.loaded().ran(2)
    earlier = stage.state.trace
    stage.session.set_prompt("a long one")
    stage.session.step()
    run = stage.prompted()
    assert said(stage) == {"Reading the prompt: 3 tokens…"}
    text = "Reading the text: 512 of 4,000 tokens"
    stage.say(m.Progress(run=run, text=text, fraction=0.128))
    assert said(stage) == {text}
    assert stage.window.status.text == text
    stage.session.cancel()
    assert said(stage) == set()
    assert stage.state.trace is earlier
    assert stage.window.status.text == UNREAD_EARLIER


def test_after_a_first_prompt_was_cancelled_the_panels_say_what_to_do(stage: WindowStage) -> None:
    stage.loaded().session.step()
    stage.prompted()
    stage.session.cancel()
    assert all("Step" in words for words in said(stage))
