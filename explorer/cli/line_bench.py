"""What the line to an engine costs: bytes of a step and of a map, round trips, time lost."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

from explorer.cli.client import Client
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import Step
from explorer.trace.wire import messages as m

TOKENS, STEPS, TRIPS = 128, 8, 5
_KEEP_BYTES = 1 << 30


def measure(client: Client, model: str, context: int) -> dict[str, Any]:
    """Of the model that is open: figures of a run whose records are sent, and of one that keeps.

    `bytes_per_step` and `lost_ms_per_step` are those of decode steps; `map_bytes` and `map_ms` of
    the heads of one key head.  None: the engine keeps no records.  `context` 0: without a limit.
    """
    words = min(TOKENS, context // 2 or TOKENS)
    request = RunRequest(model=model, prompt=" the" * words)
    trips = []
    for _ in range(TRIPS):
        began = time.perf_counter()
        list(client.answers(m.Tokenize(request=RunRequest(model=model, prompt="x"))))
        trips.append(time.perf_counter() - began)
    sent, _ = _steps(client, request, 0)
    kept, steps = _steps(client, request, _KEEP_BYTES)
    found: dict[str, Any] = {"round_trip_ms": median(trips) * 1e3, "all_sent": sent, "kept": None}
    found["prompt_tokens"] = len(steps[0].token_ids)
    found |= {"map_bytes": None, "map_ms": None}
    first = steps[0]
    if first.kept_as:
        found["kept"] = kept
        layer = next((one.layer for one in first.layers if one.away), None)
        if layer is not None:
            before, began = client.received_bytes, time.perf_counter()
            list(client.answers(m.SendRecords(kept=(first.kept_as,), layer=layer, group=0)))
            found["map_ms"] = (time.perf_counter() - began) * 1e3
            found["map_bytes"] = client.received_bytes - before
    return found


def _steps(
    client: Client, request: RunRequest, keep_bytes: int
) -> tuple[dict[str, float], list[Step]]:
    """A prompt and some decode steps: what came over the line for each, and the steps."""
    asked = m.Advance(request=request, steps=STEPS + 1, sampling=Sampling(), keep_bytes=keep_bytes)
    steps: list[Step] = []
    sizes, times, before = [], [], client.received_bytes
    for event in client.answers(asked):
        if isinstance(event, m.Stepped):
            steps.append(event.step)
            sizes.append(client.received_bytes - before)
            times.append(time.perf_counter())
    decoded = len(steps) - 1
    figures = {"first_step_bytes": float(sizes[0])}
    if decoded > 0:
        engine = median(step.engine_ms or step.forward_ms for step in steps[1:])
        wall = (times[-1] - times[0]) * 1e3 / decoded
        figures |= {
            "bytes_per_step": (sizes[-1] - sizes[0]) / decoded,
            "ms_per_step": wall,
            "engine_ms_per_step": engine,
            "lost_ms_per_step": max(0.0, wall - engine),
        }
    return figures, steps
