"""An open model made ready to run: its contexts, and what the self-test found of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from explorer.engine.callbacks import Report, nobody
from explorer.engine.errors import BadInput
from explorer.engine.passes.layout import (
    Layout,
    Prompt,
    lay_out_prompt,
    require_context,
    require_ids,
)
from explorer.engine.text import asked_prompt
from explorer.llama_engine.binding.compute import Recompute
from explorer.llama_engine.model.model import LlamaModel
from explorer.llama_engine.passes.attention_edits import ScoreEdits
from explorer.llama_engine.passes.context import (
    MOST_OUTPUTS,
    Context,
    ContextShape,
    chunk_for,
    room_for,
)
from explorer.llama_engine.passes.inside import Inside, Located
from explorer.llama_engine.passes.records import MOST_MAP_BYTES, Exactness
from explorer.llama_engine.passes.watch import Wanted
from explorer.trace.card import ModelCard
from explorer.trace.interventions.kinds import Silence
from explorer.trace.request import RunRequest

_LOOKED_AT = 256  # slots of a context whose graph is only looked at


@dataclass(frozen=True, slots=True)
class KeptBytes:
    """What one layer's cache takes."""

    slot: int = 0  # a slot: keys and values
    state: int = 0  # whatever the number of slots


class LlamaRunner:
    """One model, and the caches of its runs.  Every call names the whole context."""

    def __init__(
        self, model: LlamaModel, card: ModelCard, threads: int, cache_type_k: str = "f16"
    ) -> None:
        self.model, self.card, self.threads = model, card, threads
        self.cache_type_k = cache_type_k
        self.report: Report = nobody
        # What the self-test finds out:
        self.proven: Exactness | None = None
        self.kept: tuple[KeptBytes, ...] = ()
        self.kv_heads: dict[int, int] = {}  # by layer that attends
        self.query_heads: dict[int, int] = {}
        self.cache_offered = True
        self.slot_seconds: float | None = None  # of the longest prefill so far
        self._longest = 0
        self.causal = True  # False for a model that reads later tokens by design
        self.chunk = chunk_for(card.parameters)
        self._contexts: dict[str, Context] = {}
        self._run = "run"  # whose cache a run uses
        self._begin = 0  # position that contexts count from
        self._phases_seen: set[str] = set()
        self._prompts: dict[Any, Prompt] = {}  # the last one, laid out
        self._located: dict[bool, Located] = {}
        self._recompute: Recompute | None = None

    # -- the prompt

    def prompt(self, request: RunRequest) -> Prompt:
        """The prompt laid out; BadInput if it can't be read, or is too long."""
        source = request.source
        if request.padding and request.pad:
            raise BadInput(f"Padding is not possible here: {self.card.words('left_padding')}.")
        if source not in self._prompts:
            tokenizer = self.model.tokenizer
            encoded = asked_prompt.encoded(tokenizer, request, self.card.context)
            made = lay_out_prompt(encoded, request, self.card.pad_id, tokenizer.token)
            self.require_ids(made.layout.ids)
            self._prompts = {source: made}
        found = self._prompts[source].asked_as(request)
        require_context(found.layout, self.card.context, request.context)
        return found

    def layout(self, request: RunRequest, chosen: Sequence[int]) -> Layout:
        """Prompt and chosen tokens in slots; BadInput if they exceed the context."""
        found = self.prompt(request).layout.followed_by(chosen)
        require_context(found, self.card.context, request.context)
        self.require_ids(chosen)
        return found

    def require_ids(self, ids: Sequence[int]) -> None:
        """BadInput if the model has no such token."""
        require_ids(ids, self.model.vocab_size)

    # -- contexts

    def caches(self, request: RunRequest) -> bool:
        """True if this request runs with a cache on this model."""
        return request.uses_cache and self.cache_offered

    def run_context(self, slots: int) -> Context:
        """The context of the run, with room for `slots`."""
        return self._context(self._run, slots, self.chunk)

    def spare_context(
        self, slots: int, causal: bool = True, outputs: int = MOST_OUTPUTS, *, whole: bool = False
    ) -> Context:
        """An empty context for passes that leave the run's cache alone.

        `whole`, or without the causal mask: all slots must fit into one call.  `outputs`: logits of
        one call.
        """
        chunk = max(self.chunk, slots) if whole or not causal else self.chunk
        found = self._context("spare", slots, chunk, outputs)
        found.set_causal(causal)
        found.clear()
        return found

    @contextlib.contextmanager
    def own_cache_aside(self) -> Iterator[None]:
        """While inside, runs fill another cache; the run's own is left as it was."""
        before, self._run = self._run, "aside"
        try:
            yield
        finally:
            self._run = before
            self._drop("aside")

    @contextlib.contextmanager
    def counting_from(self, position: int) -> Iterator[None]:
        """While inside, the first slot of every context has this position."""
        before, self._begin = self._begin, position
        try:
            yield
        finally:
            self._begin = before

    def _context(self, name: str, slots: int, chunk: int, outputs: int = MOST_OUTPUTS) -> Context:
        found = self._with_room(name, slots, chunk, outputs)
        found.begin_at(self._begin)
        return found

    def _with_room(self, name: str, slots: int, chunk: int, outputs: int) -> Context:
        held = self._contexts.get(name)
        if held is not None and held.shape.holds(slots, chunk, outputs):
            return held
        room = room_for(slots, self.card.context)
        found = Context(self.model, self.threads, self.shape(room, chunk, outputs))
        if held is not None and held.slots and name != "spare":
            found.take_over(held)
        self._drop(name)
        self._contexts[name] = found
        return found

    def copy_run(self, context: Context, request: RunRequest, ids: Sequence[int]) -> None:
        """Let `context` hold what the run holds of `ids`, bit for bit; nothing where it does not.

        The run's own cache is left as it is.
        """
        run = self._contexts.get(self._run)
        known = run is not None and run.holds(ids, request.changes)
        known = known and run is not None and run.begin == context.begin
        if run is not None and known and run.slots <= context.shape.slots and ids:
            context.take_over(run)
            context.cut_to(len(ids))

    def shape(self, slots: int, chunk: int, outputs: int = MOST_OUTPUTS) -> ContextShape:
        """Of a context with this runner's type of keys."""
        return ContextShape(slots, chunk, outputs, cache_type_k=self.cache_type_k)

    def free_spare(self) -> None:
        """Give back the memory of the spare context; it is made again when it is needed."""
        self._drop("spare")

    def _drop(self, name: str) -> None:
        held = self._contexts.pop(name, None)
        if held is not None:
            held.close()

    def close(self) -> None:
        """Free everything."""
        for name in tuple(self._contexts):
            self._drop(name)
        if self._recompute is not None:
            self._recompute.close()
        self.model.close()

    # -- what is inside

    @property
    def recompute(self) -> Recompute:
        """Computes nodes of llama.cpp's graphs again."""
        if self._recompute is None:
            self._recompute = Recompute(self.model.library, self.threads)
        return self._recompute

    def inside(
        self, request: RunRequest, *, reads: bool = False, reads_writes: bool = False
    ) -> Inside:
        """What the passes of a run change and, where it is asked for, read of the stream.

        BadInput where layers do not write to one stream.
        """
        changed = list(request.changes)
        parts = [one for one in changed if isinstance(one, Silence) and one.part != "head"]
        rest = [one for one in changed if one not in parts]
        edits = ScoreEdits(rest) if rest else None
        if parts or reads:  # before a context is asked for: one is made for this
            for several in (True, False):
                self.located(several)
        return Inside(
            self.located, lambda: self.recompute, edits, tuple(parts), reads, reads_writes
        )

    @property
    def with_mlp(self) -> frozenset[int]:
        """Layers whose MLP writes to the stream by itself.  BadInput where there is no stream."""
        kinds = self.located(True).kinds
        return frozenset(place[0] for place, kind in kinds.items() if kind == "mlp")

    def located(self, several: bool) -> Located:
        """How the stream runs through graphs over several slots, or over one."""
        if several not in self._located:
            context = Context(self.model, self.threads, self.shape(_LOOKED_AT, 2, 1))
            try:
                self._located[several] = context.look(1 + several)
            finally:
                context.close()
        return self._located[several]

    # -- small things

    def wanted(self, request: RunRequest, slots: int) -> Wanted:
        """What to record of a run's pass over `slots` slots: own weights only where they must."""
        own = self.proven is not None and bool(self.proven.recorded)
        fits = 4 * self.card.heads * slots * slots <= MOST_MAP_BYTES
        inside = self.inside(request) if request.changes else None
        return Wanted(every=request.capture_every, weights=own and fits, inside=inside)

    def cache_bytes(self, slots: int) -> tuple[int, ...]:
        """By layer, of so many slots."""
        return tuple(kept.slot * slots + kept.state for kept in self.kept)

    def note_speed(self, slots: int, seconds: float) -> None:
        """Of a pass that has just been run: what a longer one is estimated by."""
        if slots >= self._longest:
            self._longest, self.slot_seconds = slots, seconds / slots

    def is_first(self, phase: str) -> bool:
        """True once for each phase: the model's first pass of a kind is slower than the rest."""
        first = phase not in self._phases_seen
        self._phases_seen.add(phase)
        return first
