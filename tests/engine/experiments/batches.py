"""Padded batches on tiny models: prompts of mixed lengths, and the model called by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import msgspec
import numpy as np
import torch

from explorer.engine.experiments import batch
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import selftest
from explorer.trace.batch import BatchRequest, BatchResult
from explorer.trace.request import Side
from tests.engine import architectures
from tests.engine.tiny import runner_on, tiny_runner

KINDS = ("gpt2", "llama", "bloom", "opt", "gemma3_text")
LENGTHS = (1, 7, 40, 2, 23)
SIDES: tuple[Side, ...] = ("left", "right")
PROMPTS = tuple(
    " ".join(str(2 + (row * 31 + at * 17 + at * at * 3) % 90) for at in range(length))
    for row, length in enumerate(LENGTHS)
)


@cache
def runner_of(kind: str) -> Runner:
    """A tested runner; nothing in these tests changes it."""
    if kind in ("bloom", "opt", "mamba", "minimax", "moshi"):
        runner = runner_on(architectures.tiny(kind), context=architectures.CONTEXT)
    else:
        runner = tiny_runner(kind)
    selftest.run(runner)
    return runner


def run(runner: Runner, prompts: tuple[str, ...] = PROMPTS, **more: Any) -> BatchResult:
    request = BatchRequest(prompts=prompts, **more)
    return batch.run(runner, request, lambda text, share: None, lambda: False)


def ids_of(prompt: str) -> list[int]:
    return [int(word) for word in prompt.split()]


def alone(runner: Runner, ids: list[int]) -> np.ndarray:
    """(T, V) logits of ids by themselves, straight from the model."""
    with torch.inference_mode():
        logits: np.ndarray = runner.model(input_ids=torch.tensor([ids])).logits[0].numpy()
    return logits


def greedy(runner: Runner, ids: list[int], steps: int) -> list[int]:
    ids = list(ids)
    for _ in range(steps):
        ids.append(int(alone(runner, ids)[-1].argmax()))
    return ids[-steps:]


def probability(logits: np.ndarray, token_id: int) -> float:
    return float(torch.tensor(logits).double().softmax(-1)[token_id])


def ended(runner: Runner, *eos: int, **changes: Any) -> Runner:
    """The same model, its card saying other end tokens."""
    card = msgspec.structs.replace(runner.loaded.card, eos_ids=eos, **changes)
    other = Runner(replace(runner.loaded, card=card))
    other.capture, other.cache_offered = runner.capture, runner.cache_offered
    return other
