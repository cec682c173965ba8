"""Stop rules in the window: what is typed, what is wished, what is said when one stopped a run."""

from __future__ import annotations

from PySide6.QtTest import QTest

from explorer.trace.request import Stops
from explorer.trace.wire import messages as m
from explorer.ui.inputs.stop_rules import parsed, worded
from tests.ui.stage import WindowStage


def test_what_is_typed_comes_back_as_it_can_be_seen() -> None:
    assert parsed(r"\n\n|. |x|x||") == ("\n\n", ". ", "x")
    assert worded(("\n\n", ". ")) == "↵↵|.␣"
    assert parsed(worded((" a\tb\n",))) == (" a\tb\n",)


def test_rules_go_with_the_next_run_and_change_no_request(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    stops = stage.window.stops
    stops.most.setValue(7)
    stops.text.setFocus()
    QTest.keyClicks(stops.text, "END|t11")
    stops.text.editingFinished.emit()
    stops.ends.click()
    wanted = Stops(end_tokens=False, strings=("END", "t11"), tokens=7)
    assert stage.state.stops == wanted
    assert not stage.state.request_changed
    stage.session.step(5)
    asked = stage.engine.last(m.Advance)
    assert asked.stops == wanted
    assert asked.chosen == (10,)
    stage.prompted()
    stage.steps(1)
    stage.finish("stop string")
    assert stage.window.status.text == "Stopped: the text contains a stop string, t11"
    stage.session.undo()  # the step
    assert stage.state.stops == wanted
    stage.session.undo()
    assert stage.state.stops.end_tokens


def test_the_end_token_that_stopped_is_named(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    stage.session.step()
    stage.steps(1)
    stage.finish("end token")
    assert stage.window.status.text.endswith("an end token, t11")
