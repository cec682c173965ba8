"""The logit lens: the stream after every layer, read through the model's own final norm and head.

The last row is the proof: replayed alone, it has to be the logits that the model gave itself.
Streams are replayed a bounded number at a time, so that no (layers × tokens × vocabulary) exists.
"""

from __future__ import annotations

import math
from collections.abc import Callable

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
    final = torch.from_numpy(span.logits[places.start : places.stop])
    reference = torch.log_softmax(final.to(at.device), -1)  # (n, V)
    favourites = final.argmax(-1).to(at.device)  # (n,)
    most = max(1, replayed_together(final.shape[1]) // len(places))
    found = []
    for start in range(0, len(streams), most):
        raise_if(cancelled)
        some = torch.cat(
            [stream.index_select(axes.tokens, at) for stream in streams[start : start + most]],
            axes.batch,
        )
        found.append(_figures(tail.logits(some, ids), reference, favourites, top))
    found.append(_figures(final[None].to(at.device), reference, favourites, top))
    return LensBlock(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


@torch.inference_mode()
def _figures(
    logits: torch.Tensor, final: torch.Tensor, favourites: torch.Tensor, top: int
) -> tuple[np.ndarray, ...]:
    """The fields of a block of logits (R, n, V); `final` (n, V) are log-probabilities."""
    log_p = torch.log_softmax(logits, -1)
    best, ids = log_p.topk(min(top, log_p.shape[-1]), -1)
    p = log_p.exp()
    # A probability of 0 has a logarithm of -inf, and takes no part.
    entropy = -(p * log_p.clamp_min(-1e4)).sum(-1) / math.log(2)
    gone = final.clamp_min(-1e4) - log_p.clamp_min(-1e4)
    kl = (final.exp() * gone).sum(-1) / math.log(2)
    at = favourites.expand(len(logits), -1)[..., None]
    own = log_p.gather(-1, at)
    places = torch.arange(log_p.shape[-1], device=log_p.device)
    rank = ((log_p > own) | ((log_p == own) & (places < at))).sum(-1)
    found = (ids, best.exp(), entropy.clamp_min(0), kl.clamp_min(0), rank, own[..., 0].exp())
    return tuple(one.cpu().numpy() for one in found)
