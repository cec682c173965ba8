"""Tries the routes of capture on a dozen tokens, and keeps the first that is exact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from explorer.engine.callbacks import Stop
from explorer.engine.capture import probe
from explorer.engine.capture.attention_sites import sites
from explorer.engine.capture.capture import Capture, routes
from explorer.engine.capture.records import Proven, rebuildable
from explorer.engine.errors import EngineError, NoMemory
from explorer.engine.passes import masks
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.recorded_pass import ForwardPass
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import measured_gaps
from explorer.trace.request import RunRequest
from explorer.trace.rounding import largest


@dataclass(slots=True)
class Trial:
    """What one route gave: the reference pass, with logits of every slot, and its maps."""

    capture: Capture
    reference: ForwardPass
    gaps: dict[int, float]  # per layer with a map: its distance from the model's own
    attending: frozenset[int]  # layers with attention, drawn or not
    limit: float

    @property
    def exact(self) -> frozenset[int]:
        """Layers whose maps are the model's own."""
        return frozenset(layer for layer, gap in self.gaps.items() if gap <= self.limit)

    @property
    def failed(self) -> frozenset[int]:
        """Layers that attend to tokens, but whose map can't be shown."""
        return self.attending - self.exact

    @property
    def worth(self) -> tuple[int, int]:
        """Larger is better: first exact layers, then few that can't be shown."""
        return len(self.exact), -len(self.failed)


def choose(runner: Runner, layout: Layout, limit: float, stop: Stop) -> Trial:
    """Sets the runner's capture.  EngineError if the model can't run at all.

    `limit` is the largest difference that counts as equal, on logits; maps are held closer.
    """
    with masks.watching(runner.model) as seen:
        plain = _plain(runner, layout, stop)
    best = Trial(runner.capture, plain, {}, frozenset(), limit / 10)
    for first_position in _first_positions(runner.model):
        runner.first_position = first_position
        found = _best_route(runner, layout, plain, limit, stop)
        if found is not None:
            best = found
            break
    runner.capture = best.capture
    runner.capture.attends = bool(best.attending)
    runner.capture.windowed = "windowed" in seen
    runner.capture.proven = Proven(best.exact, frozenset())
    return best


def _plain(runner: Runner, layout: Layout, stop: Stop) -> ForwardPass:
    """The model as it was loaded, with nothing of ours in it, not even positions."""
    runner.capture, runner.first_position = Capture(runner.loaded_attention), None
    return measured_gaps.every_slot(runner, RunRequest(), layout, stop)


def _first_positions(model: Any) -> Iterator[int | None]:
    """Where models count positions from: 0, or past the padding id; None, they count alone."""
    yield 0
    padding = getattr(model.config.get_text_config(decoder=True), "pad_token_id", None)
    if isinstance(padding, int) and padding >= 0:
        yield padding + 1
    yield None


def _best_route(
    runner: Runner, layout: Layout, plain: ForwardPass, limit: float, stop: Stop
) -> Trial | None:
    """None if every route changes the logits."""
    best: Trial | None = None
    attending: frozenset[int] = frozenset()
    for route in routes(runner.model):
        if route == probe.OWN and attending:
            break  # what the kernel's output has refuted is not believed on the model's word
        found = _try(runner, route, layout, plain, limit, stop)
        if found is None:
            continue
        attending |= found.attending
        if best is None or found.worth > best.worth:
            best = found
        if found.exact and not found.failed:
            break
    if best is not None and not best.exact:
        best.attending = attending
    return best


def _try(
    runner: Runner, route: str, layout: Layout, plain: ForwardPass, limit: float, stop: Stop
) -> Trial | None:
    """None where the route changes the logits, or the model can't run it."""
    runner.capture = Capture(route)
    try:
        reference = measured_gaps.every_slot(runner, RunRequest(), layout, stop)
    except NoMemory:
        raise
    except EngineError:
        return None
    scale = max(1.0, largest(plain.logits) / 30)
    if largest(reference.logits - plain.logits) > limit * scale:
        return None
    calls = [site.call for site in sites(reference.recorder) if site.call is not None]
    runner.capture.token_modules = frozenset(call.module for call in calls)
    gaps = _gaps(reference, layout)
    poor = {call.module for call in calls if not rebuildable(call)}
    poor |= {one.call.module for one in measured_gaps.drawn(reference)
             if one.call is not None and gaps[one.record.layer] > limit / 10}  # fmt: skip
    if poor and route == probe.EAGER:
        runner.capture.map_modules = reference.recorder.map_modules = frozenset(poor)
        gaps = _gaps(reference, layout)
    attending = frozenset(
        site.layer for site in sites(reference.recorder) if site.call or site.own is not None
    )
    return Trial(runner.capture, reference, gaps, attending, limit / 10)


def _gaps(reference: ForwardPass, layout: Layout) -> dict[int, float]:
    """Kernel output against rebuilt maps; of the model's own maps, how far rows are from 1."""
    gaps = measured_gaps.kernel_output(reference, layout)
    for one in measured_gaps.drawn(reference):
        if one.call is None:
            rows = np.array([one.weights(head).sum(axis=1) for head in range(one.record.heads)])
            gaps[one.record.layer] = largest(rows - 1)
    return gaps
