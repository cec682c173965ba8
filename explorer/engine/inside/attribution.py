"""A logit as a sum: what the embedding, each head, each MLP and the biases add to it.

The stream before the final norm is the embedding plus every write; with the norm's scale held at
its actual value the rest is linear, so each write has its share of the logit.  A head's write is
its slice of the output projection applied to its own output.  The shares are proved by their sum.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.errors import BadInput
from explorer.engine.inside.held_norm import HeldNorm, held_norm
from explorer.engine.inside.linear_tail import linear_tail
from explorer.engine.inside.residual import Written, as_rows, written_passes
from explorer.engine.inside.route import Write, route_of
from explorer.engine.inside.streams import axes_of
from explorer.engine.inside.tail import Tail
from explorer.engine.passes.runner import Runner
from explorer.trace.inside.attribution import Attribute, Attribution, LogitPart, PartKind, Target

LIMIT = {"float32": 1e-3, "float16": 2e-2, "bfloat16": 5e-2}  # of the largest logit


@torch.inference_mode()
def attribute(
    runner: Runner, asked: Attribute, progress: Report, cancelled: Stop = never
) -> Attribution:
    """The parts of one token's logit, or of its lead over another's.

    BadInput where the model's structure allows no such sum, or it does not add up.
    """
    layout = runner.layout(asked.request, asked.chosen)
    slot = layout.readout if asked.slot is None else asked.slot
    if not 0 <= slot < len(layout.ids):
        raise BadInput(
            f"There is no position {slot}. The run has {len(layout.ids):,} so far, counted from 0."
        )
    progress("Finding what each part writes", None)
    route = route_of(runner, cancelled)
    names = {
        name
        for layer in route.layers
        for write in layer.writes
        for name in (write.source, write.projection)
        if name
    }
    passes = written_passes(
        runner, asked.request, layout, (slot,), cancelled, sorted(names), read_out=True
    )
    written, logits = next(passes)
    last = written.visits[-1].left
    tail = Tail(runner, written.visits, axes_of(last, 1))
    found = linear_tail(runner, tail, last, layout.ids[slot], logits[0])
    favourite = int(logits[0].argmax())
    target = _target(runner, logits[0], favourite if asked.token is None else asked.token)
    against = None if asked.against is None else _target(runner, logits[0], asked.against)
    direction, constant = found.direction(target.id), found.constant(target.id)
    if against is not None:
        direction = direction - found.direction(against.id)
        constant -= found.constant(against.id)
    parts = tuple(_parts(runner, written, direction, constant))
    wanted = target.logit - (0.0 if against is None else against.logit)
    gap = abs(sum(part.value for part in parts) - wanted)
    size = float(np.abs(logits[0]).max())
    if gap > LIMIT.get(runner.loaded.card.dtype, 1e-3) * max(abs(wanted), 0.1 * size):
        raise BadInput(
            f"The parts of this logit don't add up here: their sum is off by {gap:.2g}, so they "
            "are not shown."
        )
    return Attribution(slot=slot, target=target, against=against, parts=parts, gap=gap)


def _target(runner: Runner, logits: np.ndarray, token_id: int) -> Target:
    if not 0 <= token_id < len(logits):
        raise BadInput(f"There is no token {token_id}: this model's ids end at {len(logits) - 1}.")
    raw = runner.loaded.tokenizer.token(token_id, "generated").raw
    return Target(id=token_id, raw=raw, logit=float(logits[token_id]))


def _parts(
    runner: Runner, written: Written, direction: torch.Tensor, constant: float
) -> Iterator[LogitPart]:
    def along(vector: torch.Tensor) -> float:
        return float(vector.reshape(-1).double() @ direction)

    streams = written.streams
    yield LogitPart(kind="embedding", value=along(streams[0]))
    for layer, write, vector in written.writes:
        yield from _shares(runner, written, layer, write, vector, direction)
    yield LogitPart(kind="bias", value=constant)
    if runner.loaded.card.dtype != "float32":
        left = streams[-1].double() - streams[0].double()
        left = left - sum(vector.double() for _, _, vector in written.writes)
        yield LogitPart(kind="rounding", value=along(left))


def _shares(
    runner: Runner,
    written: Written,
    layer: int,
    write: Write,
    vector: torch.Tensor,
    direction: torch.Tensor,
) -> Iterator[LogitPart]:
    """What one write adds: head by head where its heads are known, and the rest as bias."""
    whole = float(vector.reshape(-1).double() @ direction)
    silent = not bool(vector.any())
    heads = None if silent or not write.heads else _heads(runner, written, layer, write)
    if heads is None:
        kind: PartKind = write.kind
        yield LogitPart(kind=kind, layer=layer, value=whole)
        return
    values = (heads.double() * write.factor) @ direction
    for head, value in enumerate(values.tolist()):
        yield LogitPart(kind="head", layer=layer, head=head, value=value)
    bias = whole - float(values.sum())
    if abs(bias) > 1e-6 * float(values.abs().sum()):  # more than the rounding of the heads' own
        yield LogitPart(kind="bias", layer=layer, value=bias)


@torch.inference_mode()
def _heads(runner: Runner, written: Written, layer: int, write: Write) -> torch.Tensor | None:
    """(H, d): each head's slice of the output projection on its own output; None if not known.

    Where a norm stands after the projection, each passes through it with its scale held.
    """
    parts = runner.layers[layer]
    call = written.calls.named(f"{layer}/{write.projection}")[0]
    if call.given is None:
        return None
    joined = call.given.reshape(-1)
    width = len(joined) // write.heads
    alone = torch.zeros(write.heads, write.heads, width, dtype=joined.dtype, device=joined.device)
    at = torch.arange(write.heads)
    alone[at, at] = joined.reshape(write.heads, width)
    module = parts.get_submodule(write.projection)
    flat = alone.reshape(1, write.heads, -1)
    heads = (module(flat) - module(torch.zeros_like(flat[:, :1])))[0]
    if write.source:
        held = _held(runner, written, layer, write)
        return None if held is None else held.part(heads)
    return heads


def _held(runner: Runner, written: Written, layer: int, write: Write) -> HeldNorm | None:
    call = written.calls.named(f"{layer}/{write.name}")[write.call]
    if call.given is None or call.gave is None:
        return None
    module = runner.layers[layer].get_submodule(write.name)
    return held_norm(module, as_rows(call.given), call.gave.reshape(-1))
