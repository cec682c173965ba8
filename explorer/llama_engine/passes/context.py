"""One llama.cpp context: a cache for one sequence, and the call that reads tokens into it."""

from __future__ import annotations

import ctypes as c
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.engine.callbacks import Stop, never
from explorer.engine.errors import Cancelled, EngineError, NoMemory
from explorer.llama_engine.binding.library import LlamaLibrary
from explorer.llama_engine.binding.quantised import CACHE_TYPES
from explorer.llama_engine.binding.structs import FLASH_OFF
from explorer.llama_engine.model.model import LlamaModel
from explorer.llama_engine.passes.inside import Located
from explorer.llama_engine.passes.sources import KeptTensor
from explorer.llama_engine.passes.watch import Seen, Wanted, Watch
from explorer.trace.interventions.kinds import Interventions

CHUNK = 512  # slots read in one call at most; of a large model a quarter, to be cancelled soon
_LARGE = 2e9  # parameters
MOST_OUTPUTS = 32  # logits (V,) of one call; room for them is made beforehand
_FIRST_SLOTS = 1024
_LOOK_SECONDS = 0.05  # between two looks at whether a long call is cancelled
_ABORTED, _FULL = 2, 1  # of llama_decode


@dataclass(frozen=True, slots=True)
class ContextShape:
    """What a context is made for."""

    slots: int
    chunk: int = CHUNK
    outputs: int = MOST_OUTPUTS
    flash: int = FLASH_OFF  # off: its own attention weights are there to compare with
    watched: bool = True
    cache_type_k: str = "f16"

    def holds(self, slots: int, chunk: int, outputs: int) -> bool:
        """True if so much fits into it."""
        return self.slots >= slots and self.chunk >= chunk and self.outputs >= outputs


