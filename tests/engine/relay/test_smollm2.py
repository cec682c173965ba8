"""SmolLM2's file as it is and in float32: two models that differ by what four bits leave out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from explorer.session.connection.remote import EngineProcess
from explorer.trace.request import RunRequest
from explorer.trace.wire import messages as m
from tests.engine.test_serve import Client

pytestmark = [pytest.mark.smollm2, pytest.mark.timeout(300)]
REQUEST = RunRequest(model="smollm2", prompt="The capital of France is", form="as-is")
FLOAT32 = RunRequest(model="smollm2", prompt="The capital of France is", form="float32")


@pytest.fixture
def client() -> Iterator[Client]:
    engine = EngineProcess()
    client = Client(engine.send)
    engine.start(client.events.put)
    yield client
    engine.close()


def best(events: list[m.Event]) -> tuple[bytes, float]:
    """The most probable token and its probability."""
    stepped = next(event for event in events if isinstance(event, m.Stepped))
    logits = stepped.step.logits.astype(np.float64)
    weights = np.exp(logits - logits.max())
    return stepped.token.raw, float(weights.max() / weights.sum())


def test_both_forms_of_one_step_side_by_side(client: Client) -> None:
    loaded = client.ask(m.Load(run=1, model="smollm2", form="as-is"))[-1]
    assert isinstance(loaded, m.Loaded), loaded
    assert loaded.card.stored_dtype == "Q4_1 79 %, Q8_0 21 %"
    as_it_is = best(client.ask(m.Advance(run=2, request=REQUEST)))
    in_float32 = best(client.ask(m.Recapture(run=3, request=FLOAT32, chosen=())))
    assert (as_it_is[0], in_float32[0]) == (b" Paris", b" Paris")
    assert as_it_is[1] == pytest.approx(0.766, abs=0.005)
    assert in_float32[1] == pytest.approx(0.7725, abs=0.0005)
    again = best(client.ask(m.Advance(run=4, request=REQUEST)))
    assert again == as_it_is, "still open, and deterministic"
