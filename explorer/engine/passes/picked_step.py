"""From a pass to a Step of the trace: its records, the token picked, and where the time went."""

from __future__ import annotations

import time

import numpy as np
import torch

from explorer.engine import ranks
from explorer.engine.capture import all_heads
from explorer.engine.passes.cache import layer_bytes
from explorer.engine.passes.context.dropped_turns import spread
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.picking import drawn, note
from explorer.engine.passes.recorded_pass import ForwardPass
from explorer.engine.passes.runner import Runner
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import NAMED, RankShare, Step, Token


def picked_step(
    runner: Runner,
    request: RunRequest,
    layout: Layout,
    index: int,
    done: ForwardPass,
    sampling: Sampling,
    began: float,
) -> Step:
    """Step `index`, begun at `began` (time.perf_counter); BadInput if no token can be picked."""
    started = time.perf_counter()
    layers, hidden = done.records(runner.capture.proven), done.hidden
    whole = layout.whole or layout
    if layout.places:
        layers = spread(layers, layout.places)
    captured = time.perf_counter()
    warm_up = runner.is_first(done.phase)
    draw = drawn(done.logits, sampling, index, whole, runner.loaded.not_finite.warning)
    top = _top(runner, done.logits)
    picked = time.perf_counter()
    times, count, caches = done.times, len(runner.layers), runner.caches(request)
    held = runner.cache.live if caches else None
    held_bytes = (0,) * count if held is None else layer_bytes(held, count)
    return Step(
        index=index,
        phase=done.phase,
        first_slot=layout.place(done.first_slot),
        token_ids=layout.ids[done.first_slot :],
        position_ids=runner.positions(layout, done.first_slot),
        readout=layout.place(layout.readout),
        logits=done.logits,
        draw=draw,
        sampling=sampling,
        forward_ms=done.seconds * 1e3,
        layer_ms=times.per_layer("layer", count, 0.0),
        attention_ms=times.per_layer("attention", count, np.nan),
        mlp_ms=times.per_layer("mlp", count, np.nan),
        embedding_ms=times.ms("embedding"),
        norm_ms=times.ms("norm"),
        head_ms=times.ms("head"),
        capture_ms=(captured - started + done.gather_seconds) * 1e3,
        pick_ms=(picked - captured) * 1e3,
        engine_ms=(picked - began) * 1e3,
        warm_up=warm_up,
        cache_tokens=runner.cache.policy.kept(runner.cache.slots) if caches else 0,
        cache_bytes_per_layer=_of_all_ranks(runner, held_bytes),
        top=top,
        layers=layers,
        hidden=hidden,
        keys_from=layout.begins if caches else index,
        rebuilt_tokens=done.rebuilt,
        left_out=() if not layout.places else (_gap(layout),),
        note=done.note or note(done.rebuilt, done.chunks),
        ranks=_rank_shares(done, sum(held_bytes)),
    )


def _of_all_ranks(runner: Runner, held: tuple[int, ...]) -> tuple[int, ...]:
    """Bytes per layer of the whole cache, wherever its parts lie."""
    divided = ranks.count() > 1 and all_heads.shares_cache(runner.model)
    return ranks.total(held) if divided else held


def _rank_shares(done: ForwardPass, cache_bytes: int) -> tuple[RankShare, ...]:
    """What each process did of this pass; empty for one by itself."""
    if ranks.count() == 1:
        return ()
    rows = ranks.each(cache_bytes, done.seconds * 1e3, done.waited * 1e3)
    return tuple(RankShare(int(held), spent, waited) for held, spent, waited in rows)


def _gap(layout: Layout) -> tuple[int, int]:
    """The slots of the run that are left out: the first, and the one after the last."""
    first = layout.before_gap
    return first, layout.place(first)


def _top(runner: Runner, logits: np.ndarray) -> tuple[Token, ...]:
    found = torch.from_numpy(logits).topk(min(NAMED, len(logits)), sorted=False)
    best = found.indices.numpy()
    best = best[np.lexsort((best, -logits[best]))]
    return tuple(runner.loaded.tokenizer.token(int(i), "generated") for i in best)
