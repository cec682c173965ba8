"""Forward passes of one loaded model over laid-out slots, recorded."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from explorer.engine.capture import probe, records
from explorer.engine.capture.capture import Capture, routes, set_attention
from explorer.engine.capture.part_clocks import PartClocks, Times
from explorer.engine.capture.records import Proven
from explorer.engine.capture.timed_parts import parts_of
from explorer.engine.errors import Cancelled, EngineError, NoMemory
from explorer.engine.loading.loading import LoadedModel
from explorer.engine.machine import memory_limit
from explorer.engine.passes import chunked_prefill, masks
from explorer.engine.passes.cache import OwnCache
from explorer.engine.passes.chunked_prefill import Gathered
from explorer.engine.passes.fast_calls import FastCalls
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.preallocated_cache import reserve
from explorer.trace.attention import LayerRecord
from explorer.trace.request import RunRequest

Stop = Callable[[], bool]
Report = Callable[[str, float | None], None]
_WORTH_TELLING = 256  # slots: shorter passes are over before anybody reads how far they are
_TELL_SECONDS = 0.1
_MODEL_FAULTS = (
    MemoryError, RuntimeError, ValueError, IndexError, TypeError, KeyError, AttributeError,
    AssertionError,
)  # fmt: skip


@dataclass(slots=True)
class ForwardPass:
    """One forward pass, before anything is picked from it."""

    logits: np.ndarray  # (V,) float32 at the readout
    recorder: probe.Recorder  # of the last chunk, where there are several
    seconds: float
    first_slot: int
    slots: int  # slots that exist after the pass
    times: Times
    chunks: int = 1
    gathered: Gathered | None = None  # the records of several chunks
    gather_seconds: float = 0.0

    def records(self, proven: Proven | None) -> tuple[LayerRecord, ...]:
        """One record per place that attends."""
        if self.gathered is not None:
            return self.gathered.layers()
        return records.records(self.recorder, self.slots, proven=proven)

    @property
    def hidden(self) -> np.ndarray | None:
        """(Q, d) float32 final hidden states, if the model gives them."""
        if self.gathered is not None:
            return self.gathered.hidden
        return records.hidden(self.recorder)


class Passes:
    """One model and the way its attention is recorded."""

    def __init__(self, loaded: LoadedModel) -> None:
        self.loaded = loaded
        self.model: Any = loaded.model
        parts = parts_of(self.model)
        self.layers = list(parts.layers)
        self._watch = PartClocks(parts, self.model.device)
        self._shortcuts = FastCalls(self.layers)
        self.loaded_attention = str(self.model.config._attn_implementation)
        self.capture = Capture(routes(self.model)[0])
        self.first_position: int | None = 0  # that this model counts from; None = it counts alone
        self.in_chunks = False  # long prompts may be read chunk by chunk
        self.report: Report = lambda text, fraction: None
        self._accepted = set(inspect.signature(self.model.forward).parameters)

    def read(
        self,
        request: RunRequest,
        layout: Layout,
        first: int,
        cache: Any,
        cancelled: Stop = lambda: False,
    ) -> ForwardPass:
        """One pass over the slots from `first` on, or several where that bounds the memory.

        Only through a cache under the causal mask: without it, early rows depend on later ones.
        """
        slots = len(layout.ids)
        spans = [(first, slots)]
        if self.in_chunks and cache is not None and request.causal_mask:
            spans = chunked_prefill.spans(first, slots)
        if len(spans) == 1:
            return self.forward(request, layout, first, cache, cancelled)
        reserve(cache, slots)  # growing chunk by chunk would leave holes all over the memory
        gathered = Gathered(slots, self.capture.windowed) if first == 0 else None
        whole: ForwardPass | None = None
        for begin, end in spans:
            readout = layout.readout if begin <= layout.readout < end else begin
            done = self.forward(
                request, layout.first(end), begin, cache, cancelled, at=(readout,), whole=slots
            )
            whole = _joined(whole, done, readout == layout.readout)
            if gathered is not None:
                started = time.perf_counter()
                gathered.add(done.recorder, end, self.capture.proven)
                whole.gather_seconds += time.perf_counter() - started
        assert whole is not None
        whole.first_slot, whole.gathered = first, gathered
        return whole

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
        whole: int = 0,
    ) -> ForwardPass:
        """One pass over the slots from `first` on; `whole`: slots to be read by further ones.

        Logits are (V,) of the readout, or (len(at), V) of the slots named.  EngineError if the
        model fails, Cancelled from within a layer.
        """
        rows = len(layout.ids) - first
        recorder = self.capture.recorder(rows, cache, cancelled, keep_outputs)
        recorder.every = request.capture_every
        if rows >= _WORTH_TELLING:
            recorder.entered = self._telling(first, rows, whole or len(layout.ids))
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
        odd = self.loaded.not_finite.count > 0 or not np.isfinite(numbers).all()
        recorder.doubtful = bool(odd)
        kept = numbers[0] if at is None else numbers
        assert recorder.times is not None
        return ForwardPass(kept, recorder, seconds, first, len(layout.ids), recorder.times)

    def _telling(self, first: int, rows: int, whole: int) -> Callable[[int], None]:
        """Reports how far the reading has come, ten times a second at most."""
        told = time.perf_counter()

        def tell(layer: int) -> None:
            nonlocal told
            if time.perf_counter() - told >= _TELL_SECONDS:
                told = time.perf_counter()
                done = first + rows * layer / len(self.layers)
                self.report(f"Reading the text: {done:,.0f} of {whole:,} tokens", done / whole)

        return tell

    def arguments(
        self, layout: Layout, first: int, cache: Any, wanted: Sequence[int]
    ) -> dict[str, Any]:
        """The forward arguments this model names, for logits at the rows `wanted`."""
        device = self.model.device
        # A recurrent state has taken in what was masked before; attention asks each time.
        from_slot = 0 if self.capture.attends else first
        arguments: dict[str, Any] = {
            "input_ids": torch.tensor([layout.ids[first:]], device=device),
            "attention_mask": _mask_tensor(layout.attention_mask[from_slot:], device),
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

    @contextlib.contextmanager
    def _recording(self, recorder: probe.Recorder) -> Iterator[None]:
        recording = probe.recording(self.model, len(self.layers), self._watch, recorder)
        with recording, self._shortcuts.laid():
            yield

    def _sync(self) -> None:
        if self.model.device.type == "cuda":
            torch.cuda.synchronize()

    def _times(self, done: ForwardPass) -> dict[str, Any]:
        """The fields of a Step that tell where the time of the pass went."""
        times, layers = done.times, len(self.layers)
        return {
            "forward_ms": done.seconds * 1e3,
            "layer_ms": times.per_layer("layer", layers, 0.0),
            "attention_ms": times.per_layer("attention", layers, np.nan),
            "mlp_ms": times.per_layer("mlp", layers, np.nan),
            "embedding_ms": times.ms("embedding"),
            "norm_ms": times.ms("norm"),
            "head_ms": times.ms("head"),
        }


def _mask_tensor(mask: Sequence[int], device: Any) -> torch.Tensor:
    """(1, T) int64; without padding it is made of ones, not of T Python numbers."""
    if all(mask):
        return torch.ones((1, len(mask)), dtype=torch.long, device=device)
    return torch.tensor([mask], device=device)


def _joined(whole: ForwardPass | None, done: ForwardPass, has_readout: bool) -> ForwardPass:
    """Several passes as one, read at one slot; the newest recorder alone is kept."""
    done.logits = done.logits[0]
    if whole is None:
        return done
    if has_readout:
        whole.logits = done.logits
    whole.seconds += done.seconds
    whole.recorder, whole.slots = done.recorder, done.slots
    whole.times.add(done.times)
    whole.chunks += 1
    return whole


def _explain(error: Exception) -> EngineError:
    text = str(error)
    if memory_limit.is_reached(error):
        return NoMemory(
            "Not enough memory for this pass. Shorten the prompt or choose a smaller dtype.", text
        )
    return EngineError("The model could not run this pass. See the log for details.", text)
