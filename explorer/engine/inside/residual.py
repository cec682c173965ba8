"""How long the residual stream is after each layer, where it points, and what each part added."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.inside.calls import CallWatch, together
from explorer.engine.inside.readings.lens_board import row_names
from explorer.engine.inside.readings.stream_reading import StreamReading
from explorer.engine.inside.route import TOLERANCE, Route, Write, modules_in, rounding_of, route_of
from explorer.engine.inside.streams import NO_STREAM, StreamWatch, Visit
from explorer.engine.inside.sums import gap_of
from explorer.engine.inside.watched_pass import watched_passes
from explorer.engine.passes.layout import Layout, chosen_slots
from explorer.engine.passes.runner import Runner
from explorer.trace.inside.stream import ReadStream, ResidualStream, StreamWrite
from explorer.trace.interventions.kinds import Patch, Silence
from explorer.trace.request import RunRequest

# A route found on a dozen tokens has to hold on the run's own, where rounding may be larger.
SLACK = 10
KEPT = 6  # vectors of each layer: the stream before and after, what two parts were given and gave


@dataclass(slots=True)
class Written:
    """The stream at some slots, and everything that was written to it."""

    slots: tuple[int, ...]  # n
    visits: list[Visit]
    writes: list[tuple[int, Write, torch.Tensor]]  # layer, which, (n, d) with its factor
    calls: CallWatch
    gap: float

    @property
    def streams(self) -> list[torch.Tensor]:
        """(n, d) before the first layer and after each."""
        return [as_rows(self.visits[0].entered), *(as_rows(one.left) for one in self.visits)]


def written_passes(
    runner: Runner,
    request: RunRequest,
    layout: Layout,
    slots: Sequence[int],
    stop: Stop,
    names: Sequence[str] = (),
    read_out: bool = False,
) -> Iterator[tuple[Written, np.ndarray]]:
    """What was written at these slots, portion by portion, and the logits (1 or n, V) there.

    `names`: modules in layers that are watched besides; `read_out`: logits of every slot are
    wanted.  BadInput where the writes don't add up.
    """
    require_own_writes(request)
    route = route_of(runner, stop)
    watched = {write.name for layer in route.layers for write in layer.writes} | set(names)
    streams = StreamWatch(runner.layers)
    calls = CallWatch(modules_in(runner, range(len(runner.layers)), sorted(watched)))
    passes = watched_passes(
        runner,
        request,
        layout,
        slots,
        together(streams.watching, calls.watching),
        stop,
        read_out=read_out,
        kept=KEPT,
    )
    limit = SLACK * TOLERANCE.get(runner.loaded.card.dtype, 2e-5)
    for span in passes:
        writes, gap = _writes(request, route, streams.visits, calls)
        if gap > limit:
            raise BadInput(
                "What the parts of this model's layers wrote does not add up to the change of the "
                f"residual stream here: it is off by {gap:.2g} of its largest entry."
            )
        yield Written(span.slots, streams.visits, writes, calls, gap), span.logits


def _writes(
    request: RunRequest, route: Route, visits: Sequence[Visit], calls: CallWatch
) -> tuple[list[tuple[int, Write, torch.Tensor]], float]:
    if [visit.layer for visit in visits] != [layer.layer for layer in route.layers]:
        raise BadInput(NO_STREAM)
    found, worst = [], 0.0
    for visit, layer in zip(visits, route.layers, strict=True):
        before, after = as_rows(visit.entered), as_rows(visit.left)
        change = after.double() - before.double()
        left = change
        for write in layer.writes:
            named = calls.named(f"{layer.layer}/{write.name}")
            gave = named[write.call].gave if len(named) > write.call else None
            if gave is None or gave.numel() != change.numel():
                raise BadInput(NO_STREAM)
            vector = gave.reshape(change.shape) * factor_of(request, layer.layer, write)
            found.append((layer.layer, write, vector))
            left = left - vector.double()
        rounding = rounding_of(numbers(before), numbers(after), after.dtype)
        worst = max(worst, gap_of(numbers(left), numbers(change), rounding))
    return found, worst


def factor_of(request: RunRequest, layer: int, write: Write) -> float:
    """What the write is multiplied by on its way into the stream; 0 where the run silences it."""
    silenced = any(
        isinstance(one, Silence)
        and one.layer == layer
        and (one.part == "layer" or one.part == write.kind == "mlp")
        for one in request.interventions
    )
    return 0.0 if silenced else write.factor


def require_own_writes(request: RunRequest, layer: int | None = None) -> None:
    """BadInput where a patch puts something else into the stream than this run's parts gave.

    A patched head is no such case: W_O writes what it makes of it.
    """
    for one in request.interventions:
        if isinstance(one, Patch) and one.part != "head" and layer in (None, one.layer):
            what = "MLP" if one.part == "mlp" else "residual stream"
            raise BadInput(
                f"The {what} of layer {one.layer} is patched in this run: what comes from another "
                "run is no sum of what this one's parts wrote. Take the patch back to see the sum."
            )


def numbers(tensor: torch.Tensor) -> np.ndarray:
    """The same in float64."""
    return tensor.double().cpu().numpy()


def as_rows(stream: torch.Tensor) -> torch.Tensor:
    """(n, d) of a stream with a batch of one."""
    return stream.reshape(-1, stream.shape[-1])


def read(
    runner: Runner,
    asked: ReadStream,
    progress: Report,
    cancelled: Stop = never,
    part: Callable[[ResidualStream], None] = lambda found: None,
) -> ResidualStream:
    """Norms and cosines at the slots asked for, those of padding left out.

    `part` gets those of the first slots as soon as they are read.  BadInput where no sum of outputs
    makes up what a layer changed; Cancelled between and within passes.
    """
    layout = runner.layout(asked.request, asked.chosen)
    slots = chosen_slots(layout, asked.slots)
    reading = StreamReading(len(slots), progress, part)
    for written, _ in written_passes(runner, asked.request, layout, slots, cancelled):
        if cancelled():
            raise Cancelled
        reading.rows = row_names(len(written.visits))
        reading.writes = tuple(
            StreamWrite(layer=layer, name=write.name, kind=write.kind)
            for layer, write, _ in written.writes
        )
        streams = written.streams
        added = (numbers(vector) for _, _, vector in written.writes)
        reading.add(written.slots, map(numbers, streams), added, numbers(streams[-1]), written.gap)
    return reading.result()
