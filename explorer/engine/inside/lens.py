"""The logit lens: the stream after every layer, read through the model's own final norm and head.

The last row is the proof: replayed alone, it has to be the logits that the model gave itself.
Streams are replayed a bounded number at a time, so that no (layers × tokens × vocabulary) exists.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.errors import BadInput
from explorer.engine.inside.readings.lens_board import (
    LensBlock,
    LensReading,
    portions,
    raise_if,
    replayed_together,
    require_top,
    row_names,
)
from explorer.engine.inside.streams import NO_STREAM, StreamWatch, Visit
from explorer.engine.inside.tail import Tail
from explorer.engine.inside.watched_pass import Span, watched_passes
from explorer.engine.passes.layout import Layout, chosen_slots
from explorer.engine.passes.runner import Runner
from explorer.trace.inside.lens import LensBoard, ReadLens
from explorer.trace.rounding import largest, logit_tolerance
from explorer.trace.step import Token

KEPT = 2  # vectors of each layer that are kept of a token: the stream before and after it


def read(
    runner: Runner,
    asked: ReadLens,
    progress: Report,
    cancelled: Stop = never,
    part: Callable[[LensBoard], None] = lambda board: None,
) -> LensBoard:
    """Every row at the slots asked for, those of padding left out.

    `part` gets the board of the first slots as soon as these are read.  BadInput where the replay
    does not give the model's own logits; Cancelled between and within passes and replays.
    """
    layout = runner.layout(asked.request, asked.chosen)
    slots = chosen_slots(layout, asked.slots)
    require_top(asked)
    reading = LensReading(len(slots), _spelled(runner), progress, part)
    watch = StreamWatch(runner.layers)
    passes = watched_passes(
        runner, asked.request, layout, slots, watch.watching, cancelled, kept=KEPT
    )
    for span in passes:
        tail = Tail(runner, watch.visits, watch.axes)
        reading.rows = row_names(len(watch.visits))
        reading.prove(*_gap(tail, watch.visits, span, layout, runner))
        for places in portions(len(span.slots), len(reading.rows), span.logits.shape[1]):
            raise_if(cancelled)
            block = _block(tail, watch.visits, span, places, layout, asked.top, cancelled)
            reading.add(block, [span.slots[place] for place in places])
    return reading.board()


def _spelled(runner: Runner) -> Callable[[int], Token]:
    return lambda token_id: runner.loaded.tokenizer.token(token_id, "generated")


def _gap(
    tail: Tail, visits: list[Visit], span: Span, layout: Layout, runner: Runner
) -> tuple[float, float]:
    """The last row, in the shape of the pass itself, against the model's own; its tolerance."""
    replayed = tail.logits(visits[-1].left, [layout.ids[slot] for slot in span.slots])
    limit = logit_tolerance(runner.loaded.card.dtype, span.logits)
    return largest(replayed[0].cpu().numpy() - span.logits), limit


def _block(
    tail: Tail,
    visits: list[Visit],
    span: Span,
    places: range,
    layout: Layout,
    top: int,
    cancelled: Stop,
) -> LensBlock:
    axes = tail.axes
    at = torch.tensor(list(places), device=visits[0].left.device)
    ids = [layout.ids[span.slots[place]] for place in places]
    streams = [visits[0].entered, *(visit.left for visit in visits[:-1])]
    if any(stream.shape != streams[-1].shape for stream in streams):
        raise BadInput(NO_STREAM)
    logits = torch.from_numpy(span.logits[places.start : places.stop]).to(at.device)
    final = _Final.of(logits)
    most = max(1, replayed_together(logits.shape[1]) // len(places))
    found = []
    for start in range(0, len(streams), most):
        raise_if(cancelled)
        some = torch.cat(
            [stream.index_select(axes.tokens, at) for stream in streams[start : start + most]],
            axes.batch,
        )
        found.append(_figures(tail.logits(some, ids), final, top))
    found.append(_figures(logits[None], final, top))
    block = LensBlock(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
    block.kl_bits[-1] = 0  # from itself
    return block


@dataclass(frozen=True, slots=True)
class _Final:
    """What the model really says at n tokens."""

    probabilities: torch.Tensor  # (n, V)
    entropy: torch.Tensor  # (n,) nats
    favourites: torch.Tensor  # (n,)

    @classmethod
    def of(cls, logits: torch.Tensor) -> _Final:
        """Of the model's own logits (n, V)."""
        below, shares, sums = _softmax(logits)
        entropy = sums.log() - torch.einsum("nv,nv->n", shares, below) / sums
        return cls(shares / sums[:, None], entropy, logits.argmax(-1))


def _softmax(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits below the largest of each row, e to the power of them, and the sums of that."""
    below = logits - logits.amax(-1, keepdim=True)
    shares = below.exp()
    return below, shares, shares.sum(-1)


@torch.inference_mode()
def _figures(logits: torch.Tensor, final: _Final, top: int) -> tuple[np.ndarray, ...]:
    """The fields of a block of logits (R, n, V).

    The sums over the vocabulary are products of matrices: few passes over a large array.
    """
    below, shares, sums = _softmax(logits)
    normal = sums.log()
    best, ids = below.topk(min(top, below.shape[-1]), -1)
    entropy = normal - torch.einsum("rnv,rnv->rn", shares, below) / sums
    kl = normal - torch.einsum("rnv,nv->rn", below, final.probabilities) - final.entropy
    at = final.favourites.expand(len(logits), -1)[..., None]
    own = below.gather(-1, at)
    rank = torch.count_nonzero(below > own, -1)
    equal = below == own
    if int(torch.count_nonzero(equal)) > own.numel():  # of equal ones the lower id comes first
        places = torch.arange(below.shape[-1], device=below.device)
        rank = rank + torch.count_nonzero(equal & (places < at), -1)
    bits = 1 / math.log(2)
    found = (
        ids, (best - normal[..., None]).exp(), entropy.clamp_min(0) * bits, kl.clamp_min(0) * bits,
        rank, (own[..., 0] - normal).exp(),
    )  # fmt: skip
    return tuple(one.cpu().numpy() for one in found)
