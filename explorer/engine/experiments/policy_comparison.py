"""One text under two context policies: surprisal, cache, and attention to the beginning."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec
import numpy as np

from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.capture import records
from explorer.engine.errors import BadInput, Cancelled, EngineError
from explorer.engine.experiments.loss import nats
from explorer.engine.experiments.prompt_scores import LOGIT_BYTES
from explorer.engine.passes import chunked_prefill, interventions
from explorer.engine.passes.cache import layer_bytes
from explorer.engine.passes.generate import forward
from explorer.engine.passes.layout import Layout, require_context
from explorer.engine.passes.recorded_pass import ForwardPass
from explorer.engine.passes.runner import Runner
from explorer.trace import attention
from explorer.trace.experiments import ComparePolicies, PolicyComparison, PolicySide
from explorer.trace.request import RunRequest

_ROWS = 64  # queries that a mean of attention is taken over, spread over the text


def compare(
    runner: Runner, asked: ComparePolicies, progress: Report, cancelled: Stop = never
) -> PolicyComparison:
    """The text read twice, each time through a cache of its own; the run's is left as it was.

    BadInput for a text of one token, one that is too long for a policy, and a policy that this
    model can't be run under.
    """
    layout = runner.layout(asked.request, asked.chosen)
    real = [slot for slot, seen in enumerate(layout.attention_mask) if seen]
    if len(real) < 2:
        raise BadInput("This text has one token. Type a longer one, then compare again.")
    requests = [msgspec.structs.replace(asked.request, context=one) for one in asked.policies]
    for request in requests:
        interventions.require_fit(runner, request)
        require_context(layout, runner.loaded.card.context, request.context)
    first_keys = max(1, *(policy.sinks for policy in asked.policies))
    first = range(real[0], real[0] + first_keys)
    sides = [
        _side(runner, request, layout, first, number, progress, cancelled)
        for number, request in enumerate(requests)
    ]
    return PolicyComparison(
        tokens=len(layout.ids),
        slots=tuple(real[1:]),
        first_keys=first_keys,
        sides=(sides[0], sides[1]),
    )


def _side(
    runner: Runner,
    request: RunRequest,
    layout: Layout,
    first: range,
    number: int,
    progress: Report,
    cancelled: Stop,
) -> PolicySide:
    policy = request.context
    cache = runner.fresh_cache(request).live if runner.caches(request) else None
    real = [slot for slot, seen in enumerate(layout.attention_mask) if seen]
    following = dict(itertools.pairwise(real))
    found: list[float] = []
    shares: list[float] = []
    for span, done in _passes(runner, request, layout, cache, cancelled):
        if np.isnan(done.logits).any():
            raise EngineError("The model's logits contain NaN values. Try another dtype.")
        at = [slot for slot in span if slot in following]
        if at:
            rows = done.logits[[slot - span.start for slot in at]]
            found += nats(rows, [layout.ids[following[slot]] for slot in at]).tolist()
        shares += _to_first(runner, done, span, first, layout)
        progress("Reading the text", (number + span.stop / len(layout.ids)) / 2)
        if cancelled():
            raise Cancelled
    held = () if cache is None else layer_bytes(cache, len(runner.layers))
    return PolicySide(
        name=policy.name,
        kept=policy.tokens,
        sinks=policy.sinks,
        distances=policy.distances,
        nats=tuple(found),
        cache_bytes=sum(held),
        first_attention=float(np.mean(shares)) if shares else None,
    )


def _passes(
    runner: Runner, request: RunRequest, layout: Layout, cache: object, cancelled: Stop
) -> Iterator[tuple[range, ForwardPass]]:
    """Spans of the text with a pass that has their logits (n, V)."""
    slots = len(layout.ids)
    most = max(1, LOGIT_BYTES // (4 * max(1, runner.loaded.card.vocab_size)))
    if cache is not None and runner.in_chunks:
        most = min(most, chunked_prefill.CHUNK)
        for begin in range(0, slots, most):
            span = range(begin, min(begin + most, slots))
            part = layout.first(span.stop)
            yield span, forward(runner, request, part, begin, cache, cancelled, at=span)
        return
    for begin in range(0, slots, most):
        span = range(begin, min(begin + most, slots))
        whole = cache if span == range(slots) else None
        yield span, forward(runner, request, layout, 0, whole, cancelled, at=span)


def _to_first(
    runner: Runner, done: ForwardPass, span: range, first: range, layout: Layout
) -> list[float]:
    """Of some queries of the span that are no padding: what each head gives the keys `first`."""
    stride = max(1, len(layout.ids) // _ROWS)
    queries = [slot for slot in span if slot >= first.stop and slot % stride == 0]
    real = [row for row, slot in enumerate(queries) if layout.attention_mask[slot]]
    if not real:
        return []
    rows = slice(queries[0] - done.first_slot, queries[-1] - done.first_slot + 1, stride)
    found = []
    for record in records.records(
        done.recorder, done.slots, proven=runner.capture.proven, all_keys=True
    ):
        if record.kind == "absent" or (record.kind == "qk" and record.keys is None):
            continue
        keys = np.empty((0, 1, 1)) if record.keys is None else record.keys
        begin, end = (max(0, slot - record.first_key) for slot in (first.start, first.stop))
        for head in range(record.heads):
            weights = attention.weights(record, keys, head, rows)[real]
            found += weights[:, begin:end].sum(axis=1).tolist()
    return found
