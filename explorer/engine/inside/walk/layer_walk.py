"""A walk through one layer at one token: every stage that was measured, in its order.

Stages are the calls of the layer's own modules and, between them, what the attention kernel
received and gave.  What a module does inside itself is not guessed: it is named as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import torch

from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.errors import BadInput
from explorer.engine.inside.calls import CallWatch, ModuleCall, together
from explorer.engine.inside.residual import as_rows, factor_of, numbers, require_own_writes
from explorer.engine.inside.route import LayerRoute, known_route, modules_in, rounding_of
from explorer.engine.inside.streams import NO_STREAM, StreamWatch, Visit
from explorer.engine.inside.sums import gap_of
from explorer.engine.inside.walk.attention_stages import Place, kernel_stages
from explorer.engine.inside.walk.expert_choices import ExpertWatch
from explorer.engine.inside.walk.rotation import frequencies_in
from explorer.engine.inside.walk.stages import difference, friendly, module_stage, stage
from explorer.engine.inside.walk.states import state_stages
from explorer.engine.inside.watched_pass import watched_passes
from explorer.engine.passes.layout import chosen_slots
from explorer.engine.passes.recorded_pass import ForwardPass
from explorer.engine.passes.runner import Runner
from explorer.trace.inside.stream import WriteKind
from explorer.trace.inside.walk import MOST_STAGES, LayerStage, LayerWalk, LayerWrite, WalkLayer
from explorer.trace.request import RunRequest

NOT_WRITTEN = "What the parts of this layer wrote could not be read at this token."
_EMPTY = ("Dropout", "Identity")


def walk(runner: Runner, asked: WalkLayer, progress: Report, cancelled: Stop = never) -> LayerWalk:
    """The stages of one layer at one token of the run.

    Experts are those of all tokens that were read in the same pass.  BadInput for a layer or a
    position that does not exist.
    """
    if not 0 <= asked.layer < len(runner.layers):
        known, counted = len(runner.layers), runner.loaded.card.layers
        if known <= asked.layer < counted:
            raise BadInput(
                f"This model counts {counted} layers, because its layers attend several times for "
                f"each token. Only those below {known} can be shown part by part."
            )
        raise BadInput(f"There is no layer {asked.layer}. This model has {known}, counted from 0.")
    require_own_writes(asked.request, asked.layer)
    layout = runner.layout(asked.request, asked.chosen)
    slot = chosen_slots(layout, () if asked.slot is None else (asked.slot,))[-1]
    progress("Walking through the layer", None)
    route = known_route(runner, cancelled)
    own = next((one for one in route.layers if one.layer == asked.layer), route.layers[0])
    module = runner.layers[asked.layer]
    streams, experts = StreamWatch([module]), ExpertWatch(module)
    calls = CallWatch(modules_in(runner, [asked.layer]))
    mixture = any("expert" in name for name, _ in module.named_modules())
    passes = watched_passes(
        runner, asked.request, layout, (slot,),
        together(streams.watching, calls.watching, experts.watching), cancelled,
        keep_outputs=True, read_out=False, whole=mixture,
    )  # fmt: skip
    done = next(passes).done
    if not streams.visits:
        raise BadInput(NO_STREAM)
    visit = streams.visits[-1]
    steps = _Steps(asked.request, module, visit, calls.calls, own)
    row = slot - done.first_slot
    place = Place(
        row,
        runner.positions(layout, slot)[0],
        frequencies_in(runner.model),
        runner.loaded.card.dtype,
    )
    kernel = list(_kernel(done, asked.layer, place, steps))
    kept: list[LayerStage] = []
    if not kernel or any(write.kind == "mixer" for write in own.writes):
        kept += state_stages(runner, asked.request, asked.layer, layout, slot, cancelled)
    stages = list(steps.all({"attention": kernel, "mixer": kept}))
    gap, kinds = steps.residual_gap(), {write.kind for write in own.writes}
    kind = "attention" if kernel or "attention" in kinds else next(iter(sorted(kinds)), "other")
    return LayerWalk(
        layer=asked.layer,
        slot=slot,
        kind="mixer" if kind != "attention" and "mixer" in kinds else kind,
        stages=tuple(stages[:MOST_STAGES]),
        writes=steps.written(),
        residual_gap=gap,
        residual_reason="" if gap is not None else own.reason or NOT_WRITTEN,
        experts=experts.choices(done.slots),
    )


def _kernel(done: ForwardPass, layer: int, place: Place, steps: _Steps) -> Iterator[LayerStage]:
    before = [steps.stage_of(call) for call in steps.leaves if call.gave is not None]
    yield from kernel_stages(done, layer, place, before)


class _Steps:
    """The calls of one layer at one token, and what they add up to."""

    def __init__(
        self,
        request: RunRequest,
        module: Any,
        visit: Visit,
        calls: Sequence[ModuleCall],
        route: LayerRoute,
    ) -> None:
        self._request, self._module, self._visit, self._route = request, module, visit, route
        self._calls = calls
        self.leaves = [call for call in calls if self._shown(call)]
        self._writes = self._find_writes()

    def stage_of(self, call: ModuleCall) -> LayerStage:
        """What one module did."""
        path = call.name.partition("/")[2]
        return module_stage(self._name(path), self._module.get_submodule(path), call)

    def written(self) -> tuple[LayerWrite, ...]:
        """What each part added to the stream."""
        return tuple(
            LayerWrite(name=path, norm=float(vector.norm())) for path, vector in self._writes
        )

    def residual_gap(self) -> float | None:
        """How far the writes are from what the layer changed; None where none are known."""
        if not self._writes:
            return None
        before, after = as_rows(self._visit.entered), as_rows(self._visit.left)
        change = (after.double() - before.double()).reshape(-1)
        total = torch.stack([vector for _, vector in self._writes]).sum(0)
        rounding = rounding_of(numbers(before), numbers(after), after.dtype).reshape(-1)
        return gap_of(numbers(change - total), numbers(change), rounding)

    def all(self, between: Mapping[WriteKind, Sequence[LayerStage]]) -> Iterator[LayerStage]:
        """Every stage in order; `between`: those of the kernel and of states, by their kind."""
        entered = as_rows(self._visit.entered).squeeze(0)
        size = f"{entered.shape[-1]:,} numbers"
        yield stage("residual stream", f"what the layer reads: {size}", entered)
        stream = entered.double().reshape(-1)
        seen = b""  # the sum into the stream that was shown last
        left = {kind: stages for kind, stages in between.items() if stages}
        writes = dict(self._writes)
        for call in self.leaves:
            path = call.name.partition("/")[2]
            for kind in [kind for kind in left if self._joins(call, kind, left[kind])]:
                stages = left.pop(kind)
                yield from stages
                yield from self._joined(call, stages[-1])
            for one in self._between(call, stream):
                if one.name != "residual" or one.data != seen:  # two modules may read the same
                    yield one
                seen = one.data if one.name == "residual" else seen
            yield self.stage_of(call)
            if path in writes:
                stream = stream + writes.pop(path)
        for stages in left.values():
            yield from stages
        after = as_rows(self._visit.left).squeeze(0)
        gap = self._out_gap(after)
        words = "stream + everything this layer wrote" if gap is not None else "what it gives on"
        yield stage("residual stream after", f"{words}: {size}", after, gap=gap)

    def _out_gap(self, after: torch.Tensor) -> float | None:
        if not self._writes:
            return None
        before = self._visit.entered.double().reshape(-1)
        total = before + torch.stack([vector for _, vector in self._writes]).sum(0)
        return difference(total, after)

    def _find_writes(self) -> list[tuple[str, torch.Tensor]]:
        """(path, (d,) float64 with its factor) of the layer's writes, in order."""
        found = []
        for write in self._route.writes:
            named = [one for one in self._calls if one.name.partition("/")[2] == write.name]
            gave = named[write.call].gave if len(named) > write.call else None
            if gave is None or gave.numel() != self._visit.left.numel():
                return []
            factor = factor_of(self._request, self._route.layer, write)
            found.append((write.name, gave.double().reshape(-1) * factor))
        return found

    def _shown(self, call: ModuleCall) -> bool:
        """True for modules without parts of their own, for whole parts that write, for experts."""
        path = call.name.partition("/")[2]
        if call.gave is None or type(self._module.get_submodule(path)).__name__ in _EMPTY:
            return False
        written = any(write.name == path for write in self._route.writes)
        return not self._has_parts(path) or written or friendly(path) == "experts"

    def _has_parts(self, path: str) -> bool:
        return next(self._module.get_submodule(path).children(), None) is not None

    def _name(self, path: str) -> str:
        """The field's name: by what the route knows, then by the module's own."""
        for write in self._route.writes:
            if path == write.projection:
                return "W_O"
            if path == write.name and write.source:
                return f"norm after {write.kind}"
            if path == write.name and friendly(path) == path and self._has_parts(path):
                return f"{write.kind} output"
        if path.rsplit(".", 1)[-1] == "c_proj" and any(w.name == path for w in self._route.writes):
            return "down"
        if friendly(path) != path:
            return friendly(path)
        call = next(one for one in self._calls if one.name.partition("/")[2] == path)
        norm = "norm" in type(self._module.get_submodule(path)).__name__.lower()
        size = self._visit.entered.shape[-1]
        if norm and call.given is not None and call.given.shape == (1, size):
            same = torch.equal(call.given.reshape(-1), self._visit.entered.reshape(-1))
            return "input norm" if same else "norm"
        return path

    def _joins(self, call: ModuleCall, kind: WriteKind, stages: Sequence[LayerStage]) -> bool:
        """True for the module that reads the heads' outputs, or what comes of a state."""
        path, output = call.name.partition("/")[2], stages[-1].numbers
        mixing = [one for one in self._route.writes if one.kind == kind]
        if any(path in (one.projection, one.source or one.name) for one in mixing):
            return True
        if kind == "mixer":
            return False
        if call.given is None or output is None or call.given.numel() != output.size:
            return False
        return difference(call.given, output) < 1e-6

    def _joined(self, call: ModuleCall, mixed: LayerStage) -> Iterator[LayerStage]:
        output = mixed.numbers if mixed.name == "weights · V" else None
        if call.given is None or output is None or call.given.numel() != output.size:
            return
        off = difference(call.given, output)
        side = " × ".join(f"{size:,}" for size in output.shape)
        if off < 1e-4:
            yield stage("concat", f"heads side by side: {side}", call.given.reshape(-1), gap=off)
        else:
            words = "heads side by side, changed by a gate or a norm of the model"
            yield stage("gated heads", words, call.given.reshape(-1))

    def _between(self, call: ModuleCall, stream: torch.Tensor) -> Iterator[LayerStage]:
        """What a module reads that no module gave: a sum into the stream, or a product."""
        given = call.given
        if given is None or any(
            one.gave is not None and one.gave.numel() == given.numel()
            and torch.equal(one.gave.reshape(-1), given.reshape(-1))
            for one in self._calls
        ):  # fmt: skip
            return
        flat = given.reshape(-1)
        entered = self._visit.entered.reshape(-1)
        if flat.numel() == stream.numel() and not torch.equal(flat, entered):
            off = difference(stream, flat)
            if off < 1e-4 or (given.dtype != torch.float32 and off < 5e-2):
                yield stage("residual", "stream + what was written so far", flat, gap=off)
                return
        made = self._product(call, flat)
        if made is not None:
            yield stage("product", made[0], flat, gap=made[1])

    def _product(self, call: ModuleCall, flat: torch.Tensor) -> tuple[str, float] | None:
        """Which two outputs before this call give what it reads, multiplied entry by entry."""
        wide = flat.double()
        for (name, one), (other_name, other) in combinations(self._before(call, flat.numel()), 2):
            off = difference(one * other, wide)
            if off < 1e-4 or (flat.dtype != torch.float32 and off < 5e-2):
                return f"{name} × {other_name}, entry by entry: {flat.numel():,}", off
        return None

    def _before(self, call: ModuleCall, size: int) -> Iterator[tuple[str, torch.Tensor]]:
        """(name, (size,) float64) of the outputs before a call, and of halves of those."""
        for one in self._calls[: self._calls.index(call)]:
            if one.gave is None:
                continue
            name, gave = self._name(one.name.partition("/")[2]), one.gave.double().reshape(-1)
            if gave.numel() == size:
                yield name, gave
            elif gave.numel() == 2 * size:
                yield f"first half of {name}", gave[:size]
                yield f"second half of {name}", gave[size:]
