"""The JSON part of a .dxt file: a trace without its arrays.

What repeats from step to step is written once: layer headers and the tokens of `top` sit in two
tables, and a step names its rows.  Branches name their steps by number: first those of the trace
on screen, then those that only other branches hold.  A program that knows nothing of branches
opens the trace on screen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from explorer import __version__
from explorer.trace.batch import BatchResult
from explorer.trace.card import ModelCard, SelfCheck
from explorer.trace.chat import ChatTurn
from explorer.trace.files.saved_extras import SavedExtras, Sibling
from explorer.trace.files.saved_view import SavedView
from explorer.trace.request import RunRequest
from explorer.trace.step import Step, Token
from explorer.trace.trace import Trace, bare_name
from explorer.trace.wire.bounds import require_bounded
from explorer.trace.wire.packing import LayerHeader, StepHeader, unpack_step

FORMAT = 1
_NOT_FINITE = "not finite"
_OLD_MODES = {
    "fast": "An earlier version of this program made this run with its own float32 kernels (mode "
    "fast), so the last digits of its numbers differ from this version's.",
    "rounded": "An earlier version of this program made this run with the weights rounded to "
    "float16 (mode rounded), so its numbers are not those of the model itself.",
}


class StepBody(msgspec.Struct, frozen=True):
    """One step's header, its repeating parts given as rows of the tables."""

    header: StepHeader  # without `layers` and `top`
    layers: int
    top: tuple[int, ...] = ()


class BranchBody(msgspec.Struct, frozen=True):
    """One branch: its own name and tokens; request and prompt are those of the trace."""

    name: str
    steps: tuple[int, ...]
    chosen: tuple[Token, ...]
    stop_reason: str = ""
    card: Any = None  # where it is not the trace's: of an earlier opening, or of other weights


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of a trace that is no array."""

    format: int = FORMAT
    program: str = __version__
    request: RunRequest
    card: Any  # ModelCard with floats made safe for JSON
    self_check: Any  # SelfCheck, likewise
    prompt: tuple[Token, ...]
    turns: tuple[ChatTurn, ...] = ()
    chosen: tuple[Token, ...] = ()
    stop_reason: str = ""
    tokens: tuple[Token, ...] = ()
    layers: tuple[tuple[LayerHeader, ...], ...] = ()
    steps: tuple[StepBody, ...] = ()
    more_steps: tuple[StepBody, ...] = ()  # of the branches
    branches: tuple[BranchBody, ...] = ()
    current_branch: int | None = None
    batch: Any = None  # BatchResult, likewise
    seen: SavedView | None = None


class Tables:
    """Collects step headers while a file is written."""

    def __init__(self) -> None:
        self._tokens: dict[Token, int] = {}
        self._layers: dict[bytes, int] = {}
        self._layer_rows: list[tuple[LayerHeader, ...]] = []
        self._steps: list[StepBody] = []

    def add(self, header: StepHeader) -> None:
        key = msgspec.msgpack.encode(header.layers)
        if key not in self._layers:
            self._layers[key] = len(self._layer_rows)
            self._layer_rows.append(header.layers)
        top = tuple(self._tokens.setdefault(token, len(self._tokens)) for token in header.top)
        bare = msgspec.structs.replace(header, layers=(), top=())
        self._steps.append(StepBody(bare, self._layers[key], top))

    def body(self, trace: Trace, beside: SavedExtras) -> Body:
        own = len(trace.steps)
        number = {id(step): i for i, step in enumerate(all_steps(trace, beside))}
        branches = tuple(
            BranchBody(
                name=one.name,
                steps=tuple(number[id(step)] for step in one.trace.steps),
                chosen=one.trace.chosen,
                stop_reason=one.trace.stop_reason,
                card=None if one.trace.card is trace.card else _card(one.trace),
            )
            for one in beside.branches
        )
        batch = beside.batch
        return Body(
            request=msgspec.structs.replace(trace.request, model=trace.model_name),
            card=_card(trace),
            self_check=_safe(msgspec.to_builtins(trace.self_check)),
            prompt=trace.prompt,
            turns=trace.turns,
            chosen=trace.chosen,
            stop_reason=trace.stop_reason,
            tokens=tuple(self._tokens),
            layers=tuple(self._layer_rows),
            steps=tuple(self._steps[:own]),
            more_steps=tuple(self._steps[own:]),
            branches=branches,
            current_branch=beside.current,
            batch=None if batch is None else _batch(batch),
            seen=beside.seen,
        )


def _card(trace: Trace) -> Any:
    """The card as it travels: no path."""
    bare = msgspec.structs.replace(trace.card, name=bare_name(trace.card.name), path="")
    return _safe(msgspec.to_builtins(bare))


def _batch(batch: BatchResult) -> Any:
    """The batch as it travels: no path."""
    bare = msgspec.structs.replace(batch, model=bare_name(batch.model))
    return _safe(msgspec.to_builtins(bare))


def _card_of(body: Any) -> ModelCard:
    """A card as it travels; of an earlier version's engine mode a warning is left."""
    card = msgspec.convert(_unsafe(body), ModelCard)
    words = _OLD_MODES.get(body.get("mode"))
    return msgspec.structs.replace(card, warnings=(*card.warnings, words)) if words else card


