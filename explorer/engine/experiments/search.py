"""Is there a sequence more probable than the greedy one?  A beam looks, then best-first proves.

Probabilities are the model's own (softmax of the raw logits).  A sequence ends after `length`
tokens or with an end token.  A prefix is never less probable than anything it begins, so once no
open prefix is more probable than the best sequence found, that one is the most probable of all.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.passes.model_passes import ModelPasses, logits_after
from explorer.trace.experiments import FoundSequence, SearchResult, SearchSequences

MOST_TOKENS = 16
MOST_WIDTH = 64
MOST_PASSES = 20_000
SAME = 1e-5  # nats: sequences this close are equally probable, as far as float32 logits tell
Path = tuple[int, ...]


class _Search:
    """The passes run so far, and what their tokens cost in nats."""

    def __init__(
        self, passes: ModelPasses, asked: SearchSequences, progress: Report, cancelled: Stop
    ) -> None:
        self.model, self.asked = passes, asked
        self._progress, self._cancelled = progress, cancelled
        self.passes = 0
        self._ends = set(passes.card.eos_ids)
        self._known: dict[Path, tuple[np.ndarray, np.ndarray]] = {}
        self.floor = -math.inf  # nothing less probable than this can matter any more

    def out_of_passes(self) -> bool:
        return self.passes >= self.asked.passes

    def complete(self, path: Path) -> bool:
        return bool(path) and (len(path) == self.asked.length or path[-1] in self._ends)

    def children(
        self, path: Path, log_p: float, most: int | None = None
    ) -> list[tuple[float, Path]]:
        """Longer sequences that can still matter, best first: (log probability, path)."""
        if path not in self._known:
            self._known[path] = self._run(path, log_p)
        ids, logs = self._known[path]
        totals = logs + log_p
        worth = int(np.searchsorted(-totals, -self.floor, side="left"))
        return [
            (float(total), (*path, int(i)))
            for i, total in zip(ids[:worth][:most], totals[:worth][:most], strict=True)
        ]

    def _run(self, path: Path, log_p: float) -> tuple[np.ndarray, np.ndarray]:
        """One pass; the tokens after `path` that can still matter, by descending probability."""
        if self._cancelled():
            raise Cancelled
        logits = logits_after(
            self.model, self.asked.request, (*self.asked.chosen, *path), self._cancelled
        ).astype(np.float64)
        if not np.isfinite(logits.max()):
            raise BadInput(
                "The model's logits contain NaN or infinite values. Open the model as float32."
            )
        self.passes += 1
        self._progress(f"Searching: {self.passes} passes", self.passes / self.asked.passes)
        logs = logits - logits.max()
        logs -= math.log(np.exp(logs).sum())
        able = np.flatnonzero(logs + log_p > self.floor)
        order = able[np.lexsort((able, -logs[able]))]
        return order, logs[order]

    def greedy(self) -> tuple[float, Path]:
        log_p: float = 0.0
        path: Path = ()
        while not self.complete(path):
            log_p, path = self.children(path, log_p, 1)[0]
        self.floor = log_p
        for i in range(len(path)):  # those passes kept all V tokens
            ids, logs = self._known[path[:i]]
            kept = int(np.count_nonzero(logs > log_p))
            self._known[path[:i]] = ids[:kept].copy(), logs[:kept].copy()
        return log_p, path

    def beam(self, best: tuple[float, Path]) -> tuple[float, Path]:
        """The best sequence that `width` open prefixes at a time lead to."""
        open_paths: list[tuple[float, Path]] = [(0.0, ())]
        while open_paths and not self.out_of_passes():
            grown: list[tuple[float, Path]] = []
            for log_p, path in open_paths:
                if self.out_of_passes():
                    break
                grown += self.children(path, log_p, self.asked.width)
            grown.sort(key=lambda one: (-one[0], one[1]))
            for found in grown:
                if self.complete(found[1]) and found[0] > best[0]:
                    best = found
                    self.floor = best[0]
            open_paths = [one for one in grown if not self.complete(one[1])][: self.asked.width]
        return best

    def prove(self, best: tuple[float, Path]) -> tuple[tuple[float, Path], bool, float]:
        """Best-first until nothing open can win, or the passes are used up.

        Returns the best sequence, whether that is proven, and the log probability that nothing
        open exceeds.
        """
        heap: list[tuple[float, Path]] = [(0.0, ())]
        while heap and -heap[0][0] > best[0]:
            if self.out_of_passes() and heap[0][1] not in self._known:
                return best, False, -heap[0][0]
            negative, path = heapq.heappop(heap)
            for found in self.children(path, -negative):
                if not self.complete(found[1]):
                    heapq.heappush(heap, (-found[0], found[1]))
                elif found[0] > best[0]:
                    best = found
                    self.floor = best[0]
        return best, True, best[0]


def search(
    passes: ModelPasses, asked: SearchSequences, progress: Report, cancelled: Stop = never
) -> SearchResult:
    """The greedy sequence and the best one found, with both probabilities.

    `proven`: nothing of this length is more probable; else `bound` is what might still be.
    BadInput for numbers out of range.
    """
    _refuse(asked)
    looking = _Search(passes, asked, progress, cancelled)
    greedy = looking.greedy()
    best = looking.beam(greedy)
    best, proven, bound = looking.prove(best)
    if best[0] <= greedy[0] + SAME:
        best = greedy
    return SearchResult(
        length=asked.length,
        width=asked.width,
        passes=looking.passes,
        greedy=_sequence(passes, *greedy),
        best=_sequence(passes, *best),
        beats_greedy=best[0] > greedy[0] + SAME,
        proven=proven,
        bound=math.exp(bound),
    )


def _sequence(passes: ModelPasses, log_p: float, path: Path) -> FoundSequence:
    raw = tuple(passes.token(i).raw for i in path)
    return FoundSequence(ids=path, raw=raw, log_probability=log_p, probability=math.exp(log_p))


def _refuse(asked: SearchSequences) -> None:
    for name, value, most in (
        ("depth", asked.length, MOST_TOKENS),
        ("beam width", asked.width, MOST_WIDTH),
        ("number of passes", asked.passes, MOST_PASSES),
    ):
        if not 1 <= value <= most:
            raise BadInput(f"The {name} must be from 1 to {most:,}.")
