"""A .gguf file under the clock: llama.cpp with everything recorded, and the same without callback.

Tokens of the two sides are decoded in turns: a pair is over in a few hundredths of a second.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from explorer.engine.bench.rounds import DECODE_TOKENS, Rounds
from explorer.engine.callbacks import Report, Stop
from explorer.engine.passes.layout import Layout
from explorer.llama_engine.bench import traffic
from explorer.llama_engine.binding.structs import FLASH_OFF, FLASH_ON
from explorer.llama_engine.passes.context import Context, room_for
from explorer.llama_engine.passes.generate import one_step
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.llama_engine.passes.watch import Wanted
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import Step, Token


class LlamaBench(Rounds):
    """One open file under the clock; the run's own cache is left as it was."""

    def __init__(self, runner: LlamaRunner, progress: Report, stop: Stop) -> None:
        super().__init__(progress, stop)
        self.runner, self.card, self.threads = runner, runner.card, runner.threads
        self.versions = runner.card.versions
        self._weights = traffic.weights(runner.model)
        self._contexts: dict[int, Context] = {}  # without callback, by flash attention

    def run(self) -> dict[str, Any]:
        with self.runner.own_cache_aside():
            try:
                return super().run()
            finally:
                for context in self._contexts.values():
                    context.close()

    def token(self, token_id: int) -> Token:
        return self.runner.model.tokenizer.token(token_id, "generated")

    def traffic(self) -> tuple[float, int]:
        found = traffic.traffic(self.runner)
        return found.bytes_per_second, found.step_bytes

    def floor(self) -> float:
        """Over the mapped file."""
        return traffic.seconds_to_read(self._weights, self.threads)

    def plain_prefill(self, ids: tuple[int, ...]) -> float:
        return self._read(self._plain(len(ids), FLASH_OFF), ids)[0]

    def more_figures(self, ids: tuple[int, ...]) -> dict[str, float]:
        """With flash attention, which llama.cpp uses where nobody looks."""
        seconds, _ = self._read(self._plain(len(ids), FLASH_ON), ids)
        return {"flash_prefill_ms": seconds * 1e3}

    def watched_step(self, layout: Layout, index: int) -> Step:
        return one_step(self.runner, RunRequest(), layout, index, Sampling(), self.stop)

    def decode_round(self, ids: tuple[int, ...]) -> tuple[list[float], list[float]]:
        plain = self._plain(len(ids) + DECODE_TOKENS + 1, FLASH_OFF)
        _, token = self._read(plain, ids)
        context = list(ids)
        self.next_token(context, 0)
        spent: tuple[list[float], list[float]] = [], []
        for index in range(1, DECODE_TOKENS + 1):
            for side in (0, 1) if index % 2 else (1, 0):
                if side:
                    spent[1].append(self.next_token(context, index))
                else:
                    seconds, token = self._read(plain, (*plain.ids, token))
                    spent[0].append(seconds)
        return spent

    def _plain(self, slots: int, flash: int) -> Context:
        """An empty context that nothing looks into."""
        held = self._contexts.pop(flash, None)
        if held is None or held.shape.slots < slots:
            if held is not None:
                held.close()
            room = room_for(slots, self.card.context)
            shape = replace(self.runner.shape(room, self.runner.chunk), flash=flash, watched=False)
            held = Context(self.runner.model, self.threads, shape)
        held.clear()
        self._contexts[flash] = held
        return held

    def _read(self, context: Context, ids: tuple[int, ...]) -> tuple[float, int]:
        """(seconds, next token by llama.cpp's greedy sampler) of reading what is not held yet."""
        started = time.perf_counter()
        for begin in range(context.slots, len(ids), context.shape.chunk):
            part = ids[begin : begin + context.shape.chunk]
            context.read(part, [len(part) - 1], Wanted(every=0), self.stop)
        token = context.greedy_id(len(part) - 1)
        return time.perf_counter() - started, token
