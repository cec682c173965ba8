"""Generation on one page: a prompt is read (prefill), then one token a pass (decode).

    generate            steps, until a rule stops it
      one_step          one pass, and the token picked from its logits
        next_pass       through the cache of the run, as far as it holds these tokens, or
          recompute     all T slots again, where there is no cache
            forward     llama.cpp, called once a chunk

Axes: T slots so far, Q of them read by a pass, V vocabulary, H heads, d_h their width.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.engine.callbacks import Stop, never
from explorer.engine.passes.layout import Layout, Prompt
from explorer.engine.passes.picking import (
    MEANS,
    NOT_CUT,
    drawn,
    note,
    require_possible,
    reused_note,
)
from explorer.engine.passes.stop_rules import StopRules
from explorer.llama_engine.passes.context import Context, ContextShape
from explorer.llama_engine.passes.part_times import PartTimes
from explorer.llama_engine.passes.records import Pass
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.llama_engine.passes.watch import Wanted
from explorer.sampling import leading
from explorer.trace.request import RunRequest, Sampling, Stops
from explorer.trace.step import NAMED, Phase, Step, Token

_WORTH_TELLING = 256  # slots


@dataclass(slots=True)
class Done:
    """Q slots read, with the logits at one slot or several."""

    logits: np.ndarray  # (V,) float32 at the last slot, or (n, V) of the slots that were named
    seen: Pass
    seconds: float  # in llama.cpp, without what copying took
    times: PartTimes
    phase: Phase = "recompute"
    rebuilt: int = 0  # slots that had to be read first, because the cache was gone
    held: int = 0  # slots in the cache afterwards
    note: str = ""  # what is worth saying of it

    @property
    def slots_run(self) -> int:
        """Slots that went through the model, those of a lost cache included."""
        return self.seen.slots - self.seen.first + self.rebuilt


def generate(
    runner: LlamaRunner,
    prompt: Prompt,
    chosen: Sequence[int],
    steps: int,
    sampling: Callable[[], Sampling],
    emit: Callable[[Step, Token], None],
    cancelled: Stop = never,
    stops: Stops = Stops(),  # noqa: B008 - frozen
    reuse: bool = False,
) -> str:
    """Up to `steps` steps after the tokens `chosen`, each given to `emit`; why it ended.

    `sampling` is asked before each step.  BadInput if the prompt does not fit the model.  `reuse`:
    of the prompt only what the cache does not hold is read.
    """
    spelled = runner.model.tokenizer.token
    rules = StopRules(runner.card, spelled, prompt.request, stops, chosen)
    layout = prompt.layout.followed_by(chosen)  # T slots
    runner.require_ids(chosen)
    ids = list(chosen)
    for _ in range(steps):
        began = time.perf_counter()
        if len(ids) > len(chosen):
            layout = layout.grown(ids[-1])  # T + 1
        if reason := rules.before(layout):
            return reason
        how = (cancelled, began, reuse)
        step = one_step(runner, prompt.request, layout, len(ids), sampling(), *how)
        token = spelled(step.draw.token_id, "generated")
        ids.append(token.id)
        emit(step, token)
        if reason := rules.after(token):
            return reason
        if cancelled():
            return "cancelled"
    return "steps"


def one_step(
    runner: LlamaRunner,
    request: RunRequest,
    layout: Layout,
    index: int,
    sampling: Sampling,
    cancelled: Stop = never,
    began: float | None = None,
    reuse: bool = False,
) -> Step:
    """The pass that has read all of `layout`, as step `index`, and the token picked from it."""
    began = time.perf_counter() if began is None else began
    require_possible(sampling)
    done = next_pass(runner, request, layout, index, cancelled, reuse)
    started = time.perf_counter()
    layers = done.seen.records(runner.card.layers, runner.proven, request.capture_every)
    captured = time.perf_counter()
    draw = drawn(done.logits, sampling, index, layout)
    spelled = runner.model.tokenizer.token
    top = tuple(spelled(int(i), "generated") for i in leading(done.logits, NAMED))
    picked = time.perf_counter()
    cached, first = runner.caches(request), done.seen.first
    return Step(
        index=index,
        phase=done.phase,
        first_slot=first,
        token_ids=layout.ids[first:],
        position_ids=layout.position_ids[first:],
        readout=layout.readout,
        logits=done.logits,
        draw=draw,
        sampling=sampling,
        forward_ms=done.seconds * 1e3,
        layer_ms=done.times.layer_ms,
        attention_ms=done.times.attention_ms,
        mlp_ms=done.times.mlp_ms,
        norm_ms=done.times.norm_ms,
        head_ms=done.times.head_ms,
        capture_ms=(captured - started + done.seen.copy_seconds) * 1e3,
        pick_ms=(picked - captured) * 1e3,
        engine_ms=(picked - began) * 1e3,
        warm_up=runner.is_first(done.phase),
        cache_tokens=done.held if cached else 0,
        cache_bytes_per_layer=(
            runner.cache_bytes(done.held) if cached else (0,) * runner.card.layers
        ),
        top=top,
        layers=layers,
        keys_from=0 if cached else index,
        rebuilt_tokens=done.rebuilt,
        note=done.note or note(done.rebuilt, len(done.seen.seen)),
    )


def next_pass(
    runner: LlamaRunner,
    request: RunRequest,
    layout: Layout,
    index: int,
    cancelled: Stop = never,
    reuse: bool = False,
) -> Done:
    """The pass of step `index`, read out at the last slot."""
    if not runner.caches(request):
        return recompute(runner, request, layout, index, cancelled)
    slots = len(layout.ids)
    wanted = runner.wanted(request, slots)
    context, last = runner.run_context(slots), slots - 1
    context.hold_under(request.changes)
    first, said = (0, "") if index == 0 else (last, "")
    if index == 0 and reuse:
        first, said = _held_beginning(context, layout, request)
        wanted.all_keys = first > 0
    rebuilt = first - _hold(context, layout, first)
    if rebuilt:
        unrecorded = Wanted(every=0, inside=wanted.inside)
        forward(runner, context, layout.ids[:first], unrecorded, cancelled)
    done = forward(runner, context, layout.ids, wanted, cancelled)
    done.phase, done.rebuilt = ("decode" if index else "prefill"), rebuilt
    done.note = said
    return done


def recompute(
    runner: LlamaRunner, request: RunRequest, layout: Layout, index: int, cancelled: Stop = never
) -> Done:
    """All T slots, through an empty cache: what every step costs where none is kept."""
    slots = len(layout.ids)
    wanted = runner.wanted(request, slots)
    context = runner.spare_context(slots, request.causal_mask, whole=request.sees_later)
    done = forward(runner, context, layout.ids, wanted, cancelled)
    done.phase = "recompute" if index else "prefill"
    return done


def forward(
    runner: LlamaRunner,
    context: Context,
    ids: Sequence[int],
    wanted: Wanted,
    cancelled: Stop = never,
    at: Sequence[int] | None = None,
) -> Done:
    """llama.cpp over the slots of `ids` that the context does not hold yet, in chunks.

    Logits are (V,) of the last slot, or (len(at), V) of the slots `at`.
    """
    first, slots = context.slots, len(ids)
    seen = Pass(first, slots)
    slots_out = [slots - 1] if at is None else list(at)
    logits: list[np.ndarray] = []
    seconds = 0.0
    times = PartTimes(runner.card.layers)
    for begin, end in _spans(first, slots, context.shape, len(slots_out)):
        rows = [slot - begin for slot in slots_out if begin <= slot < end]
        started = time.perf_counter()
        found, one = context.read(ids[begin:end], rows, wanted.part(begin == first), cancelled)
        spent = time.perf_counter() - started - one.copy_seconds
        seconds += spent
        times.add(one.ends, one.attending, started)
        logits.append(found)
        seen.seen.append(one)
        if slots - first > _WORTH_TELLING and end < slots:
            runner.report(f"Reading the text: {end:,} of {slots:,} tokens", end / slots)
    runner.note_speed(slots - first, seconds)
    numbers = np.concatenate(logits) if len(logits) > 1 else logits[0]
    numbers = numbers[0] if at is None else numbers
    return Done(numbers, seen, seconds, times, held=context.slots)


def _spans(first: int, slots: int, shape: ContextShape, outputs: int) -> list[tuple[int, int]]:
    """(begin, end) of the calls: no longer than a chunk, with no more logits than there is room."""
    chunk = shape.chunk if outputs <= shape.outputs else min(shape.chunk, shape.outputs)
    return [(begin, min(begin + chunk, slots)) for begin in range(first, slots, chunk)]


def _held_beginning(context: Context, layout: Layout, request: RunRequest) -> tuple[int, str]:
    """How many slots of a prompt are held, kept for it, and what is to be said of it."""
    if not request.keeps_beginnings:
        return 0, MEANS
    limit = len(layout.ids) - 1
    shared = _shared(context, layout, limit)
    held = _hold(context, layout, limit)
    if held:
        return held, reused_note(held, len(layout.ids))
    return 0, NOT_CUT if shared else ""


def _hold(context: Context, layout: Layout, limit: int) -> int:
    """Keep what is right of the first `limit` slots; how many of them are held."""
    context.cut_to(_shared(context, layout, limit))
    return context.slots


def _shared(context: Context, layout: Layout, limit: int) -> int:
    held, wanted = context.ids, layout.ids[:limit]
    if held == wanted[: len(held)]:
        return len(held)
    pairs = enumerate(zip(held, wanted, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(held), len(wanted)))
