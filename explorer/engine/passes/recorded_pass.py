"""One forward pass and what was recorded of it, before a token is picked."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from explorer.engine.capture import records
from explorer.engine.capture.part_clocks import Times
from explorer.engine.capture.probe import Recorder
from explorer.engine.capture.records import Proven
from explorer.engine.passes.chunked_prefill import Gathered
from explorer.trace.attention import LayerRecord
from explorer.trace.step import Phase


@dataclass(slots=True)
class ForwardPass:
    """Q slots read, with the logits at one slot or several."""

    logits: np.ndarray  # (V,) float32 at the readout, or (n, V) of the slots that were named
    recorder: Recorder  # of the last chunk, where there are several
    seconds: float
    first_slot: int
    slots: int  # that exist after the pass
    times: Times
    phase: Phase = "recompute"
    chunks: int = 1
    gathered: Gathered | None = None  # the records of several chunks
    gather_seconds: float = 0.0
    rebuilt: int = 0  # slots that had to be read first, because the cache was gone
    note: str = ""  # what is worth saying of it
    waited: float = 0.0  # seconds of `seconds`, for the other ranks

    def records(self, proven: Proven | None) -> tuple[LayerRecord, ...]:
        """One record per place that attends."""
        if self.gathered is not None:
            return self.gathered.layers()
        reused = self.phase == "prefill" and self.first_slot > 0
        return records.records(self.recorder, self.slots, proven=proven, all_keys=reused)

    @property
    def hidden(self) -> np.ndarray | None:
        """(Q, d) float32 final hidden states, if the model gives them."""
        if self.gathered is not None:
            return self.gathered.hidden
        return records.hidden(self.recorder)

    @property
    def slots_run(self) -> int:
        """Slots that went through the model, those of a lost cache included."""
        return self.slots - self.first_slot + self.rebuilt

    def gather(self, gathered: Gathered, proven: Proven | None) -> None:
        """Add what was recorded to that of the chunks before."""
        started = time.perf_counter()
        gathered.add(self.recorder, self.slots, proven)
        self.gathered = gathered
        self.gather_seconds += time.perf_counter() - started

    def after(self, earlier: ForwardPass) -> ForwardPass:
        """This chunk and those before it as one pass; the newest recorder alone is kept."""
        earlier.times.add(self.times)
        self.times = earlier.times
        self.first_slot = earlier.first_slot
        self.seconds += earlier.seconds
        self.waited += earlier.waited
        self.gather_seconds += earlier.gather_seconds
        self.chunks += earlier.chunks
        return self
