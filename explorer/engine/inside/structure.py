"""The parts of each layer, in the order in which they compute, and what each one reads.

Seen on one pass over a dozen tokens: a part's input is the stream as it entered the layer, the
stream with what was added since, or another part's output, to the last bit or to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch

from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.capture.timed_parts import parts_of
from explorer.engine.errors import BadInput
from explorer.engine.inside.calls import CallWatch, ModuleCall, together
from explorer.engine.inside.route import Write, route_of
from explorer.engine.inside.streams import StreamWatch, Visit
from explorer.engine.passes.generate import forward
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest.selftest import LENGTH, sample_ids
from explorer.trace.inside.structure import (
    BlockKind,
    BlockPart,
    LayerBlock,
    ModelStructure,
    OuterPart,
    Reads,
    ReadStructure,
)
from explorer.trace.request import RunRequest

NO_PICTURE = (
    "This model's layers attend several times for each token, so they can't be drawn as one stack. "
    "Look at the attention panel, which shows every time."
)
_NOTHING = ("Dropout", "Identity")  # classes that compute nothing here
_CLOSE = 1e-4  # relative: sums in another order differ by rounding

_FOUND: WeakKeyDictionary[Runner, ModelStructure] = WeakKeyDictionary()


def read(
    runner: Runner, asked: ReadStructure, progress: Report, cancelled: Stop = never
) -> ModelStructure:
    """The parts of this model, looked at once; BadInput where none pass a stream on, or repeat."""
    if runner not in _FOUND:
        _FOUND[runner] = _find(runner, cancelled)
    return _FOUND[runner]


def _find(runner: Runner, stop: Stop) -> ModelStructure:
    if runner.loaded.card.layers > len(runner.layers):
        raise BadInput(NO_PICTURE)
    writes, reason = _writes(runner, stop)
    embedding = runner.model.get_input_embeddings()
    ids = sample_ids(embedding.num_embeddings, set(runner.loaded.card.eos_ids))
    layout = Layout(ids, (1,) * LENGTH, tuple(range(LENGTH)))
    streams = StreamWatch(runner.layers)
    children = {
        f"{index}/{name}": child
        for index, layer in enumerate(runner.layers)
        for name, child in layer.named_children()
        if type(child).__name__ not in _NOTHING
    }
    calls = CallWatch(children)
    with together(streams.watching, calls.watching)(LENGTH, range(LENGTH)):
        forward(runner, RunRequest(), layout, 0, None, stop)
    found: dict[tuple[BlockPart, ...], list[int]] = {}
    for visit in {visit.layer: visit for visit in streams.visits}.values():
        own = [call for call in calls.calls if call.name.startswith(f"{visit.layer}/")]
        parts = tuple(_parts(runner, visit, own, writes.get(visit.layer, ())))
        found.setdefault(parts, []).append(visit.layer)
    outer, head = parts_of(runner.model), runner.model.get_output_embeddings()
    tied = head is not None and head.weight is getattr(embedding, "weight", None)
    return ModelStructure(
        layers=len(runner.layers),
        blocks=tuple(
            LayerBlock(layers=tuple(layers), parts=some) for some, layers in found.items()
        ),
        embedding=_outer(embedding),
        norm=None if outer.norm is None else _outer(outer.norm),
        head=None if head is None else _outer(head),
        tied=tied,
        stream_reason=reason,
    )


def _writes(runner: Runner, stop: Stop) -> tuple[dict[int, tuple[Write, ...]], str]:
    try:
        route = route_of(runner, stop)
    except BadInput as error:
        return {}, str(error)
    return {layer.layer: layer.writes for layer in route.layers}, ""


def _parts(
    runner: Runner, visit: Visit, calls: Sequence[ModuleCall], writes: Sequence[Write]
) -> Iterator[BlockPart]:
    """Each child of a layer that was called, its first call."""
    layer = runner.layers[visit.layer]
    entered = visit.entered.reshape(-1).double()
    stream, before = entered, dict[str, torch.Tensor]()
    for call in calls:
        name = call.name.partition("/")[2]
        if name in before:
            continue
        module = layer.get_submodule(name)
        own = [write for write in writes if f"{write.name}.".startswith(f"{name}.")]
        reads, source = _reads(call.given, entered, stream, before)
        before[name] = torch.empty(0) if call.gave is None else call.gave
        yield BlockPart(
            name=name,
            module=type(module).__name__,
            kind=_kind(runner, visit.layer, name, module, own),
            reads=reads,
            source=source,
            adds=bool(own),
            width=0 if call.gave is None else call.gave.shape[-1],
            parameters=sum(one.numel() for one in module.parameters()),
            bytes=_bytes(module),
        )
        for write in own:
            if call.gave is not None and call.gave.numel() == stream.numel():
                stream = stream + call.gave.reshape(-1).double() * write.factor


def _reads(
    given: torch.Tensor | None,
    entered: torch.Tensor,
    stream: torch.Tensor,
    before: dict[str, torch.Tensor],
) -> tuple[Reads, str]:
    """What a part reads, and the part that gave it."""
    if given is None:
        return "inside", ""
    for name, gave in before.items():
        if gave.shape == given.shape and torch.equal(gave, given):
            return "part", name
    flat = given.reshape(-1).double()
    if flat.shape != entered.shape:
        return "inside", ""
    if _close(flat, entered):
        return "entered", ""
    return ("stream" if _close(flat, stream) else "inside"), ""


def _close(one: torch.Tensor, other: torch.Tensor) -> bool:
    return float((one - other).abs().max()) <= _CLOSE * float(other.abs().max())


def _kind(runner: Runner, layer: int, name: str, module: Any, own: Sequence[Write]) -> BlockKind:
    if "norm" in type(module).__name__.lower():
        return "norm"
    if any("expert" in inner for inner, _ in module.named_modules()):
        return "experts"
    kinds = {write.kind for write in own}
    parts = parts_of(runner.model)
    if "attention" in kinds:
        return "attention"
    if "mixer" in kinds:
        return "mixer"
    if "mlp" in kinds or any(module is one for one in parts.mlp[layer]):
        return "mlp"
    return "attention" if any(module is one for one in parts.attention[layer]) else "other"


def _outer(module: Any) -> OuterPart:
    weight = getattr(module, "weight", None)
    return OuterPart(
        module=type(module).__name__,
        shape=() if weight is None else tuple(weight.shape),
        parameters=sum(one.numel() for one in module.parameters()),
        bytes=_bytes(module),
    )


def _bytes(module: Any) -> int:
    return sum(one.numel() * one.element_size() for one in module.parameters())
