"""A model that torch runs, under the clock: recording against not recording, in one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from transformers import DynamicCache

from explorer.engine.bench.rounds import DECODE_TOKENS, Rounds
from explorer.engine.callbacks import Report, Stop
from explorer.engine.capture.capture import set_attention
from explorer.engine.device_clock import finish
from explorer.engine.machine.memory_bandwidth import bytes_per_second, step_bytes
from explorer.engine.passes.generate import one_step
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.runner import Runner
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import Step, Token

T = TypeVar("T")


class ModelBench(Rounds):
    """One loaded model under the clock."""

    def __init__(self, runner: Runner, progress: Report, stop: Stop) -> None:
        super().__init__(progress, stop)
        self.runner, self.model = runner, runner.model
        self.card, self.threads = runner.loaded.card, torch.get_num_threads()
        self.versions = {"torch": str(torch.__version__)}

    def token(self, token_id: int) -> Token:
        return self.runner.loaded.tokenizer.token(token_id, "generated")

    def traffic(self) -> tuple[float, int]:
        return bytes_per_second(self.model.device), step_bytes(self.model)

    def peak_of(self, work: Callable[[], T]) -> tuple[T, int | None]:
        """Of a model on a CUDA GPU the bytes are the GPU's."""
        device = self.model.device
        if device.type != "cuda":
            return super().peak_of(work)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        result = work()
        return result, torch.cuda.max_memory_allocated(device) - before

    # -- prefill

    def plain_prefill(self, ids: tuple[int, ...]) -> float:
        return self._plainly("sdpa", ids)[0]

    def eager_prefill(self, ids: tuple[int, ...]) -> tuple[float, int]:
        """With output_attentions."""
        seconds, output = self._plainly("eager", ids, output_attentions=True)
        maps = [a for a in output.attentions or () if a is not None]
        return seconds, sum(a.numel() * a.element_size() for a in maps)

    def _plainly(self, attention: str, ids: tuple[int, ...], **more: Any) -> tuple[float, Any]:
        """A prefill as transformers does it: (seconds, output)."""
        set_attention(self.model, attention)
        tokens = torch.tensor([ids], device=self.model.device)
        with torch.inference_mode():
            started = time.perf_counter()
            output = self.model(
                input_ids=tokens,
                cache=DynamicCache(config=self.model.config),
                use_cache=True,
                logits_to_keep=1,
                **more,
            )
            finish(self.model.device)
            return time.perf_counter() - started, output

    def watched_step(self, layout: Layout, index: int) -> Step:
        return one_step(self.runner, RunRequest(), layout, index, Sampling(), self.stop)

    # -- decode

    def decode_round(self, ids: tuple[int, ...]) -> tuple[list[float], list[float]]:
        context = list(ids)
        plain = self._plain_decode(ids)
        watched = [self.next_token(context, index) for index in range(DECODE_TOKENS + 1)]
        return plain, watched[1:]

    def _plain_decode(self, ids: tuple[int, ...]) -> list[float]:
        """Seconds per token of the loop anybody would write around transformers."""
        set_attention(self.model, "sdpa")
        cache = DynamicCache(config=self.model.config)
        tokens = torch.tensor([ids], device=self.model.device)
        spent = []
        with torch.inference_mode():
            for _ in range(DECODE_TOKENS + 1):
                started = time.perf_counter()
                output = self.model(input_ids=tokens, cache=cache, use_cache=True, logits_to_keep=1)
                tokens = output.logits[:, -1:].argmax(-1)
                tokens.item()
                spent.append(time.perf_counter() - started)
        return spent[1:]

    def floor(self) -> float:
        """As matrix-vector products."""
        linears = [m for m in self.model.modules() if isinstance(m, torch.nn.Linear)]
        inputs = {m.in_features: m.weight.new_ones(m.in_features) for m in linears}
        finish(self.model.device)
        with torch.inference_mode():
            started = time.perf_counter()
            for linear in linears:
                torch.mv(linear.weight, inputs[linear.in_features])
            finish(self.model.device)
            return time.perf_counter() - started
