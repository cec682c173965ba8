"""Records that an engine on another machine kept, and the engine of now does not."""

from __future__ import annotations

import msgspec

from explorer.trace.wire.away import sent_later
from tests.session.scripted import Stage, made_step, stepped


def test_what_is_here_stays_though_other_records_are_gone(stage: Stage) -> None:
    stage.loaded().session.step(2)
    run = stage.prompted()
    stage.steps(1)
    stage.say(msgspec.structs.replace(stepped(run, 1), step=sent_later(made_step(1), "gone.1")))
    assert stage.state.trace is not None
    first, second = (step.layers[0] for step in stage.state.trace.steps)
    assert first.kind == "qk"
    assert (second.kind, second.away) == ("absent", 0)
