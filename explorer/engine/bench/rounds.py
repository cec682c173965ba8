"""What the bench of either engine does: two sides in turns, and the ratios of what they took.

The two sides of a ratio are measured in turns, since a busy machine slows both alike.  A ratio is
the median of its pairs, and is printed with the lowest and the highest of them.
"""

from __future__ import annotations

import io
import os
import platform
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, BinaryIO, TypeVar

import numpy as np

from explorer.engine.callbacks import Report, Stop
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.machine import peak_memory
from explorer.engine.machine.kept_bandwidth import processor
from explorer.engine.passes.layout import Layout
from explorer.trace.card import ModelCard
from explorer.trace.step import Step, Token
from explorer.trace.wire import framing, messages

LENGTHS = (128, 512, 1024, 2048)
REPEATS = {128: 7, 2048: 3}  # the others: 5; a pair at 2,048 tokens takes a minute with eager
EAGER_FROM = 1024  # eager maps are compared where they start to hurt
DECODE_TOKENS, DECODE_ROUNDS = 8, 9

T = TypeVar("T")


class Rounds(ABC):
    """One loaded model under the clock; an engine says how each side is run."""

    card: ModelCard
    versions: dict[str, str]  # of the library that runs the model
    threads: int

    def __init__(self, progress: Report, stop: Stop) -> None:
        self._progress, self.stop = progress, stop
        self._sink: BinaryIO = io.BytesIO()

    def run(self) -> dict[str, Any]:
        """{machine, threads, ratios, spread, figures} as the command prints them.

        `spread` has the lowest and highest pair of each ratio. Cancelled if stopped.
        """
        context = self.card.context or LENGTHS[-1] + 1
        lengths = [t for t in LENGTHS if t <= context]
        if not lengths:
            raise BadInput(f"This model reads at most {context} tokens, but the bench needs 128.")
        ratios = Ratios()
        figures: dict[str, Any] = {"repeats": {}}
        with open(os.devnull, "wb") as self._sink:
            self._prefills(lengths, ratios, figures)
            self._decode(lengths[0], ratios, figures)
        bandwidth, weights = self.traffic()
        figures["memory_bytes_per_second"], figures["step_bytes"] = bandwidth, weights
        machine = {"system": platform.system(), "processor": processor(), "cores": os.cpu_count()}
        return {
            "machine": machine | self.versions,
            "threads": self.threads,
            "ratios": ratios.medians,
            "spread": ratios.spread,
            "figures": figures,
        }

    # -- the sides

    @abstractmethod
    def plain_prefill(self, ids: tuple[int, ...]) -> float:
        """Seconds of the library alone."""

    @abstractmethod
    def watched_step(self, layout: Layout, index: int) -> Step:
        """One step of a run, with everything recorded."""

    @abstractmethod
    def decode_round(self, ids: tuple[int, ...]) -> tuple[list[float], list[float]]:
        """Seconds a token after `ids`: (the library alone, with everything recorded)."""

    @abstractmethod
    def floor(self) -> float | None:
        """Seconds to read every weight that a token needs once; None if that is not measured."""

    @abstractmethod
    def traffic(self) -> tuple[float, int]:
        """(bytes a second that this machine reads, bytes that one token reads)."""

    @abstractmethod
    def token(self, token_id: int) -> Token:
        """Any id with its bytes."""

    def eager_prefill(self, ids: tuple[int, ...]) -> tuple[float, int] | None:
        """(seconds, bytes) of the library's own whole maps; None where it gives none."""
        return None

    def more_figures(self, ids: tuple[int, ...]) -> dict[str, float]:
        """Milliseconds of other ways to read a prompt, by name; one measurement."""
        return {}

    def peak_of(self, work: Callable[[], T]) -> tuple[T, int | None]:
        """(what `work` gives, bytes that were held above before); None where nobody tells."""
        return peak_memory.peak_of(work)

    # -- prefill

    def _prefills(self, lengths: Sequence[int], ratios: Ratios, figures: dict[str, Any]) -> None:
        by_length: dict[str, dict[str, Any]] = {
            name: {}
            for name in ("plain_prefill_ms", "prefill_ms", "eager_prefill_ms",
                         "capture_bytes", "eager_bytes", "peak_bytes", "eager_peak_bytes")
        }  # fmt: skip
        self.plain_prefill(self._ids(lengths[0]))  # warm-up
        self._watched_prefill(self._ids(lengths[0]))
        for index, length in enumerate(lengths):
            key = str(length)
            repeats = REPEATS.get(length, 5)
            figures["repeats"][key] = repeats
            ids = self._ids(length)
            plain, watched, eager = [], [], []
            for repeat in range(repeats):
                done = (index + repeat / repeats) / (len(lengths) + 1)
                self._note(f"Prefill of {length} tokens, {repeat + 1} of {repeats}", done)
                # Each side goes first as often, and each begins with a heap that was given back.
                alone_first = repeat % 2 == 0
                if alone_first:
                    plain.append(self.peak_of(partial(self.plain_prefill, ids))[0])
                (spent, kept), peak = self.peak_of(partial(self._watched_prefill, ids))
                watched.append(spent)
                if not alone_first:
                    plain.append(self.peak_of(partial(self.plain_prefill, ids))[0])
                by_length["capture_bytes"][key] = kept
                by_length["peak_bytes"][key] = peak
                if length >= min(EAGER_FROM, lengths[-1]):
                    whole, peak = self.peak_of(partial(self.eager_prefill, ids))
                    if whole is not None:
                        eager.append(whole[0])
                        by_length["eager_bytes"][key] = whole[1]
                        by_length["eager_peak_bytes"][key] = peak
            by_length["plain_prefill_ms"][key] = statistics.median(plain) * 1e3
            by_length["prefill_ms"][key] = statistics.median(watched) * 1e3
            for name, ms in self.more_figures(ids).items():
                by_length.setdefault(name, {})[key] = ms
            ratios.add("prefill_capture_over_plain", watched, plain, key)
            if eager:
                by_length["eager_prefill_ms"][key] = statistics.median(eager) * 1e3
                ratios.add("eager_over_ours", eager, watched, key)
        figures.update({name: found or None for name, found in by_length.items()})
        for name, above, below in (
            ("eager_bytes_over_ours", "eager_bytes", "capture_bytes"),
            ("eager_peak_over_ours", "eager_peak_bytes", "peak_bytes"),
        ):
            ratios.medians[name] = _over(by_length[above], by_length[below]) or None
        ratios.medians.setdefault("eager_over_ours", None)

    def _watched_prefill(self, ids: tuple[int, ...]) -> tuple[float, int]:
        """(seconds until the step is handed over, bytes kept of it)."""
        layout = alone(ids)
        started = time.perf_counter()
        step = self.watched_step(layout, 0)
        self._send(step)
        return time.perf_counter() - started, _kept_bytes(step)

    # -- decode

    def _decode(self, length: int, ratios: Ratios, figures: dict[str, Any]) -> None:
        ids = self._ids(length)
        plain: list[float] = []  # seconds a token, the median of each round
        watched: list[float] = []
        floor: list[float] = []
        figures["repeats"]["decode"] = DECODE_ROUNDS
        for round_ in range(DECODE_ROUNDS):
            self._note("Decoding", 0.8 + 0.2 * round_ / DECODE_ROUNDS)
            sides = self.decode_round(ids)
            plain.append(statistics.median(sides[0]))
            watched.append(statistics.median(sides[1]))
            if (read := self.floor()) is not None:
                floor.append(read)
        for name, values in (("plain_decode", plain), ("decode", watched), ("floor", floor)):
            figures[f"{name}_ms"] = statistics.median(values) * 1e3 if values else None
        ratios.add("decode_capture_over_plain", watched, plain)
        if floor:
            ratios.add("decode_over_floor", watched, floor)
        figures["decode_tokens_per_second"] = 1e3 / figures["decode_ms"]

    def next_token(self, context: list[int], index: int) -> float:
        """Seconds of step `index` after `context`, which grows by the token picked.

        Every layer and head is recorded; the step is picked, packed and written.
        """
        started = time.perf_counter()
        step = self.watched_step(alone(tuple(context)), index)
        self._send(step)
        context.append(step.draw.token_id)
        return time.perf_counter() - started

    # -- small things

    def _ids(self, length: int) -> tuple[int, ...]:
        vocabulary = self.card.vocab_size
        drawn = np.random.default_rng(0).integers(vocabulary // 50, vocabulary, length)
        return tuple(drawn.tolist())

    def _send(self, step: Step) -> None:
        token = self.token(step.draw.token_id)
        framing.write_event(self._sink, messages.Stepped(step=step, token=token))

    def _note(self, text: str, fraction: float | None) -> None:
        if self.stop():
            raise Cancelled
        self._progress(text, fraction)


class Ratios:
    """Ratios of times measured in turns: `medians` and `spread`, by name and, if there, length."""

    def __init__(self) -> None:
        self.medians: dict[str, Any] = {}
        self.spread: dict[str, Any] = {}

    def add(self, name: str, above: Sequence[float], below: Sequence[float], key: str = "") -> None:
        """The ratio above ÷ below; one pair from each round."""
        pairs = [a / b for a, b in zip(above, below, strict=True)]
        median, spread = statistics.median(pairs), [min(pairs), max(pairs)]
        if key:
            self.medians.setdefault(name, {})[key] = median
            self.spread.setdefault(name, {})[key] = spread
        else:
            self.medians[name], self.spread[name] = median, spread


def alone(ids: tuple[int, ...]) -> Layout:
    """Tokens without padding."""
    return Layout(ids, (1,) * len(ids), tuple(range(len(ids))))


def _kept_bytes(step: Step) -> int:
    """Queries, keys and hidden states, as they stay in the trace."""
    hidden = 0 if step.hidden is None else step.hidden.nbytes
    parts = [a for r in step.layers for a in (r.queries, r.keys, r.weights) if a is not None]
    return hidden + sum(part.nbytes for part in parts)


def _over(above: dict[str, float], below: dict[str, float]) -> dict[str, float]:
    return {key: above[key] / below[key] for key in above if above[key] and below.get(key)}
