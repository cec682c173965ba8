"""Structs with whatever is allowed in them, made from their own definitions and bounds."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from hypothesis import strategies as st
from msgspec import inspect

from explorer.trace.batch import BatchRequest, BatchResult
from explorer.trace.card import ModelCard, SelfCheck
from explorer.trace.interventions.context_policy import ContextPolicy, PolicyName
from explorer.trace.interventions.kinds import MOST
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import Draw, Step, Token
from explorer.trace.trace import Trace
from explorer.trace.wire.bounds import bound_of
from tests.trace.batches import result, row
from tests.trace.runs import VOCABULARY, made_trace

Values = st.SearchStrategy[Any]

_INT64 = (-(2**63), 2**64 - 1)  # what a frame can hold
# Not any character at all: a table of those takes seconds to make.
TEXT = st.text(
    "aZ0 /.~\\\"'{}[]\n\r\0\x7fé\u0301␣你\u200b\u202e\u2028\ufeff\ufffd😀\U0010ffff", max_size=8
)
BYTES = st.binary(max_size=8)
SHAPELESS: Values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2**31) | st.floats(0, 1e15) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def structs(kind: type, **fixed: Values) -> Values:
    """Any instance of a struct; fields in `fixed` get their own values."""
    made = _policy if kind is ContextPolicy else kind
    return st.builds(made, **{**_fields(kind), **fixed})


def _policy(name: PolicyName, tokens: int, sinks: int, **more: Any) -> ContextPolicy:
    """Where the last tokens are kept, one at least."""
    if name in ("window", "sinks"):
        sinks = min(sinks, MOST - 1)
        tokens = max(tokens, sinks + 1)
    return ContextPolicy(name=name, tokens=tokens, sinks=sinks, **more)


@functools.cache
def _fields(kind: type) -> dict[str, Values]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return {one.name: _of(one.type, (kind, one.name)) for one in info.fields}


@functools.cache
def _known(kind: type) -> Values:
    return structs(kind)


def _of(info: inspect.Type, field: tuple[type, str]) -> Values:
    if isinstance(info, inspect.IntType | inspect.FloatType):
        return _number(info, field)
    if isinstance(info, inspect.StructType):
        return st.deferred(lambda: _known(info.cls))
    if isinstance(info, inspect.UnionType):
        return st.one_of([_of(one, field) for one in info.types])
    if isinstance(info, inspect.LiteralType):
        return st.sampled_from(info.values)
    if isinstance(info, inspect.VarTupleType):
        items = _of(info.item_type, field)
        return st.lists(items, min_size=info.min_length or 0, max_size=3).map(tuple)
    if isinstance(info, inspect.TupleType):
        return st.tuples(*[_of(one, field) for one in info.item_types])
    if isinstance(info, inspect.DictType):
        keys, values = _of(info.key_type, field), _of(info.value_type, field)
        return st.dictionaries(keys, values, max_size=3)
    plain: dict[type, Values] = {
        inspect.NoneType: st.none(),
        inspect.BoolType: st.booleans(),
        inspect.StrType: TEXT,
        inspect.BytesType: BYTES,
        inspect.AnyType: SHAPELESS,
    }
    return plain[type(info)]


def _number(info: inspect.IntType | inspect.FloatType, field: tuple[type, str]) -> Values:
    if isinstance(info, inspect.IntType):
        bound = bound_of(*field, 0)
        least, most = max(int(bound.least), _INT64[0]), min(int(bound.most), _INT64[1])
        least = least if info.ge is None else max(least, info.ge)
        return st.integers(least, most if info.le is None else min(most, info.le))
    bound = bound_of(*field, 0.0)
    open_end = info.gt is not None
    low = bound.least if info.gt is None else max(bound.least, info.gt)
    high = bound.most if info.le is None else min(bound.most, info.le)
    finite = st.floats(low, high, exclude_min=open_end)
    odd = [float("nan"), float("inf"), -float("inf")]
    return finite if bound.finite else finite | st.sampled_from(odd)


def batches() -> st.SearchStrategy[BatchResult]:
    """Results of one to four rows, padded on either side."""
    rows = st.lists(
        st.builds(row, st.integers(1, 4), st.sampled_from(("left", "right")), prompt=TEXT),
        min_size=1,
        max_size=4,
    )

    def of(found: list[Any], request: BatchRequest, model: str) -> BatchResult:
        whole = result(*found)
        asked = msgspec.structs.replace(request, prompts=whole.request.prompts, extra=0)
        return msgspec.structs.replace(whole, request=asked, model=model)

    return st.builds(of, rows, _known(BatchRequest), TEXT)


IDS = st.integers(0, VOCABULARY - 1)
TOKENS = structs(Token, id=IDS)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Runs of up to three steps, with some of the kinds of layers, whatever was asked."""
    made = made_trace(draw(st.integers(0, 3)))
    kept = sorted(draw(st.sets(st.integers(0, 6))))
    slots = len(made.prompt)
    return replace(
        made,
        request=draw(structs(RunRequest, pad=st.integers(0, slots))),
        card=draw(structs(ModelCard)),
        prompt=tuple(draw(st.lists(TOKENS, min_size=slots, max_size=slots))),
        steps=tuple(draw(_steps(step, kept)) for step in made.steps),
        chosen=tuple(draw(TOKENS) for _ in made.steps),
        stop_reason=draw(TEXT),
        self_check=draw(structs(SelfCheck)),
    )


@st.composite
def _steps(draw: st.DrawFn, made: Step, kept: Sequence[int]) -> Step:
    """The step with other numbers, and these of its layers."""
    logits = st.floats(width=32, allow_nan=False, allow_infinity=False)
    return replace(
        made,
        logits=np.array([draw(logits) for _ in range(VOCABULARY)], np.float32),
        draw=draw(structs(Draw, token_id=IDS)),
        sampling=draw(structs(Sampling)),
        top=tuple(draw(st.lists(TOKENS, max_size=3))),
        hidden=draw(st.sampled_from((made.hidden, None))),
        embedding_ms=draw(st.none() | st.floats(0, 1e15)),
        forward_ms=draw(st.floats(0, 1e15)),
        warm_up=draw(st.booleans()),
        note=draw(TEXT),
        layers=tuple(replace(made.layers[i], layer=place) for place, i in enumerate(kept)),
    )


@st.composite
def damaged(draw: st.DrawFn, whole: bytes, head: int) -> bytes:
    """The bytes with some changed, put in, taken out or cut off; most within the first `head`."""
    changed = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        within = draw(st.sampled_from((head, head, len(whole))))
        at = draw(st.integers(0, within))
        gone = draw(st.sampled_from((0, 1, 1, 1, 4, len(whole))))
        changed[at : at + gone] = draw(st.binary(max_size=4))
    return bytes(changed)
