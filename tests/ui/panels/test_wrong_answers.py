"""An answer that is none, of a broken or foreign engine, is one sentence, and no panel falls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest

from explorer.trace.experiments import AnyExperiment, Experiment, UnfitAnswer
from explorer.trace.wire import messages as m
from tests.session.answers import ANSWERS
from tests.ui.stage import WindowStage
from tests.ui.waiting import wait_until

SENTENCE = str(UnfitAnswer(""))
HUGE = (1 << 20) + 1


def wrong(answer: Any) -> Iterator[Any]:
    """The answer with each of its fields spoilt in turn, those of structs in it too."""
    for name, value in answer.items():
        yield {key: other for key, other in answer.items() if key != name}
        yield {**answer, name: object if isinstance(value, str) else "no such thing"}
        if isinstance(value, float):
            yield {**answer, name: float("nan")}
        if isinstance(value, int) and not isinstance(value, bool):
            yield {**answer, name: -1}
            yield {**answer, name: 2**63}
        if isinstance(value, dict):
            yield from ({**answer, name: inner} for inner in wrong(value))
        if isinstance(value, list):
            yield {**answer, name: value * HUGE}
            if value and isinstance(value[0], dict):
                spoilt = (one for one in wrong(value[0]) if not optional(value[0], one))
                yield from ({**answer, name: [inner, *value[1:]]} for inner in spoilt)


def optional(right: dict[str, Any], spoilt: dict[str, Any]) -> bool:
    """True for a layer without keys or values, which is one that keeps none."""
    return "value" in right and right.keys() != spoilt.keys()


def shown(stage: WindowStage) -> None:
    for dock in stage.window.docks.docks:
        dock.show()
    wait_until(lambda: stage.window.docks.settled)


def test_each_experiment_has_its_answer_here() -> None:
    assert set(get_args(AnyExperiment)) == set(ANSWERS)


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_wrong_answer_is_a_sentence_and_the_next_right_one_is_shown(
    stage: WindowStage, kind: type[Experiment], caplog: pytest.LogCaptureFixture
) -> None:
    stage.loaded().ran(2)
    shown(stage)
    for number, spoilt in enumerate([None, 3, [], {}, *wrong(ANSWERS[kind])]):
        caplog.clear()
        stage.session.measure(kind)
        assert stage.state.error == ""
        assert stage.state.status.text == kind.RUNNING
        stage.say(m.Facts(run=stage.engine.last(kind).run, facts=spoilt))
        assert stage.state.error == SENTENCE, (number, str(spoilt)[:300])
        assert f"{kind.RESULT.__name__}: " in caplog.text  # what was wrong with it
        assert stage.state.status.activity == "idle"
        assert stage.state.measured_of(kind.RESULT) is None
    wait_until(lambda: stage.window.docks.settled)
    stage.session.measure(kind)
    stage.say(m.Facts(run=stage.engine.last(kind).run, facts=ANSWERS[kind]))
    assert stage.state.error == ""
    assert stage.state.measured_of(kind.RESULT) is not None
    wait_until(lambda: stage.window.docks.settled)
