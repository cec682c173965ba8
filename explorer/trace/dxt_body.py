"""The JSON part of a .dxt file: a trace without its arrays.

What repeats from step to step is written once: layer headers and the tokens of `top` sit in two
tables, and a step names its rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from explorer import __version__
from explorer.trace.card import ModelCard, SelfCheck
from explorer.trace.packing import LayerHeader, StepHeader, unpack_step
from explorer.trace.request import RunRequest
from explorer.trace.step import Token
from explorer.trace.trace import Trace

FORMAT = 1
_NOT_FINITE = "not finite"


class StepBody(msgspec.Struct, frozen=True):
    """One step's header, its repeating parts given as rows of the tables."""

    header: StepHeader  # without `layers` and `top`
    layers: int
    top: tuple[int, ...] = ()


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of a trace that is no array."""

    format: int = FORMAT
    program: str = __version__
    request: RunRequest
    card: Any  # ModelCard with floats made safe for JSON
    self_check: Any  # SelfCheck, likewise
    prompt: tuple[Token, ...]
    chosen: tuple[Token, ...] = ()
    stop_reason: str = ""
    tokens: tuple[Token, ...] = ()
    layers: tuple[tuple[LayerHeader, ...], ...] = ()
    steps: tuple[StepBody, ...] = ()


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

    def body(self, trace: Trace) -> Body:
        return Body(
            request=trace.request,
            card=_safe(msgspec.to_builtins(trace.card)),
            self_check=_safe(msgspec.to_builtins(trace.self_check)),
            prompt=trace.prompt,
            chosen=trace.chosen,
            stop_reason=trace.stop_reason,
            tokens=tuple(self._tokens),
            layers=tuple(self._layer_rows),
            steps=tuple(self._steps),
        )


def trace_of(body: Body, arrays: Callable[[int], dict[str, np.ndarray]]) -> Trace:
    """The trace again; `arrays` gives those of one step.  ValueError if parts don't fit."""
    steps = []
    for i, part in enumerate(body.steps):
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
    return Trace(
        request=body.request,
        card=msgspec.convert(_unsafe(body.card), ModelCard),
        self_check=msgspec.convert(_unsafe(body.self_check), SelfCheck),
        prompt=body.prompt,
        chosen=body.chosen,
        stop_reason=body.stop_reason,
        steps=tuple(steps),
    )


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
