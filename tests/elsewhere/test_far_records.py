"""Queries and keys of an engine on another machine: sent when they are looked at, and the same."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from explorer.cli import line_bench
from explorer.cli.client import Client
from explorer.figures.attention import atlas, head_means, head_scores, maps
from explorer.figures.attention.mask_pair import Side
from explorer.session.connection.ports import Engine
from explorer.session.connection.remote import EngineProcess
from explorer.session.jobs import far_records
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.files import dxt
from explorer.trace.trace import Trace
from explorer.trace.wire import away
from tests.elsewhere.server import Server
from tests.engine import folders
from tests.engine.local_engine import LocalEngine

pytestmark = [pytest.mark.ssh, pytest.mark.timeout(300)]
PROMPT = "the cat sat on the mat"


class Window:
    """What a window would do with its session."""

    def __init__(self, engine: Callable[[], Engine], model: Path) -> None:
        self._posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.session = Session(engine, self._posted.put)
        self.session.start_engine()
        self.session.open_model(str(model))
        self.session.set_prompt(PROMPT)
        self.until(lambda state: state.card is not None and bool(state.prompt_tokens))

    @property
    def state(self) -> State:
        return self.session.state

    @property
    def trace(self) -> Trace:
        assert self.state.trace is not None, self.state.error
        return self.state.trace

    def until(self, condition: Callable[[State], bool]) -> None:
        while not condition(self.state):
            self._posted.get(timeout=40)()

    def step(self, steps: int) -> None:
        before = len(self.state.trace.steps) if self.state.trace else 0
        self.session.step(steps)
        self.until(lambda s: s.trace is not None and len(s.trace.steps) == before + steps)

    def rest(self) -> None:
        """Until nothing is computed, checked or fetched."""
        self.until(lambda s: s.status.activity == "idle" and s.fetching is None and rested(s))


def rested(state: State) -> bool:
    """True once the layer that is looked at has come for every pass."""
    shown = state.shown
    return shown is not None and not any(one.layers[shown.layer].away for one in shown.passes)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four heads over two key heads, three layers."""
    return folders.write_folder(tmp_path_factory.mktemp("tiny"), folders.model(eos_token_id=None))


@pytest.fixture(scope="module")
def pair(there: Server, model: Path) -> Iterator[tuple[Window, Window]]:
    """A session over an engine behind ssh, and one over this program's own."""
    command = there.command("gpu-box", "decoder-explorer", "engine")
    far = Window(lambda: EngineProcess(command), model)
    here = Window(LocalEngine, model)
    for one in (far, here):
        one.step(3)
    yield far, here
    for one in (far, here):
        one.session.close()


def test_whose_machine_it_is(pair: tuple[Window, Window]) -> None:
    far, here = pair
    assert far.state.host
    assert here.state.host == ""


def test_a_step_comes_without_what_nobody_looks_at(pair: tuple[Window, Window]) -> None:
    far, here = pair
    far.session.select(layer=1, head=2)
    far.rest()
    assert [record.away for record in far.trace.steps[0].layers] == [4, 0, 4]
    assert not any(record.away for step in here.trace.steps for record in step.layers)


def test_every_head_has_the_map_of_an_engine_here(pair: tuple[Window, Window]) -> None:
    far, here = pair
    last = len(here.trace.steps) - 1
    for layer in range(3):
        far.session.select(layer=layer, head=0)
        far.rest()
        for head in range(4):
            theirs = maps.full_map(far.trace, last, layer, head)
            ours = maps.full_map(here.trace, last, layer, head)
            np.testing.assert_allclose(theirs.weights, ours.weights, atol=1e-6)
            np.testing.assert_array_equal(theirs.kinds, ours.kinds)
            row = maps.row(far.trace, last, layer, head, 2)
            np.testing.assert_allclose(row.weights, ours.weights[2], atol=1e-6)


def test_the_pictures_of_all_heads_are_drawn_there(pair: tuple[Window, Window]) -> None:
    far, here = pair
    far.session.reset()
    far.step(3)
    far.rest()
    drawn = far.state.atlas_from_engine
    assert drawn is not None
    *_, ours = atlas.build(here.trace, 2)
    assert drawn.heads == ours.heads == (4, 4, 4)
    assert drawn.stride == ours.stride
    assert np.abs(drawn.levels.astype(int) - ours.levels.astype(int)).max() <= 1