def all_steps(trace: Trace, beside: SavedExtras) -> tuple[Step, ...]:
    """Each step once: those of the trace in order, then what only branches hold."""
    found = {id(step): step for step in trace.steps}
    for one in beside.branches:
        found |= {id(step): step for step in one.trace.steps if id(step) not in found}
    return tuple(found.values())


def read_steps(body: Body, arrays: Callable[[int], dict[str, np.ndarray]]) -> tuple[Step, ...]:
    """All steps of the file; `arrays` gives those of one step.  ValueError if parts don't fit."""
    require_bounded((body.layers, body.tokens, body.steps, body.more_steps, body.branches))
    steps = []
    for i, part in enumerate((*body.steps, *body.more_steps)):
        if not 0 <= part.layers < len(body.layers):
            raise ValueError(f"step {i} names layers that are not there")
        if not all(0 <= row < len(body.tokens) for row in part.top):
            raise ValueError(f"step {i} names tokens that are not there")
        header = msgspec.structs.replace(
            part.header,
            layers=body.layers[part.layers],
            top=tuple(body.tokens[row] for row in part.top),
        )
        steps.append(unpack_step(header, arrays(i)))
    return tuple(steps)


def trace_of(body: Body, steps: Sequence[Step]) -> Trace:
    """The trace on screen."""
    request, card = _in_form(body.request, _card_of(body.card))
    return Trace(
        request=request,
        card=card,
        self_check=msgspec.convert(_unsafe(body.self_check), SelfCheck),
        prompt=body.prompt,
        turns=body.turns,
        chosen=body.chosen,
        stop_reason=body.stop_reason,
        steps=tuple(steps[: len(body.steps)]),
    )


def _in_form(request: RunRequest, card: ModelCard) -> tuple[RunRequest, ModelCard]:
    """Earlier versions converted every .gguf file, and said so in the card's source alone."""
    if request.form or not (card.source == "GGUF" or card.source.startswith("from ")):
        return request, card
    return (
        msgspec.structs.replace(request, form="float32"),
        msgspec.structs.replace(card, form="float32"),
    )


def beside_of(body: Body, trace: Trace, steps: Sequence[Step]) -> SavedExtras:
    """The branches and the batch; ValueError if a branch names steps that are not there."""
    branches = []
    for one in body.branches:
        if not all(0 <= i < len(steps) for i in one.steps):
            raise ValueError("a branch names steps that are not there")
        card = None if one.card is None else _card_of(one.card)
        own = replace(
            trace,
            card=trace.card if card is None or card == trace.card else card,  # one opening
            steps=tuple(steps[i] for i in one.steps),
            chosen=one.chosen,
            stop_reason=one.stop_reason,
            self_check=SelfCheck(),
        )
        branches.append(Sibling(one.name, own))
    current = body.current_branch
    if current is not None and not 0 <= current < len(branches):
        raise ValueError("the branch on screen is not there")
    batch = None if body.batch is None else msgspec.convert(_unsafe(body.batch), BatchResult)
    require_bounded(body.seen)
    return SavedExtras(tuple(branches), current, batch, body.seen)


def _safe(value: Any) -> Any:
    """JSON has no NaN and no infinity: they travel by name."""
    if isinstance(value, float) and not math.isfinite(value):
        return {_NOT_FINITE: str(value)}
    if isinstance(value, dict):
        return {str(k): _safe(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_safe(v) for v in value]
    return value


def _unsafe(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_NOT_FINITE}:
            return float(value[_NOT_FINITE])
        return {k: _unsafe(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_unsafe(v) for v in value]
    return value
