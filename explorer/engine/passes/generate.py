"""Generation on one page: a prompt is read (prefill), then one token a pass (decode).

    generate            steps, until a rule stops it
      one_step          one pass, and the token picked from its logits
        next_pass       which of them it is:
          prefill       all T slots, into an empty cache
          read_rest     what stands after the oldest turns, once these do not fit any more
          decode_one    the newest slot alone, against the keys and values of the others
          recompute     all T slots again, where there is no cache
            forward     the model, called once, inside `recording`

Axes: T slots so far (prompt, padding and chosen tokens), Q of them read by a pass, V vocabulary,
H heads, d_h their width.  There is one sequence, so every batch axis is 1.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from explorer.engine import ranks
from explorer.engine.callbacks import Stop, never
from explorer.engine.capture import all_heads, probe
from explorer.engine.capture.capture import set_attention
from explorer.engine.capture.patching import Change, Take
from explorer.engine.capture.probe import Recorder
from explorer.engine.faults import explained
from explorer.engine.passes import chunked_prefill, interventions, masks
from explorer.engine.passes.cache import OwnCache
from explorer.engine.passes.chunked_prefill import Gathered
from explorer.engine.passes.context.evicting_cache import evicting_layer, slots_of_keys
from explorer.engine.passes.layout import Layout, Prompt
from explorer.engine.passes.picked_step import picked_step
from explorer.engine.passes.picking import require_possible
from explorer.engine.passes.preallocated_cache import reserve
from explorer.engine.passes.recorded_pass import ForwardPass
from explorer.engine.passes.runner import Runner
from explorer.engine.passes.stop_rules import StopRules
from explorer.trace.interventions.kinds import OtherRun
from explorer.trace.request import RunRequest, Sampling, Stops
from explorer.trace.step import Step, Token


def generate(
    runner: Runner,
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
    spelled = runner.loaded.tokenizer.token
    rules = StopRules(runner.loaded.card, spelled, prompt.request, stops, chosen)
    layout = prompt.layout.followed_by(chosen)  # T slots
    runner.require_ids(chosen)
    ids = list(chosen)
    for _ in range(steps):
        began = time.perf_counter()
        if len(ids) > len(chosen):
            layout = layout.grown(ids[-1])  # T + 1
        read = runner.read_of(prompt, layout)  # all of it, unless turns are left out
        if reason := rules.before(read):
            return reason
        how = (cancelled, began, reuse)
        step = one_step(runner, prompt.request, read, len(ids), sampling(), *how)
        token = spelled(step.draw.token_id, "generated")
        ids.append(token.id)
        emit(step, token)
        if reason := rules.after(token):
            return reason
        if cancelled():
            return "cancelled"
    return "steps"


def one_step(
    runner: Runner,
    request: RunRequest,
    layout: Layout,
    index: int,
    sampling: Sampling,
    cancelled: Stop = never,
    began: float | None = None,
    reuse: bool = False,
) -> Step:
    """The pass that has read all of `layout`, as step `index`, and the token picked from it.

    `began`: when work on this step began (time.perf_counter); now, unless given.
    """
    began = time.perf_counter() if began is None else began
    require_possible(sampling)
    done = next_pass(runner, request, layout, index, cancelled, reuse)  # logits (V,)
    return picked_step(runner, request, layout, index, done, sampling, began)


def next_pass(
    runner: Runner,
    request: RunRequest,
    layout: Layout,
    index: int,
    cancelled: Stop = never,
    reuse: bool = False,
) -> ForwardPass:
    """The pass of step `index`, read out at the last real slot; a failed one leaves no cache."""
    if not runner.caches(request):
        return recompute(runner, request, layout, index, cancelled)
    with runner.cache_of(request):
        if index == 0:
            held, note = runner.held_beginning(request, layout) if reuse else (0, "")
            if not held:
                runner.cache.fresh()
            done = prefill(runner, request, layout, held, cancelled)
            done.note = note
            return done
        if index == layout.begins:
            return read_rest(runner, request, layout, cancelled)
        return decode_one(runner, request, layout, cancelled)


def read_rest(
    runner: Runner, request: RunRequest, layout: Layout, cancelled: Stop = never
) -> ForwardPass:
    """All that stands after the turns that are left out now; what stands before is in the cache."""
    first = layout.before_gap
    held = runner.cache.hold(layout, first)
    if held < first:
        prefill(runner, request, layout.first(first), held, cancelled)
    done = prefill(runner, request, layout, first, cancelled)
    assert layout.whole is not None
    done.rebuilt = first - held
    gone = len(layout.whole.ids) - len(layout.ids)
    done.note = f"{gone:,} tokens left out: the oldest turns; those after them are read again"
    return done


def logits_after(
    runner: Runner, request: RunRequest, chosen: Sequence[int], cancelled: Stop = never
) -> np.ndarray:
    """(V,) float32 raw logits after the tokens `chosen`; BadInput if they exceed the context."""
    layout = runner.layout(request, chosen)
    return next_pass(runner, request, layout, len(chosen), cancelled).logits


def prefill(
    runner: Runner, request: RunRequest, layout: Layout, first: int, cancelled: Stop = never
) -> ForwardPass:
    """Slots `first` to T through the cache, which holds those before; logits (V,) at the readout.

    A long text is read in chunks where this model allows it, which bounds the memory.  Without
    the causal mask it can't be: early rows depend on later ones.  After slots that are held, a
    model that reads no chunks right reads one slot at a time.
    """
    cache, slots = runner.cache.live, len(layout.ids)
    spans = [(first, slots)]
    if runner.in_chunks and not request.sees_later:
        spans = chunked_prefill.spans(first, slots)
    elif first:
        spans = [(slot, slot + 1) for slot in range(first, slots)]
    if len(spans) == 1:
        done = forward(runner, request, layout, first, cache, cancelled)
    else:
        reserve(cache, slots)  # growing chunk by chunk would leave holes all over the memory
        done = _in_chunks(runner, request, layout, spans, cancelled)
    runner.cache.grew(layout, slots)
    done.phase = "prefill"
    return done


def _in_chunks(
    runner: Runner,
    request: RunRequest,
    layout: Layout,
    spans: Sequence[tuple[int, int]],
    cancelled: Stop,
) -> ForwardPass:
    """Several passes as one, with everything recorded."""
    cache, slots = runner.cache.live, len(layout.ids)
    windowed = runner.capture.windowed or evicting_layer(cache) is not None
    gathered = Gathered(slots, windowed, spans[0][0])
    whole: ForwardPass | None = None
    for begin, end in spans:
        reads_out = begin <= layout.readout < end
        at = (layout.readout if reads_out else begin,)
        part = layout.first(end)
        done = forward(runner, request, part, begin, cache, cancelled, at=at, of=slots)
        logits = done.logits[0] if reads_out or whole is None else whole.logits  # (V,)
        done.gather(gathered, runner.capture.proven)
        whole = done if whole is None else done.after(whole)
        whole.logits = logits
    assert whole is not None
    return whole


def decode_one(
    runner: Runner, request: RunRequest, layout: Layout, cancelled: Stop = never
) -> ForwardPass:
    """The newest slot alone: its query meets the T - 1 keys and values of the cache and its own.

    What the cache lacks of those T - 1 slots is read again first, by prefill.
    """
    last = len(layout.ids) - 1
    held = runner.cache.hold(layout, last)
    if held < last:
        prefill(runner, request, layout.first(last), held, cancelled)
    done = forward(runner, request, layout, last, runner.cache.live, cancelled)  # Q = 1
    runner.cache.grew(layout, last + 1)
    done.phase, done.rebuilt = "decode", last - held
    return done


def recompute(
    runner: Runner, request: RunRequest, layout: Layout, index: int, cancelled: Stop = never
) -> ForwardPass:
    """All T slots, without a cache: what every step costs where none is used."""
    done = forward(runner, request, layout, 0, None, cancelled)  # Q = T
    done.phase = "recompute" if index else "prefill"
    return done


def forward(
    runner: Runner,
    request: RunRequest,
    layout: Layout,
    first: int,
    cache: Any,
    cancelled: Stop = never,
    *,
    keep_outputs: bool = False,
    at: Sequence[int] | None = None,
    of: int = 0,
    takes: Sequence[Take] = (),
) -> ForwardPass:
    """The model, called once over the slots from `first` on.

    Logits are (V,) of the readout, or (len(at), V) of the slots `at`.  `of`: how many slots are
    to be read in all, where further passes follow.  `takes`: what is taken down for patches.
    EngineError if the model fails, Cancelled from within a layer.
    """
    wanted = [slot - first for slot in (at if at is not None else (layout.readout,))]
    arguments = inputs(runner, layout, first, cache, wanted) | runner.capture.arguments
    how = (cache, cancelled, keep_outputs, of)
    waited = ranks.waited()
    with recording(runner, request, layout, first, *how, takes=takes) as recorder:
        runner.wait_for_device()
        started = time.perf_counter()
        with explained("pass", "Shorten the prompt or choose a smaller dtype."):
            output = runner.model(**arguments)
        runner.wait_for_device()
        seconds = time.perf_counter() - started
        waited = ranks.waited() - waited
        if runner.capture.route == probe.OWN:
            recorder.own = getattr(output, "attentions", None) or ()  # (1, H, Q, K) a layer
        if isinstance(cache, OwnCache):
            cache.take(output)
        logits = output.logits[0]
        if len(logits) != len(wanted):  # a model without logits_to_keep gives every slot
            logits = logits[wanted]
        numbers = ranks.same(logits.float().cpu().numpy())  # (len(wanted), V)
        if ranks.count() > 1:
            recorder.own = all_heads.join(recorder.calls, recorder.own)
    odd = runner.loaded.not_finite.count > 0 or not np.isfinite(numbers).all()
    recorder.doubtful = bool(odd)
    assert recorder.times is not None
    numbers = numbers[0] if at is None else numbers
    slots = len(layout.ids)
    return ForwardPass(numbers, recorder, seconds, first, slots, recorder.times, waited=waited)


def inputs(
    runner: Runner, layout: Layout, first: int, cache: Any, wanted: Sequence[int]
) -> dict[str, Any]:
    """The forward arguments this model names, for logits at the rows `wanted` of the Q it reads."""
    device = runner.model.device
    # A recurrent state has taken in what was masked before; attention asks each time.
    mask = layout.attention_mask[0 if runner.capture.attends else first :]
    arguments: dict[str, Any] = {
        "input_ids": torch.tensor([layout.ids[first:]], device=device),  # (1, Q)
        "attention_mask": (  # (1, T); without padding it is made of ones, not of T numbers
            torch.ones((1, len(mask)), dtype=torch.long, device=device)
            if all(mask)
            else torch.tensor([mask], device=device)
        ),
        "position_ids": torch.tensor([runner.positions(layout, first)], device=device),  # (1, Q)
        "use_cache": cache is not None,
        "cache": cache.inner if isinstance(cache, OwnCache) else cache,
        "logits_to_keep": torch.tensor(wanted, device=device),
    }
    if runner.first_position is None:
        del arguments["position_ids"]
    return runner.accepted(arguments)


@contextlib.contextmanager
def recording(
    runner: Runner,
    request: RunRequest,
    layout: Layout,
    first: int,
    cache: Any,
    cancelled: Stop,
    keep_outputs: bool,
    of: int = 0,
    implementation: str = "",
    takes: Sequence[Take] = (),
) -> Iterator[Recorder]:
    """While inside, the model's calls are recorded, under the mask asked for; nothing stays behind.

    Each attention kernel's queries (1, H, Q, d_h), keys (1, H_kv, K, d_h) and mask are noted as
    it receives them, each part is timed, and Cancelled is raised where a layer begins.  What the
    request silences, patches, cuts or scales is so; `takes` are taken down for other runs' patches.
    `implementation` of attention: the runner's own.
    """
    slots, rows = len(layout.ids), len(layout.ids) - first
    changes = [*prepare(runner, request, layout, cancelled), *takes]
    recorder = runner.capture.recorder(rows, cache, cancelled, keep_outputs)
    recorder.every = request.capture_every
    recorder.entered = runner.telling(first, rows, of or slots)
    set_attention(runner.model, implementation or runner.capture.implementation)
    recorder.key_slots = slots_of_keys(cache, slots, rows)
    recorder.edits = interventions.in_attention(runner, changes, slots, rows)
    if recorder.edits is not None:
        recorder.edits.key_slots = recorder.key_slots
        recorder.edits.moved = runner.moved_keys(request)
    causal = contextlib.nullcontext() if request.causal_mask else masks.causal_off(runner.model)
    with (
        ranks.no_gradients(),
        causal,
        interventions.on_modules(runner, changes, slots, rows),
        probe.recording(runner.model, len(runner.layers), runner.watch, recorder),
        runner.shortcuts.laid(),
    ):
        yield recorder


def prepare(
    runner: Runner, request: RunRequest, layout: Layout, cancelled: Stop = never
) -> list[Change]:
    """The interventions of a run, with what they take from other runs: read once, and kept."""
    read = partial(read_source, runner, cancelled)
    prompt = partial(interventions.prompt_of, runner, request, layout)
    return runner.sources.changes(request.changes, read, prompt)


def read_source(runner: Runner, cancelled: Stop, source: OtherRun, takes: Sequence[Take]) -> None:
    """One pass over the text that patches take from; attention is recorded in one layer at most."""
    ids = source.tokens
    request = RunRequest(
        causal_mask=source.causal_mask,
        cache=False,
        interventions=source.interventions,
        capture_every=len(runner.layers),
    )
    layout = Layout(ids, (1,) * len(ids), tuple(range(len(ids))))
    forward(runner, request, layout, 0, None, cancelled, takes=takes)
