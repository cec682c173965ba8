"""An engine that says what the test tells it to, and a session over it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import msgspec
import numpy as np

from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.attention import LayerRecord, Mask
from explorer.trace.card import ModelCard
from explorer.trace.cost.run_cost import Plan
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import Draw, Phase, Step, Token
from explorer.trace.trace import Trace
from explorer.trace.wire import messages as m

VOCABULARY = 40
PROMPT = tuple(Token(i, f"p{i}".encode()) for i in range(3))
LARGE = Plan(
    tokens=8000,
    weights_bytes=538_000_000,
    cache_bytes=368_640_000,
    capture_bytes=755_712_000,
    available_bytes=9_000_000_000,
    estimated_seconds=91.0,
)
R = TypeVar("R")


def card(name: str = "tiny", **more: Any) -> ModelCard:
    fields: dict[str, Any] = {
        "name": name, "path": f"/models/{name}", "architecture": "llama", "layers": 2,
        "hidden_size": 8, "heads": 2, "kv_heads": 1, "head_dim": 4, "vocab_size": VOCABULARY,
        "context": 64, "parameters": 100, "dtype": "float32", "device": "cpu",
        "fingerprint": {"config": name},
    }  # fmt: skip
    return ModelCard(**{**fields, **more})


def made_step(index: int, prompt: int = len(PROMPT), *, recompute: bool = False) -> Step:
    """The step a cached run would have at this index; `recompute`: a run without a cache."""
    rng = np.random.default_rng(index)
    whole = recompute or index == 0
    rows = prompt + index if whole else 1
    first = 0 if whole else prompt + index - 1
    keys = prompt + index
    phase: Phase = "prefill" if index == 0 else "recompute" if recompute else "decode"
    mask = Mask("causal" if whole else "none", rows, keys)
    layers = tuple(
        LayerRecord(
            layer=i,
            kind="qk",
            queries=rng.standard_normal((rows, 2, 4)).astype(np.float32),
            keys=rng.standard_normal((rows, 1, 4)).astype(np.float32),
            scaling=0.5,
            mask=mask,
        )
        for i in range(2)
    )
    token_id = 10 + index
    return Step(
        index=index,
        phase=phase,
        first_slot=first,
        token_ids=tuple(range(rows)),
        position_ids=tuple(range(first, first + rows)),
        readout=first + rows - 1,
        logits=rng.standard_normal(VOCABULARY).astype(np.float32),
        draw=Draw(
            token_id=token_id, how="greedy", probability=1.0, raw_probability=0.5, rank=0,
            entropy_bits=1.0,
        ),
        sampling=Sampling(),
        forward_ms=10.0,
        layer_ms=np.ones(2, np.float32),
        top=tuple(Token(i, f"t{i}".encode(), "generated") for i in range(10, 30)),
        layers=layers,
        hidden=np.zeros((rows, 8), np.float32),
        keys_from=index if recompute else 0,
        cache_tokens=0 if recompute else keys,
        cache_bytes_per_layer=() if recompute else (keys * 32, keys * 32),
    )  # fmt: skip


class ScriptedEngine:
    """Keeps what it is asked; says nothing by itself but Hello."""

    elsewhere = False

    def __init__(self) -> None:
        self.asked: list[m.AnyRequest] = []
        self.alive = False
        self._on_event: Callable[[m.Event], None] | None = None

    def start(self, on_event: Callable[[m.Event], None]) -> None:
        self.alive = True
        self._on_event = on_event
        on_event(m.Hello())

    def send(self, request: m.AnyRequest) -> None:
        self.asked.append(request)

    def close(self) -> None:
        self.alive = False
        self._on_event = None

    def say(self, *events: m.Event) -> None:
        for event in events:
            if self._on_event is not None:
                self._on_event(event)

    def last(self, kind: type[R]) -> R:
        """The newest request of a kind."""
        return next(r for r in reversed(self.asked) if isinstance(r, kind))

    def count(self, kind: type[m.Request]) -> int:
        return sum(isinstance(request, kind) for request in self.asked)


class Stage:
    """A session, its queue of posted calls, and its engines, the newest last."""

    made: ClassVar[list[Stage]] = []  # those of the running test; its threads end with it

    def __init__(self) -> None:
        Stage.made.append(self)
        self.posted: deque[Callable[[], None]] = deque()
        self.engines: list[ScriptedEngine] = []
        self.session = Session(self._engine, self.posted.append)
        # It obeys no cancel: what a session does about that has a test of its own.
        self.session._driver._lease.link.patience = 3600.0
        self.states: list[tuple[State, State]] = []
        self.session.subscribe(lambda old, new: self.states.append((old, new)))

    def close(self) -> None:
        """End the session's threads; more than once is once."""
        self.session.close()
        if self in Stage.made:
            Stage.made.remove(self)

    def _engine(self) -> ScriptedEngine:
        self.engines.append(ScriptedEngine())
        return self.engines[-1]

    @property
    def engine(self) -> ScriptedEngine:
        return self.engines[-1]

    @property
    def state(self) -> State:
        return self.session.state

    def drain(self) -> None:
        """Run what was posted, as the window's event loop would."""
        while self.posted:
            self.posted.popleft()()

    def say(self, *events: m.Event) -> None:
        self.engine.say(*events)
        self.drain()

    def loaded(self, prompt: str = "hello") -> Stage:
        """With an engine, a model and a prompt."""
        self.session.start_engine()
        self.drain()
        self.session.open_model("tiny")
        self.session.set_prompt(prompt)
        self.answer_load()
        return self

    def answer_load(self, **more: Any) -> None:
        self.say(m.Loaded(run=self.engine.last(m.Load).run, card=card(**more)))

    def prompted(self, run: int | None = None) -> int:
        run = self.engine.last(m.Advance).run if run is None else run
        self.say(m.Prompted(run=run, tokens=PROMPT))
        return run

    def steps(self, count: int, run: int | None = None, *, recompute: bool = False) -> None:
        """The next `count` steps of the run."""
        run = self.engine.last(m.Advance).run if run is None else run
        for _ in range(count):
            index = len(self.state.trace.steps) if self.state.trace else 0
            self.say(stepped(run, index, recompute=recompute))

    def finish(self, reason: str = "steps", run: int | None = None) -> None:
        run = self.engine.last(m.Advance).run if run is None else run
        self.say(m.Finished(run=run, reason=reason))

    def prove(self, step: Step | None = None) -> None:
        """Answer the proof: the last step came out as it was, or as `step`."""
        assert self.state.trace is not None
        run = self.engine.last(m.Recapture).run
        event = stepped(run, len(self.state.trace.steps) - 1)
        again = event if step is None else msgspec.structs.replace(event, step=step)
        self.say(again, m.Finished(run=run, reason="steps"))

    def ran(self, count: int, *, recompute: bool = False) -> Stage:
        """With a trace of `count` steps, made by step()."""
        self.session.step(count)
        self.prompted()
        self.steps(count, recompute=recompute)
        self.finish()
        return self


def cut_last(session: Session, tokens: int = 1) -> None:
    """Remove the last tokens of the run, as a user does: look back, and cut there."""
    session.look(-tokens)
    session.cut()


def ids(state: State) -> list[int]:
    """The tokens chosen so far in the trace on screen."""
    assert state.trace is not None
    return [token.id for token in state.trace.chosen]


def stepped(
    run: int, index: int, *, recompute: bool = False, sampling: Sampling | None = None
) -> m.Stepped:
    """The answer with step `index`; other seeds choose other tokens."""
    step = made_step(index, recompute=recompute)
    if sampling is not None:
        draw = msgspec.structs.replace(step.draw, token_id=10 + (index + sampling.seed) % 20)
        step = replace(step, sampling=sampling, draw=draw)
    token = Token(step.draw.token_id, f"t{step.draw.token_id}".encode(), "generated")
    return m.Stepped(run=run, step=step, token=token)


def played(steps: int = 3) -> Trace:
    """A run of so many steps, as the session would have it."""
    trace = Trace(request=RunRequest(model="tiny", prompt="a b c"), card=card(), prompt=PROMPT)
    for index in range(steps):
        event = stepped(0, index)
        trace = trace.appended(event.step, event.token)
    return trace
