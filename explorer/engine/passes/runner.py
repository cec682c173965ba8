"""A loaded model made ready to run: its prompt, its cache, and how its attention is recorded."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from explorer.engine import ranks
from explorer.engine.callbacks import Report, nobody
from explorer.engine.capture.capture import Capture, routes
from explorer.engine.capture.part_clocks import PartClocks
from explorer.engine.capture.patching import Sources
from explorer.engine.capture.rotation import MovedKeys, Rotation
from explorer.engine.capture.timed_parts import parts_of
from explorer.engine.device_clock import finish
from explorer.engine.errors import BadInput
from explorer.engine.loading.loading import LoadedModel
from explorer.engine.loading.offload import is_spread
from explorer.engine.passes.cache import PrefixCache
from explorer.engine.passes.fast_calls import FastCalls
from explorer.engine.passes.layout import (
    Layout,
    Prompt,
    lay_out_prompt,
    require_context,
    require_ids,
)
from explorer.engine.passes.picking import MEANS, NOT_CUT, reused_note
from explorer.engine.text import asked_prompt
from explorer.trace.interventions.context_policy import USUAL, ContextPolicy
from explorer.trace.request import RunRequest

_WORTH_TELLING = 256  # slots: shorter passes are over before anybody reads how far they are
_TELL_SECONDS = 0.1
ONE_BY_ONE = 32  # slots: more are faster read with the whole prompt than each by itself


class Runner:
    """One model, one cache.  Every call names the whole context, so calls may come in any order."""

    def __init__(self, loaded: LoadedModel) -> None:
        self.loaded = loaded
        self.model: Any = loaded.model
        parts = parts_of(self.model)
        self.layers = list(parts.layers)
        self.watch = PartClocks(parts, self.model.device)
        # Where a model is in parts over ranks, its library swaps weights while it runs.
        # They would hold on to weights that accelerate's hooks fetch for each part of the model.
        whole = ranks.count() == 1 and not is_spread(self.model)
        self.shortcuts = FastCalls(self.layers if whole else [])
        self.loaded_attention = str(self.model.config._attn_implementation)
        self.report: Report = nobody
        # What the self-test finds out:
        self.capture = Capture(routes(self.model)[0])
        self.first_position: int | None = 0  # that this model counts from; None = it counts alone
        self.in_chunks = False  # long prompts may be read chunk by chunk
        # Per layer: the modules by which its MLP writes to the residual stream; () = not known.
        self.mlp_writes: tuple[tuple[Any, ...], ...] = ((),) * len(self.layers)
        self.sources = Sources()  # what patches take
        self.cache_offered = True
        self.rotation: Rotation | None = None  # of queries and keys by position, if it is proven
        self.evicts = False  # a cache keeps no more than a context policy says
        self.cache = PrefixCache(self.model.config)
        self._cache_for: Any = None
        self._phases_seen: set[str] = set()
        self._accepted = _accepted(self.model)
        self._prompts: dict[Any, Prompt] = {}  # the last one, laid out
        self._droppable: dict[Any, bool] = {}  # whether its template allows turns to be left out

    # -- the prompt

    def prompt(self, request: RunRequest) -> Prompt:
        """The prompt with its padding in slots; BadInput if it can't be read, or is too long."""
        card, tokenizer = self.loaded.card, self.loaded.tokenizer
        key = (*request.source, request.padding, request.pad, card.pad_id)
        if key not in self._prompts:
            encoded = asked_prompt.encoded(tokenizer, request, card.context)
            made = lay_out_prompt(encoded, request, card.pad_id, tokenizer.token)
            self.require_ids(made.layout.ids)
            self._prompts, self._droppable = {key: made}, {}
        found = self._prompts[key].asked_as(request)
        require_context(found.layout, self.loaded.card.context, request.context)
        return found

    def layout(self, request: RunRequest, chosen: Sequence[int]) -> Layout:
        """Prompt, padding and chosen tokens in slots; BadInput if they exceed the context."""
        prompt = self.prompt(request)
        found = self.read_of(prompt, prompt.layout.followed_by(chosen))
        require_context(found, self.loaded.card.context, request.context)
        self.require_ids(chosen)
        return found

    def read_of(self, prompt: Prompt, layout: Layout) -> Layout:
        """What is read of a run's slots: all, or all but the oldest turns that do not fit.

        Where those can't be left out, all; then there are too many.
        """
        request, card = prompt.request, self.loaded.card
        room = card.context - request.position_offset if card.context else 0
        most, slots, gone = request.context.limit(room), len(layout.ids), 0
        if request.context.name != "drop-turns" or not most or slots <= most:
            return layout
        if request.interventions or not self.caches(request):
            return layout  # they name slots of the whole; each pass would read other ones
        for number, (first, end) in enumerate(prompt.oldest, 1):
            begins = most - len(prompt.layout.ids) + gone + 1
            gone += end - first
            if slots - gone <= most:
                if not self._stays_the_same(prompt, number):
                    break
                return layout.without(prompt.oldest[0][0], end, begins)
        return layout

    def _stays_the_same(self, prompt: Prompt, number: int) -> bool:
        """True if the chat template writes the rest as before without so many of the turns."""
        key = (*prompt.request.source, number)
        if key not in self._droppable:
            first, end = prompt.oldest[0][0], prompt.oldest[number - 1][1]
            kept = [t.message for t in prompt.turns if not first <= t.first_slot < end]
            request = msgspec.structs.replace(
                prompt.request,
                context=USUAL,
                messages=tuple(prompt.request.messages[i] for i in kept if i is not None),
            )
            ids = prompt.layout.ids
            try:
                found = asked_prompt.encoded(self.loaded.tokenizer, request, 0).tokens
            except BadInput:
                found = ()
            self._droppable[key] = tuple(one.id for one in found) == ids[:first] + ids[end:]
        return self._droppable[key]

    def require_ids(self, ids: Sequence[int]) -> None:
        """BadInput if the model has no such token."""
        require_ids(ids, self.model.get_input_embeddings().num_embeddings)

    # -- the cache

    def caches(self, request: RunRequest) -> bool:
        """True if this request runs with a cache on this model."""
        return request.uses_cache and self.cache_offered

    def fresh_cache(self, request: RunRequest) -> PrefixCache:
        """An empty cache as this request wants it, beside the run's own."""
        made = self.cache.another()
        made.policy = self.kept_by(request)
        made.fresh()
        return made

    def moved_keys(self, request: RunRequest) -> MovedKeys | None:
        """The first tokens of a run whose distances are counted in the cache; None of any other."""
        policy = request.context
        if self.rotation is None or not policy.moves_sinks:
            return None
        return MovedKeys(self.rotation, policy.sinks, policy.sinks + policy.last)

    def kept_by(self, request: RunRequest) -> ContextPolicy:
        """What the cache keeps; where it can't evict, masks alone do what is asked."""
        return request.context if self.evicts else USUAL

    @contextlib.contextmanager
    def own_cache_aside(self) -> Iterator[None]:
        """While inside, passes fill another cache; the run's own is left as it was."""
        own, belongs = self.cache, self._cache_for
        self.cache = self.cache.another()
        try:
            yield
        finally:
            self.cache, self._cache_for = own, belongs

    def cache_is_of(self, request: RunRequest) -> bool:
        """True if what the cache holds was read as this request reads it."""
        return bool(self._cache_for == _kind_of(request))

    @contextlib.contextmanager
    def cache_of(self, request: RunRequest) -> Iterator[None]:
        """The cache belongs to one kind of request, and a pass that fails leaves none behind."""
        if not self.cache_is_of(request):
            self.cache.drop()
            self.cache.policy = self.kept_by(request)
            self._cache_for = _kind_of(request)
        try:
            yield
        except BaseException:
            self.cache.drop()
            raise

    def held_beginning(self, request: RunRequest, layout: Layout) -> tuple[int, str]:
        """How many slots of a prompt the cache holds, kept for it, and what is to be said of it."""
        if not request.keeps_beginnings:
            return 0, MEANS
        held, lost = self.cache.beginning(layout, layout.readout)
        rest = len(layout.ids) - held
        if held and not self.in_chunks and rest > ONE_BY_ONE:
            held, lost = 0, True
        if held:
            return held, reused_note(held, len(layout.ids))
        return 0, NOT_CUT if lost else ""

    # -- the model

    def accepted(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Those that the model names: what it does not name it would swallow without a word."""
        return {name: value for name, value in arguments.items() if name in self._accepted}

    def positions(self, layout: Layout, first: int) -> tuple[int, ...]:
        """The positions of the slots from `first` on, as this model counts them."""
        offset = self.first_position or 0
        return tuple(position + offset for position in layout.position_ids[first:])

    def is_first(self, phase: str) -> bool:
        """True once for each phase: the model's first pass of a kind is slower than the rest."""
        first = phase not in self._phases_seen
        self._phases_seen.add(phase)
        return first

    def wait_for_device(self) -> None:
        """A clock is read only when the device has finished."""
        finish(self.model.device)

    def telling(self, first: int, rows: int, whole: int) -> Callable[[int], None] | None:
        """Reports how far reading `rows` of `whole` slots has come, ten times a second at most."""
        if rows < _WORTH_TELLING:
            return None
        told = time.perf_counter()

        def tell(layer: int) -> None:
            nonlocal told
            if time.perf_counter() - told >= _TELL_SECONDS:
                told = time.perf_counter()
                done = first + rows * layer / len(self.layers)
                self.report(f"Reading the text: {done:,.0f} of {whole:,} tokens", done / whole)

        return tell


def _kind_of(request: RunRequest) -> tuple[object, ...]:
    """All that decides keys and values but the tokens."""
    fed = request.padding, request.pad, request.position_offset
    return (*fed, request.causal_mask, request.changes, request.context)


def _accepted(model: Any) -> set[str]:
    """What a model's forward names; with `use_cache` where it hands that on unnamed.

    Left out there, the model makes a cache of its own in passes that are to have none.
    """
    named = inspect.signature(model.forward).parameters
    hands_on = any(one.kind is one.VAR_KEYWORD for one in named.values())
    return {*named, "use_cache"} if hands_on and "cache" in named else set(named)