def test_a_head_can_be_looked_at_before_its_layer_is_here(pair: tuple[Window, Window]) -> None:
    whole = pair[1].trace
    record = whole.steps[0].layers[0]
    steps = [away.sent_later(step, f"x.{step.index}") for step in whole.steps]
    for step, one in zip(list(steps), whole.steps, strict=True):
        part = away.part_of(one.layers[0], 1)
        layers = (away.with_part(step.layers[0], 1, part), *step.layers[1:])
        steps[step.index] = replace(step, layers=layers)
    trace = replace(whole, steps=tuple(steps))
    assert record.heads == 4
    for head in (2, 3):
        found = maps.full_map(trace, 2, 0, head)
        np.testing.assert_array_equal(found.weights, maps.full_map(whole, 2, 0, head).weights)
    with pytest.raises(ValueError, match="still on the engine's machine"):
        maps.full_map(trace, 2, 0, 1)


def test_what_takes_every_head_is_not_made_of_some(pair: tuple[Window, Window]) -> None:
    far, here = pair
    far.session.reset()
    far.session.select(layer=0, head=0)
    far.step(3)
    far.rest()
    with pytest.raises(ValueError, match="still on the engine's machine"):
        list(head_means.build(Side(far.trace, 2), 2, 0, "rollout"))
    *_, some = head_scores.scores(far.trace, 2, "entropy")
    assert {layer for layer, _ in some.order()} == {0}
    far.session.fetch_all()
    far.until(lambda s: not any(record.away for record in far.trace.steps[0].layers))
    far.rest()
    *_, theirs = head_means.build(Side(far.trace, 2), 2, 0, "rollout")
    *_, ours = head_means.build(Side(here.trace, 2), 2, 0, "rollout")
    np.testing.assert_allclose(theirs.weights, ours.weights, atol=1e-6)
    assert not any(record.away for step in far.trace.steps for record in step.layers)


def test_a_file_says_what_did_not_come_and_it_is_computed_again(
    pair: tuple[Window, Window], tmp_path: Path
) -> None:
    far = pair[0]
    far.session.reset()
    far.session.select(layer=0, head=0)
    far.step(2)
    far.rest()
    dxt.save(far.trace, tmp_path / "a.dxt")
    kept = dxt.load(tmp_path / "a.dxt")
    assert not kept.steps[0].layers[0].reason
    assert kept.steps[0].layers[2].reason == away.NOT_FETCHED
    np.testing.assert_array_equal(kept.steps[1].logits, far.trace.steps[1].logits)


def test_what_was_dropped_for_the_bytes_allowed_is_computed_again(
    pair: tuple[Window, Window], monkeypatch: pytest.MonkeyPatch
) -> None:
    far, here = pair
    monkeypatch.setattr(far_records, "KEEP_BYTES", 1)  # one pass alone
    far.session.reset()
    far.session.select(layer=2, head=1)
    far.step(3)
    far.rest()
    theirs = maps.full_map(far.trace, 2, 2, 1)
    np.testing.assert_allclose(
        theirs.weights, maps.full_map(here.trace, 2, 2, 1).weights, atol=1e-6
    )
    assert "computed again on request" in far.trace.steps[0].note


def test_what_the_line_costs(there: Server, model: Path) -> None:
    with Client(there.command("gpu-box", "decoder-explorer", "engine")) as client:
        card = client.load(str(model))
        found = line_bench.measure(client, str(model), card.context)
    sent, kept = found["all_sent"], found["kept"]
    rows = 3 * (4 + 2) * 16 * 4  # layers · heads and key heads · width · bytes
    assert rows <= sent["bytes_per_step"] - kept["bytes_per_step"] < 2 * rows + 1000
    rows *= found["prompt_tokens"]
    assert rows <= sent["first_step_bytes"] - kept["first_step_bytes"] < 2 * rows
    of_one_key_head = found["prompt_tokens"] * (2 + 1) * 16 * 4
    assert of_one_key_head <= found["map_bytes"] < of_one_key_head + 2000
    assert found["round_trip_ms"] > 0
