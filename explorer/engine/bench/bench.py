"""The ratios that matter, measured here and now: watched against unwatched, in one process.

The two sides of a ratio are measured in turns, since a busy machine slows both alike. A ratio is
the median of its pairs, and is printed with the lowest and the highest of them.
"""

from __future__ import annotations

import io
import os
import platform
import statistics
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, BinaryIO

import torch
from transformers import DynamicCache

from explorer.engine.callbacks import Report, Stop
from explorer.engine.capture.capture import set_attention
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.machine.memory_bandwidth import bytes_per_second, processor, step_bytes
from explorer.engine.machine.peak_memory import peak_of
from explorer.engine.passes.generate import one_step
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.runner import Runner
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import Step
from explorer.trace.wire import framing, messages

LENGTHS = (128, 512, 1024, 2048)
REPEATS = {128: 7, 2048: 3}  # the others: 5; a pair at 2,048 tokens takes a minute with eager
EAGER_FROM = 1024  # eager maps are compared where they start to hurt
DECODE_TOKENS, DECODE_ROUNDS = 8, 9


class ModelBench:
    """One loaded model under the clock."""

    def __init__(self, runner: Runner, progress: Report, stop: Stop) -> None:
        self.runner, self.model = runner, runner.model
        self._progress, self._stop = progress, stop
        self._sink: BinaryIO = io.BytesIO()

    def run(self) -> dict[str, Any]:
        """{machine, threads, ratios, spread, figures} as the command prints them.

        `spread` has the lowest and highest pair of each ratio. Cancelled if stopped.
        """
        context = self.runner.loaded.card.context or LENGTHS[-1] + 1
        lengths = [t for t in LENGTHS if t <= context]
        if not lengths:
            raise BadInput(f"This model reads at most {context} tokens, but the bench needs 128.")
        ratios = Ratios()
        figures: dict[str, Any] = {"repeats": {}}
        with open(os.devnull, "wb") as self._sink:
            self._prefills(lengths, ratios, figures)
            self._decode(ratios, figures)
        figures["memory_bytes_per_second"] = bytes_per_second(self.model.device)
        figures["step_bytes"] = step_bytes(self.model)
        return {
            "machine": _machine(),
            "threads": torch.get_num_threads(),
            "ratios": ratios.medians,
            "spread": ratios.spread,
            "figures": figures,
        }

    # -- prefill

    def _prefills(self, lengths: Sequence[int], ratios: Ratios, figures: dict[str, Any]) -> None:
        by_length: dict[str, dict[str, Any]] = {
            name: {}
            for name in ("plain_prefill_ms", "prefill_ms", "eager_prefill_ms",
                         "capture_bytes", "eager_bytes", "peak_bytes", "eager_peak_bytes")
        }  # fmt: skip
        self._plain_prefill(self._ids(lengths[0]))  # warm-up
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
                if repeat % 2 == 0:  # each side goes first as often
                    plain.append(self._plain_prefill(ids))
                (spent, kept), peak = peak_of(partial(self._watched_prefill, ids))
                watched.append(spent)
                if repeat % 2:
                    plain.append(self._plain_prefill(ids))
                by_length["capture_bytes"][key] = kept
                by_length["peak_bytes"][key] = peak
                if length >= min(EAGER_FROM, lengths[-1]):
                    (spent, kept), peak = peak_of(partial(self._eager_prefill, ids))
                    eager.append(spent)
                    by_length["eager_bytes"][key] = kept
                    by_length["eager_peak_bytes"][key] = peak
            by_length["plain_prefill_ms"][key] = statistics.median(plain) * 1e3
            by_length["prefill_ms"][key] = statistics.median(watched) * 1e3
            ratios.add("prefill_capture_over_plain", watched, plain, key)
            if eager:
                by_length["eager_prefill_ms"][key] = statistics.median(eager) * 1e3
                ratios.add("eager_over_ours", eager, watched, key)
        figures.update(by_length)
        for name, above, below in (
            ("eager_bytes_over_ours", "eager_bytes", "capture_bytes"),
            ("eager_peak_over_ours", "eager_peak_bytes", "peak_bytes"),
        ):
            ratios.medians[name] = _over(by_length[above], by_length[below])

    def _plain_prefill(self, ids: tuple[int, ...]) -> float:
        return self._plainly("sdpa", ids)[0]

    def _eager_prefill(self, ids: tuple[int, ...]) -> tuple[float, int]:
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
            return time.perf_counter() - started, output

    def _watched_prefill(self, ids: tuple[int, ...]) -> tuple[float, int]:
        """(seconds until the step is handed over, bytes kept of it)."""
        layout = _alone(ids)
        started = time.perf_counter()
        step = one_step(self.runner, RunRequest(), layout, 0, Sampling(), self._stop)
        self._send(step)
        return time.perf_counter() - started, _kept_bytes(step)

    # -- decode

    def _decode(self, ratios: Ratios, figures: dict[str, Any]) -> None:
        ids = self._ids(128)
        plain: list[float] = []  # seconds a token, the median of each round
        watched: list[float] = []
        floor: list[float] = []
        figures["repeats"]["decode"] = DECODE_ROUNDS
        for round_ in range(DECODE_ROUNDS):
            self._note("Decoding", 0.8 + 0.2 * round_ / DECODE_ROUNDS)
            plain.append(statistics.median(self._plain_decode(ids)))
            watched.append(statistics.median(self._watched_decode(ids)))
            floor.append(self._memory_floor())
        for name, values in (("plain_decode", plain), ("decode", watched), ("floor", floor)):
            figures[f"{name}_ms"] = statistics.median(values) * 1e3
        ratios.add("decode_capture_over_plain", watched, plain)
        ratios.add("decode_over_floor", watched, floor)
        figures["decode_tokens_per_second"] = 1e3 / figures["decode_ms"]

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

    def _watched_decode(self, ids: tuple[int, ...]) -> list[float]:
        """Seconds per token with every layer and head captured, picked, packed and written."""
        context = list(ids)
        spent = []
        for index in range(DECODE_TOKENS + 1):
            started = time.perf_counter()
            step = one_step(
                self.runner, RunRequest(), _alone(tuple(context)), index, Sampling(), self._stop
            )
            self._send(step)
            context.append(step.draw.token_id)
            spent.append(time.perf_counter() - started)
        return spent[1:]

    def _memory_floor(self) -> float:
        """Seconds to read every weight a token needs once, as matrix-vector products."""
        linears = [m for m in self.model.modules() if isinstance(m, torch.nn.Linear)]
        inputs = {m.in_features: torch.ones(m.in_features, dtype=m.weight.dtype) for m in linears}
        with torch.inference_mode():
            started = time.perf_counter()
            for linear in linears:
                torch.mv(linear.weight, inputs[linear.in_features].to(linear.weight.device))
            return time.perf_counter() - started

    # -- small things

    def _ids(self, length: int) -> tuple[int, ...]:
        vocabulary = self.model.get_input_embeddings().num_embeddings
        generator = torch.Generator().manual_seed(0)
        drawn = torch.randint(vocabulary // 50, vocabulary, (length,), generator=generator)
        return tuple(int(i) for i in drawn)

    def _send(self, step: Step) -> None:
        token = self.runner.loaded.tokenizer.token(step.draw.token_id, "generated")
        framing.write_event(self._sink, messages.Stepped(step=step, token=token))

    def _note(self, text: str, fraction: float | None) -> None:
        if self._stop():
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


def _alone(ids: tuple[int, ...]) -> Layout:
    return Layout(ids, (1,) * len(ids), tuple(range(len(ids))))


def _kept_bytes(step: Step) -> int:
    """Queries, keys and hidden states, as they stay in the trace."""
    hidden = 0 if step.hidden is None else step.hidden.nbytes
    parts = [a for r in step.layers for a in (r.queries, r.keys, r.weights) if a is not None]
    return hidden + sum(part.nbytes for part in parts)


def _over(above: dict[str, float], below: dict[str, float]) -> dict[str, float]:
    return {key: above[key] / below[key] for key in above if above[key] and below.get(key)}


def _machine() -> dict[str, Any]:
    return {
        "system": platform.system(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "torch": str(torch.__version__),
    }