class Context:
    """A cache of so many slots; `ids` are the tokens that it holds, from the first slot on."""

    def __init__(self, model: LlamaModel, threads: int, shape: ContextShape) -> None:
        """NoMemory if llama.cpp gets no room for it."""
        self.shape = shape
        self._library: LlamaLibrary = model.library
        self._width = model.vocab_size
        self.watch = Watch(model.library, timed=not model.gpu_layers)
        params = self._library.llama_context_default_params()
        params.n_ctx = shape.slots
        params.n_batch = params.n_ubatch = min(shape.chunk, shape.slots)
        params.n_outputs_max = min(shape.outputs, params.n_batch)
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn_type = shape.flash
        params.type_k = CACHE_TYPES[shape.cache_type_k]
        params.op_offload = params.offload_kqv = False  # attention stays where it can be read
        if shape.watched:
            params.cb_eval = self.watch.callback
        self._library.said.clear()
        self._handle = self._library.llama_init_from_model(model.handle, params)
        if not self._handle:
            words = self._library.last_words
            raise NoMemory(
                "There is not enough memory for a run of this model. Close other programs, or "
                "shorten the prompt.",
                words,
            )
        self._memory = self._library.llama_get_memory(self._handle)
        if shape.watched:
            self.watch.scheduler = self._library.scheduler(self._handle)
            self._library.llama_set_abort_callback(self._handle, self.watch.clock.callback, None)
        self._batch = self._library.llama_batch_init(params.n_batch, 0, 1)
        self.ids: tuple[int, ...] = ()
        self.causal = True
        self._under: Interventions = ()  # which what is held was read
        self._gap = 0  # positions left out
        self.begin = 0  # position of the first slot
        self._slow = False  # True after a call in which a thread had time to look

    @property
    def caches(self) -> dict[str, KeptTensor]:
        """The cache's own tensors by name, once something was read."""
        return self.watch.caches

    @property
    def slots(self) -> int:
        """That are held."""
        return len(self.ids)

    def set_causal(self, causal: bool) -> None:
        """With or without the causal mask; a change empties the cache."""
        if causal != self.causal:
            self.clear()
            self._library.llama_set_causal_attn(self._handle, causal)
            self.watch.forget()
            self.causal = causal

    def hold_under(self, interventions: Interventions) -> None:
        """Go on under these; what was read under others is not held any more."""
        if interventions != self._under:
            self.clear()
            self._under = interventions

    def begin_at(self, position: int) -> None:
        """Count positions from this one on; what was read from another one on is not held."""
        if position != self.begin:
            self.clear()
            self.begin = position

    def holds(self, ids: Sequence[int], interventions: Interventions) -> bool:
        """True if these are its first tokens, read under these interventions."""
        return self._under == interventions and self.ids[: len(ids)] == tuple(ids)

    def clear(self) -> None:
        """Hold nothing."""
        self._library.llama_memory_clear(self._memory, False)
        self.ids, self._gap = (), 0

    def leave_gap(self, slot: int, positions: int) -> bool:
        """Count `positions` more from slot `slot` on, until the next `clear`; False if it can't."""
        if not self._library.llama_memory_can_shift(self._memory):
            return False
        self._library.llama_memory_seq_add(self._memory, 0, self.begin + slot, -1, positions)
        self._gap = positions
        return True

    def cut_to(self, slots: int) -> bool:
        """Keep the first `slots` slots; False, and nothing kept, if this memory can't be cut."""
        if slots == self.slots:
            return True
        if slots > 0 and self._remove_from(slots):
            self.ids = self.ids[:slots]
            return True
        self.clear()
        return slots == 0

    def _remove_from(self, slot: int) -> bool:
        """Drop what is held from this slot on; False if this memory can't."""
        first = self.begin + slot
        return bool(self._library.llama_memory_seq_rm(self._memory, 0, first, -1))

    def take_over(self, other: Context) -> None:
        """Hold what `other`, a smaller one of the same model, holds: a copy, bit for bit."""
        size = self._library.llama_state_seq_get_size(other._handle, 0)
        state = c.create_string_buffer(size)
        given = self._library.llama_state_seq_get_data(other._handle, state, size, 0)
        taken = self._library.llama_state_seq_set_data(self._handle, state, given, 0)
        if given and taken == given:
            self.ids, self._under, self.begin = other.ids, other._under, other.begin
        else:
            self.clear()

    def read(
        self, ids: Sequence[int], at: Sequence[int], wanted: Wanted, stop: Stop
    ) -> tuple[np.ndarray, Seen]:
        """Read `ids` after what is held: ((len(at), V) float32 logits of the rows `at`, what was
        seen).

        EngineError if llama.cpp fails, Cancelled within one node of its graph; the cache is empty
        after either.
        """
        self._fill(ids, at)
        wanted.rows, wanted.slots = len(ids), self.slots + len(ids)
        try:
            self._watched(at, wanted, stop)
        except BaseException:
            self.clear()
            raise
        self.ids += tuple(ids)
        return self._logits(at), self.watch.seen

    def look(self, rows: int) -> Located:
        """How the stream runs through a graph over `rows` slots, of which nothing is computed.

        BadInput if that can't be told; nothing is held before and after.
        """
        self.clear()
        self._fill([0] * rows, [rows - 1])
        self.watch.begin(Wanted(slots=rows, rows=rows, dry=True), [rows - 1], never)
        self._library.llama_decode(self._handle, self._batch)  # gives up before its first node
        watch = self.watch
        try:
            return Located.of(watch.graph, watch.outputs, watch.attention)
        finally:
            watch.forget()
            self.clear()

    def greedy_id(self, row: int) -> int:
        """The token that llama.cpp's own sampler takes after row `row` of the last call."""
        sampler = self._library.llama_sampler_init_greedy()
        try:
            return int(self._library.llama_sampler_sample(sampler, self._handle, row))
        finally:
            self._library.llama_sampler_free(sampler)

    def close(self) -> None:
        """Free it; harmless the second time."""
        handle, self._handle = self._handle, None
        if handle:
            self._library.llama_batch_free(self._batch)
            self._library.llama_free(handle)

    def _fill(self, ids: Sequence[int], at: Sequence[int]) -> None:
        """Write the batch; what llama.cpp would abort on is refused here."""
        count, batch = len(ids), self._batch
        most = min(self.shape.chunk, self.shape.slots)
        if not 0 < count <= most or self.slots + count > self.shape.slots:
            raise EngineError(f"A call of {count} tokens does not fit. Shorten the prompt.")
        if len(at) > self.shape.outputs:
            raise EngineError(f"Logits of {len(at)} tokens do not fit into one call.")
        batch.n_tokens = count
        first, reads = self.begin + self.slots, set(at)
        for row, token_id in enumerate(ids):
            batch.token[row] = token_id
            batch.pos[row] = first + row + self._gap
            batch.n_seq_id[row] = 1
            batch.seq_id[row][0] = 0
            batch.logits[row] = row in reads

    def _watched(self, at: Sequence[int], wanted: Wanted, stop: Stop) -> None:
        """The call, run again where llama.cpp has laid out another graph unseen."""
        for _ in range(2):
            self.watch.begin(wanted, at, stop)
            with np.errstate(over="ignore"):  # of queries too large for their type
                self._decode(wanted.rows, stop)
            if self.watch.complete:
                self.watch.finish()
                return
            self.watch.forget()
            if not self._remove_from(self.slots):
                break
        raise EngineError("The attention of this pass could not be recorded. Start the run again.")

    def _decode(self, rows: int, stop: Stop) -> None:
        started = time.perf_counter()
        if rows > 1 or self._slow:
            done = threading.Event()
            looking = threading.Thread(target=self._look, args=(stop, done), daemon=True)
            looking.start()
            try:
                code = self._library.llama_decode(self._handle, self._batch)
            finally:
                done.set()
                looking.join()
        else:
            code = self._library.llama_decode(self._handle, self._batch)
        self._slow = time.perf_counter() - started > 5 * _LOOK_SECONDS
        if self.watch.error is not None:
            raise self.watch.error
        if code == _ABORTED or (self.watch.clock.ending and stop()):
            raise Cancelled
        if code == _FULL:
            raise NoMemory("The cache of this run is full. Start the run again.")
        if code:
            raise EngineError(
                "llama.cpp could not run this pass. See the log for details.",
                f"llama_decode gave {code}: {self._library.last_words}",
            )

    def _look(self, stop: Stop, done: threading.Event) -> None:
        """In a thread of its own: a single node of a large model may take seconds."""
        while not done.wait(_LOOK_SECONDS):
            if stop():
                self.watch.end_pass()
                return

    def _logits(self, at: Sequence[int]) -> np.ndarray:
        found = np.empty((len(at), self._width), np.float32)
        for place, row in enumerate(at):
            address = self._library.llama_get_logits_ith(self._handle, row)
            if not address:
                raise EngineError("llama.cpp gave no logits. Open the model again.")
            c.memmove(found[place].ctypes.data, address, found[place].nbytes)
        return found


def chunk_for(parameters: int) -> int:
    """Slots that a model of so many parameters reads in one call."""
    return CHUNK if parameters < _LARGE else CHUNK // 4


def room_for(slots: int, context: int) -> int:
    """Slots to make room for where `slots` are needed now: some more, and no odd number."""
    wanted = max(_FIRST_SLOTS, slots + slots // 2)
    rounded = -(-wanted // 256) * 256
    return max(slots, min(rounded, context)) if context else rounded
