"""Runs passes of one loaded model and turns each into a Step."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from explorer import sampling as chain
from explorer.engine import masks, probe, records
from explorer.engine.cache import OwnCache, PrefixCache, layer_bytes
from explorer.engine.capture import Capture, routes, set_attention
from explorer.engine.errors import BadInput, Cancelled, EngineError
from explorer.engine.layout import Layout, lay_out
from explorer.engine.loading import LoadedModel
from explorer.engine.parts import parts_of
from explorer.engine.watch import Watch
from explorer.trace.request import RunRequest, Sampling, Stops
from explorer.trace.step import Phase, Step, Token

Stop = Callable[[], bool]
_MODEL_FAULTS = (
    RuntimeError, ValueError, IndexError, TypeError, KeyError, AttributeError, AssertionError,
)  # fmt: skip
NAMED = 100  # most probable tokens that travel with their bytes


@dataclass(slots=True)
class Pass:
    """One forward pass, before anything is picked from it."""

    logits: np.ndarray  # (V,) float32 at the readout
    recorder: probe.Recorder
    seconds: float
    first_slot: int
    slots: int  # slots that exist after the pass


class Runner:
    """One model, one cache.  Every call names the whole context, so calls may come in any order."""

    def __init__(self, loaded: LoadedModel) -> None:
        self.loaded = loaded
        self.model: Any = loaded.model
        parts = parts_of(self.model)
        self.layers = list(parts.layers)
        self._watch = Watch(parts, self.model.device)
        self.cache = PrefixCache(self.model.config)
        self.loaded_attention = str(self.model.config._attn_implementation)
        self.capture = Capture(routes(self.model)[0])
        self.cache_offered = True
        self.first_position: int | None = 0  # that this model counts from; None = it counts alone
        self._accepted = set(inspect.signature(self.model.forward).parameters)
        self._cache_for: Any = None
        self._kinds_seen: set[str] = set()
        self._prompts: dict[tuple[str, bool, bool], tuple[Token, ...]] = {}

    def caches(self, request: RunRequest) -> bool:
        """True if this request runs with a cache on this model."""
        return request.uses_cache and self.cache_offered

    def prompt(self, request: RunRequest) -> tuple[Token, ...]:
        """The prompt's tokens, padding not included; BadInput if it can't be read."""
        key = (request.prompt, request.chat, request.special_as_text)
        if key not in self._prompts:
            encoded = self.loaded.tokenizer.encode(*key)
            if encoded.problem and not encoded.tokens:
                raise BadInput(encoded.problem)
            self._prompts = {key: encoded.tokens}
        return self._prompts[key]

    def padded_prompt(self, request: RunRequest) -> tuple[Token, ...]:
        """The prompt as it is fed, padding included, in slot order."""
        tokens = self.prompt(request)
        layout = self.layout(request, ())
        real = iter(tokens)
        pad = self.loaded.tokenizer
        return tuple(
            next(real) if valid else pad.token(token_id, "padding")
            for token_id, valid in zip(layout.ids, layout.attention_mask, strict=True)
        )

    def layout(self, request: RunRequest, chosen: Sequence[int]) -> Layout:
        """Prompt, padding and chosen tokens in slots; BadInput if they exceed the context."""
        prompt_ids = [token.id for token in self.prompt(request)]
        layout = lay_out(prompt_ids, chosen, request, self.loaded.card.pad_id)
        limit = self.loaded.card.context
        if limit and len(layout.ids) > limit:
            raise BadInput(
                f"The prompt takes {len(layout.ids):,} positions, but this model reads at most "
                f"{limit:,}: shorten it."
            )
        widest = self.model.get_input_embeddings().num_embeddings
        wrong = next((i for i in layout.ids if not 0 <= i < widest), None)
        if wrong is not None:
            raise BadInput(f"There is no token {wrong}: this model's ids end at {widest - 1}.")
        return layout

    def advance(
        self,
        request: RunRequest,
        chosen: Sequence[int],
        steps: int,
        sampling: Callable[[], Sampling],
        emit: Callable[[Step, Token], None],
        cancelled: Stop = lambda: False,
        stops: Stops = Stops(),  # noqa: B008 - frozen
    ) -> str:
        """Run up to `steps` passes after `chosen`; returns why it stopped."""
        ids = list(chosen)
        ends = set(self.loaded.card.eos_ids) if stops.end_tokens else set()
        limit = self.loaded.card.context
        most = min(filter(None, (request.max_tokens, stops.tokens)), default=0)
        text = b"".join(self.loaded.tokenizer.token(i).raw for i in ids)
        for _ in range(steps):
            began = time.perf_counter()
            if most and len(ids) >= most:
                return "length"
            layout = self.layout(request, ids) if not ids else self._grown(request, ids, limit)
            if layout is None:
                return "context"
            step = self.step(request, layout, len(ids), sampling(), cancelled, began)
            token = self.loaded.tokenizer.token(step.draw.token_id, "generated")
            ids.append(token.id)
            emit(step, token)
            before, text = len(text), text + token.raw
            if token.id in ends:
                return "end token"
            if _ends_in(text, before, stops.strings):
                return "stop string"
            if cancelled():
                return "cancelled"
        return "steps"

    def _grown(self, request: RunRequest, ids: Sequence[int], limit: int) -> Layout | None:
        """The layout with the chosen tokens, or None where the context is full."""
        prompt = len(self.prompt(request)) + (request.pad if request.padding else 0)
        if limit and prompt + len(ids) > limit >= prompt:
            return None
        return self.layout(request, ids)

    def step(
        self,
        request: RunRequest,
        layout: Layout,
        index: int,
        sampling: Sampling,
        cancelled: Stop = lambda: False,
        began: float | None = None,
    ) -> Step:
        """The pass that reads all of `layout`, as step `index`, and the token picked from it.

        `began`: when work on this step began (time.perf_counter); now, unless given.
        """
        began = time.perf_counter() if began is None else began
        _refuse(sampling)
        done, rebuilt, phase = self._pass(request, layout, index, cancelled)
        started = time.perf_counter()
        kept = records.records(done.recorder, done.slots, proven=self.capture.proven)
        hidden = self._hidden(done)
        captured = time.perf_counter()
        first = phase not in self._kinds_seen
        self._kinds_seen.add(phase)
        try:
            draw = chain.pick(done.logits, sampling, index, self.context_ids(layout))
        except chain.SamplingError as error:
            raise BadInput(str(error)) from error
        top = self._top(done.logits)
        picked = time.perf_counter()
        return Step(
            index=index,
            phase=phase,
            first_slot=done.first_slot,
            token_ids=layout.ids[done.first_slot :],
            position_ids=self.positions(layout, done.first_slot),
            readout=layout.readout,
            logits=done.logits,
            draw=draw,
            sampling=sampling,
            capture_ms=(captured - started) * 1e3,
            pick_ms=(picked - captured) * 1e3,
            engine_ms=(picked - began) * 1e3,
            warm_up=first,
            cache_tokens=self.cache.slots if self.caches(request) else 0,
            cache_bytes_per_layer=self._cache_bytes(request),
            top=top,
            layers=kept,
            hidden=hidden,
            keys_from=0 if self.caches(request) else index,
            rebuilt_tokens=rebuilt,
            note=f"cache rebuilt by prefill of {rebuilt} tokens" if rebuilt else "",
            **self._times(done),
        )

    def logits_after(
        self, request: RunRequest, chosen: Sequence[int], cancelled: Stop = lambda: False
    ) -> np.ndarray:
        """(V,) float32 raw logits of the pass after `chosen`, by the cache; nothing is kept of it.

        BadInput if the tokens exceed the context.
        """
        return self.pass_after(request, self.layout(request, chosen), len(chosen), cancelled)[0]

    def pass_after(
        self, request: RunRequest, layout: Layout, index: int, cancelled: Stop = lambda: False
    ) -> tuple[np.ndarray, int]:
        """((V,) float32 raw logits, slots run through the model) of one pass; nothing is kept."""
        done, rebuilt, _ = self._pass(request, layout, index, cancelled)
        return done.logits, done.slots - done.first_slot + rebuilt

    @staticmethod
    def context_ids(layout: Layout) -> list[int]:
        """What a repetition penalty looks at: every id but the padding's."""
        return [i for i, real in zip(layout.ids, layout.attention_mask, strict=True) if real]

    def _pass(
        self, request: RunRequest, layout: Layout, index: int, cancelled: Stop
    ) -> tuple[Pass, int, Phase]:
        if not self.caches(request):
            done = self.forward(request, layout, 0, None, cancelled)
            return done, 0, "recompute" if index else "prefill"
        slots = len(layout.ids)
        with self._cache_or_drop(request):
            if index == 0:
                self.cache.fresh()
                done = self.forward(request, layout, 0, self.cache.live, cancelled)
                self.cache.grew(layout, slots)
                return done, 0, "prefill"
            rebuilt = self._hold(request, layout, slots - 1, cancelled)
            done = self.forward(request, layout, slots - 1, self.cache.live, cancelled)
            self.cache.grew(layout, slots)
            return done, rebuilt, "decode"

    def _hold(self, request: RunRequest, layout: Layout, slots: int, cancelled: Stop) -> int:
        """Bring the cache to exactly the first `slots` slots; returns how many were fed anew."""
        shared = self.cache.shared(layout, slots)
        if not self.cache.cut_to(shared) or self.cache.live is None:
            self.cache.fresh()
            shared = 0
        if shared == slots:
            return 0
        prefix = layout.first(slots)
        self.forward(request, prefix, shared, self.cache.live, cancelled)
        self.cache.grew(layout, slots)
        return slots - shared

    @contextlib.contextmanager
    def _cache_or_drop(self, request: RunRequest) -> Iterator[None]:
        """The cache belongs to one kind of request, and a pass that fails leaves none behind."""
        belongs = (request.chat, request.padding, request.pad, request.causal_mask)
        if belongs != self._cache_for:
            self.cache.drop()
            self._cache_for = belongs
        try:
            yield
        except BaseException:
            self.cache.drop()
            raise

    def forward(
        self,
        request: RunRequest,
        layout: Layout,
        first: int,
        cache: Any,
        cancelled: Stop = lambda: False,
        *,
        keep_outputs: bool = False,
        at: Sequence[int] | None = None,
    ) -> Pass:
        """One pass over the slots from `first` on.

        Logits are (V,) of the readout, or (len(at), V) of the slots named.  EngineError if the
        model fails, Cancelled from within a layer.
        """
        recorder = self.capture.recorder(len(layout.ids) - first, cache, cancelled, keep_outputs)
        wanted = [slot - first for slot in (at if at is not None else (layout.readout,))]
        arguments = self.arguments(layout, first, cache, wanted) | self.capture.arguments
        set_attention(self.model, self.capture.implementation)
        off = contextlib.nullcontext() if request.causal_mask else masks.causal_off(self.model)
        with torch.inference_mode(), off, self._recording(recorder):
            self._sync()
            started = time.perf_counter()
            try:
                output = self.model(**arguments)
            except Cancelled:
                raise
            except _MODEL_FAULTS as error:
                raise _explain(error) from error
            self._sync()
            seconds = time.perf_counter() - started
            if self.capture.route == probe.OWN:
                recorder.own = getattr(output, "attentions", None) or ()
            if isinstance(cache, OwnCache):
                cache.take(output)
            logits = output.logits[0]
            if len(logits) != len(wanted):  # a model without logits_to_keep gives every slot
                logits = logits[wanted]
            numbers = logits.float().cpu().numpy()
        kept = numbers[0] if at is None else numbers
        return Pass(kept, recorder, seconds, first, len(layout.ids))

    def arguments(
        self, layout: Layout, first: int, cache: Any, wanted: Sequence[int]
    ) -> dict[str, Any]:
        """The forward arguments this model names, for logits at the rows `wanted`."""
        device = self.model.device
        # A recurrent state has taken in what was masked before; attention asks each time.
        from_slot = 0 if self.capture.attends else first
        arguments: dict[str, Any] = {
            "input_ids": torch.tensor([layout.ids[first:]], device=device),
            "attention_mask": torch.tensor([layout.attention_mask[from_slot:]], device=device),
            "position_ids": torch.tensor([self.positions(layout, first)], device=device),
            "use_cache": cache is not None,
            "cache": cache.inner if isinstance(cache, OwnCache) else cache,
            "logits_to_keep": torch.tensor(wanted, device=device),
        }
        if self.first_position is None:
            del arguments["position_ids"]
        # What a model does not name it would swallow without a word.
        return {name: value for name, value in arguments.items() if name in self._accepted}

    def positions(self, layout: Layout, first: int) -> tuple[int, ...]:
        """The positions of the slots from `first` on, as this model counts them."""
        offset = self.first_position or 0
        return tuple(position + offset for position in layout.position_ids[first:])

    def _recording(self, recorder: probe.Recorder) -> contextlib.AbstractContextManager[Any]:
        return probe.recording(self.model, len(self.layers), self._watch, recorder)

    def _sync(self) -> None:
        if self.model.device.type == "cuda":
            torch.cuda.synchronize()

    def _times(self, done: Pass) -> dict[str, Any]:
        """The fields of a Step that tell where the time of the pass went."""
        times, layers = done.recorder.times, len(self.layers)
        assert times is not None
        return {
            "forward_ms": done.seconds * 1e3,
            "layer_ms": times.per_layer("layer", layers, 0.0),
            "attention_ms": times.per_layer("attention", layers, np.nan),
            "mlp_ms": times.per_layer("mlp", layers, np.nan),
            "embedding_ms": times.ms("embedding"),
            "norm_ms": times.ms("norm"),
            "head_ms": times.ms("head"),
        }

    def _hidden(self, done: Pass) -> np.ndarray | None:
        hidden = done.recorder.hidden
        if hidden is None or hidden.ndim != 3:
            return None
        return np.asarray(hidden[0].float().cpu().numpy())

    def _cache_bytes(self, request: RunRequest) -> tuple[int, ...]:
        if not self.caches(request) or self.cache.live is None:
            return (0,) * len(self.layers)
        return layer_bytes(self.cache.live, len(self.layers))

    def _top(self, logits: np.ndarray) -> tuple[Token, ...]:
        best = np.argpartition(-logits, min(NAMED, len(logits) - 1))[:NAMED]
        best = best[np.lexsort((best, -logits[best]))]
        return tuple(self.loaded.tokenizer.token(int(i), "generated") for i in best)


def _ends_in(text: bytes, before: int, strings: Sequence[str]) -> bool:
    """True if one of the strings was completed by what came after the first `before` bytes."""
    for string in strings:
        wanted = string.encode("utf-8", "surrogatepass")
        if wanted and text.find(wanted, max(0, before - len(wanted) + 1)) >= 0:
            return True
    return False


def _refuse(sampling: Sampling) -> None:
    try:
        chain.check(sampling)
    except chain.SamplingError as error:
        raise BadInput(str(error)) from error


def _explain(error: Exception) -> EngineError:
    text = str(error)
    if "not enough memory" in text or "out of memory" in text.lower():
        return EngineError(
            "Not enough memory for this pass: shorten the prompt or choose a smaller dtype.", text
        )
    return EngineError("The model could not run this pass; the log has the details.", text)
