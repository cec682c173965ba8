"""Runs passes of one loaded model and turns each into a Step."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from explorer import sampling as chain
from explorer.engine.errors import BadInput
from explorer.engine.loading.loading import LoadedModel
from explorer.engine.passes.cache import PrefixCache, layer_bytes
from explorer.engine.passes.forward import ForwardPass, Passes, Stop
from explorer.engine.passes.layout import Layout, lay_out
from explorer.trace.request import RunRequest, Sampling, Stops
from explorer.trace.step import Phase, Step, Token

NAMED = 100  # most probable tokens that travel with their bytes


class Runner(Passes):
    """One model, one cache.  Every call names the whole context, so calls may come in any order."""

    def __init__(self, loaded: LoadedModel) -> None:
        super().__init__(loaded)
        self.cache = PrefixCache(self.model.config)
        self.cache_offered = True
        self._cache_for: Any = None
        self._kinds_seen: set[str] = set()
        self._prompts: dict[tuple[str, bool, bool], tuple[Token, ...]] = {}

    @contextlib.contextmanager
    def own_cache_aside(self) -> Iterator[None]:
        """While inside, passes fill another cache; the run's own is left as it was."""
        own, self.cache = self.cache, self.cache.another()
        try:
            yield
        finally:
            self.cache = own

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
                f"The prompt takes {len(layout.ids):,} positions, but this model reads at "
                f"most {limit:,}. Shorten it."
            )
        self.require_ids(layout.ids)
        return layout

    def require_ids(self, ids: Sequence[int]) -> None:
        """BadInput if the model has no such token: tokenizers may know more than it does."""
        widest = self.model.get_input_embeddings().num_embeddings
        wrong = next((i for i in ids if not 0 <= i < widest), None)
        if wrong is not None:
            raise BadInput(f"There is no token {wrong}: this model's ids end at {widest - 1}.")

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
        most = min(filter(None, (request.max_tokens, stops.tokens)), default=0)
        text = b"".join(self.loaded.tokenizer.token(i).raw for i in ids)
        layout: Layout | None = None
        for _ in range(steps):
            began = time.perf_counter()
            if most and len(ids) >= most:
                return "length"
            layout = self._next_layout(request, ids, layout)
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

    def _next_layout(
        self, request: RunRequest, ids: Sequence[int], before: Layout | None
    ) -> Layout | None:
        """The layout with all chosen tokens, or None where the context is full.

        `before`: that of the step before, so that a long text is not laid out anew in each.
        """
        limit = self.loaded.card.context
        if before is not None:
            full = limit and len(before.ids) >= limit
            return None if full else before.grown(ids[-1])
        prompt = len(self.prompt(request)) + (request.pad if request.padding else 0)
        if ids and limit and prompt + len(ids) > limit >= prompt:
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
        kept = done.records(self.capture.proven)
        hidden = done.hidden
        captured = time.perf_counter()
        first = phase not in self._kinds_seen
        self._kinds_seen.add(phase)
        try:
            penalised = sampling.repetition_penalty != 1
            context = self.context_ids(layout) if penalised else ()
            draw = chain.pick(done.logits, sampling, index, context)
        except chain.SamplingError as error:
            raise BadInput(self.loaded.not_finite.warning or str(error)) from error
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
            capture_ms=(captured - started + done.gather_seconds) * 1e3,
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
            note=_note(done, rebuilt),
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
    ) -> tuple[ForwardPass, int, Phase]:
        if not self.caches(request):
            done = self.forward(request, layout, 0, None, cancelled)
            return done, 0, "recompute" if index else "prefill"
        slots = len(layout.ids)
        with self._cache_or_drop(request):
            if index == 0:
                self.cache.fresh()
                done = self.read(request, layout, 0, self.cache.live, cancelled)
                self.cache.grew(layout, slots)
                return done, 0, "prefill"
            rebuilt = self._hold(request, layout, slots - 1, cancelled)
            done = self.forward(request, layout, slots - 1, self.cache.live, cancelled)
            self.cache.grew(layout, slots)
            return done, rebuilt, "decode"

    def _hold(self, request: RunRequest, layout: Layout, slots: int, cancelled: Stop) -> int:
        """Bring the cache to exactly the first `slots` slots; returns how many were recomputed."""
        shared = self.cache.shared(layout, slots)
        if not self.cache.cut_to(shared) or self.cache.live is None:
            self.cache.fresh()
            shared = 0
        if shared == slots:
            return 0
        prefix = layout.first(slots)
        self.read(request, prefix, shared, self.cache.live, cancelled)
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

    def _cache_bytes(self, request: RunRequest) -> tuple[int, ...]:
        if not self.caches(request) or self.cache.live is None:
            return (0,) * len(self.layers)
        return layer_bytes(self.cache.live, len(self.layers))

    def _top(self, logits: np.ndarray) -> tuple[Token, ...]:
        found = torch.from_numpy(logits).topk(min(NAMED, len(logits)), sorted=False)
        best = found.indices.numpy()
        best = best[np.lexsort((best, -logits[best]))]
        return tuple(self.loaded.tokenizer.token(int(i), "generated") for i in best)


def _ends_in(text: bytes, before: int, strings: Sequence[str]) -> bool:
    """True if one of the strings was completed by what came after the first `before` bytes."""
    for string in strings:
        wanted = string.encode("utf-8", "surrogatepass")
        if wanted and text.find(wanted, max(0, before - len(wanted) + 1)) >= 0:
            return True
    return False


def _note(done: ForwardPass, rebuilt: int) -> str:
    if rebuilt:
        return f"cache rebuilt by prefill of {rebuilt} tokens"
    return f"prompt read in {done.chunks} chunks" if done.chunks > 1 else ""


def _refuse(sampling: Sampling) -> None:
    try:
        chain.check(sampling)
    except chain.SamplingError as error:
        raise BadInput(str(error)) from error
