"""The logit lens: the stream after every layer, read through the model's own final norm and head.

The last row is the proof: replayed alone, it has to be the logits that the model gave itself.
Streams are replayed a bounded number at a time, so that no (layers × tokens × vocabulary) exists.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.inside.streams import NO_STREAM, StreamWatch, Visit
from explorer.engine.inside.tail import Tail
from explorer.engine.inside.telling import Telling
from explorer.engine.inside.watched_pass import Span, chosen_slots, watched_passes
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.runner import Runner
from explorer.trace.inside.arrays import WHOLE, packed
from explorer.trace.inside.lens import LensBoard, ReadLens
from explorer.trace.rounding import largest, logit_tolerance

LOGIT_BYTES = 32 << 20  # of one replay: a cancel is heard within a fraction of a second
MOST_TOP = 100
KEPT = 2  # vectors of each layer that are kept of a token: the stream before and after it


@dataclass(slots=True)
class _Block:
    """Figures of all R rows at some slots, rows first."""

    ids: np.ndarray  # (R, n, K)
    probabilities: np.ndarray  # (R, n, K)
    entropy_bits: np.ndarray  # (R, n)
    kl_bits: np.ndarray
    final_rank: np.ndarray
    final_probability: np.ndarray


@dataclass(slots=True)
class _Reading:
    """What has been read so far."""

    asked: int
    rows: tuple[str, ...] = ()
    slots: list[int] = field(default_factory=list)
    blocks: list[_Block] = field(default_factory=list)
    final_gap: float = 0.0
    tolerance: float = 0.0


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
    if not 1 <= asked.top <= MOST_TOP:
        raise BadInput(f"The number of tokens per cell must be from 1 to {MOST_TOP}.")
    reading = _Reading(len(slots))
    telling = Telling(len(slots))
    watch = StreamWatch(runner.layers)
    passes = watched_passes(
        runner, asked.request, layout, slots, watch.watching, cancelled, kept=KEPT
    )
    for span in passes:
        tail = Tail(runner, watch.visits, watch.axes)
        reading.rows = row_names(watch.visits)
        _prove(reading, tail, watch.visits, span, layout, runner)
        for places in _portions(len(span.slots), len(reading.rows), span.logits.shape[1]):
            if cancelled():
                raise Cancelled
            block = _block(tail, watch.visits, span, places, layout, asked.top, cancelled)
            reading.blocks.append(block)
            reading.slots += [span.slots[place] for place in places]
            done = len(reading.slots)
            progress("Reading the layers", done / len(slots))
            if telling.due(done):
                part(_board(runner, reading, asked.top))
    return _board(runner, reading, asked.top)


def row_names(visits: Sequence[Visit]) -> tuple[str, ...]:
    """What stands before the first layer, after each, and after the last.

    Where layers run more than once, runs are counted instead of layers.
    """
    return ("embedding", *map(str, range(len(visits) - 1)), "final")


def _prove(
    reading: _Reading, tail: Tail, visits: list[Visit], span: Span, layout: Layout, runner: Runner
) -> None:
    """The last row, in the shape of the pass itself, against the model's own logits."""
    replayed = tail.logits(visits[-1].left, [layout.ids[slot] for slot in span.slots])
    gap = largest(replayed[0].cpu().numpy() - span.logits)
    limit = logit_tolerance(runner.loaded.card.dtype, span.logits)
    reading.final_gap = max(reading.final_gap, gap)
    reading.tolerance = max(reading.tolerance, limit)
    if gap > limit:
        raise BadInput(
            "This model's layers can't be read through its own final norm and head: replayed, the "
            f"last layer's logits are off by {gap:.2g}."
        )


def _portions(slots: int, rows: int, vocabulary: int) -> list[range]:
    """Places of slots that are replayed together, in order."""
    most = max(1, LOGIT_BYTES // (4 * vocabulary))
    size = max(1, most // rows)
    return [range(start, min(start + size, slots)) for start in range(0, slots, size)]


def _block(
    tail: Tail,
    visits: list[Visit],
    span: Span,
    places: range,
    layout: Layout,
    top: int,
    cancelled: Stop,
) -> _Block:
    axes = tail.axes
    at = torch.tensor(list(places), device=visits[0].left.device)
    ids = [layout.ids[span.slots[place]] for place in places]
    streams = [visits[0].entered, *(visit.left for visit in visits[:-1])]
    if any(stream.shape != streams[-1].shape for stream in streams):
        raise BadInput(NO_STREAM)
    final = torch.from_numpy(span.logits[places.start : places.stop])
    reference = torch.log_softmax(final.to(at.device), -1)  # (n, V)
    favourites = final.argmax(-1).to(at.device)  # (n,)
    most = max(1, LOGIT_BYTES // (4 * final.shape[1] * len(places)))
    found = []
    for start in range(0, len(streams), most):
        if cancelled():
            raise Cancelled
        some = torch.cat(
            [stream.index_select(axes.tokens, at) for stream in streams[start : start + most]],
            axes.batch,
        )
        found.append(_figures(tail.logits(some, ids), reference, favourites, top))
    found.append(_figures(final[None].to(at.device), reference, favourites, top))
    return _Block(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


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


def _board(runner: Runner, reading: _Reading, top: int) -> LensBoard:
    def joined(name: str, kind: str = "<f4") -> bytes:
        return packed(np.concatenate([getattr(one, name) for one in reading.blocks], 1), kind)

    ids = np.concatenate([one.ids for one in reading.blocks], 1)
    listed = np.unique(ids).tolist()
    token = runner.loaded.tokenizer.token
    return LensBoard(
        rows=reading.rows,
        slots=tuple(reading.slots),
        asked=reading.asked,
        top=ids.shape[2],
        id_bytes=packed(ids, WHOLE),
        probability_bytes=joined("probabilities"),
        entropy_bytes=joined("entropy_bits"),
        kl_bytes=joined("kl_bits"),
        final_rank_bytes=joined("final_rank", WHOLE),
        final_probability_bytes=joined("final_probability"),
        spelled_ids=tuple(listed),
        spelled=tuple(token(i, "generated").raw for i in listed),
        final_gap=reading.final_gap,
        tolerance=reading.tolerance,
    )
