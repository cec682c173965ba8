"""A .gguf file opened by llama.cpp in this process, tested as on opening."""

from __future__ import annotations

import os
from pathlib import Path

os.environ["GGML_NO_BACKTRACE"] = "1"

from explorer.llama_engine.model.card import model_card
from explorer.llama_engine.model.model import LlamaModel
from explorer.llama_engine.passes.generate import generate
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.llama_engine.selftest import selftest
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import Step
from explorer.trace.trace import Trace

THREADS = 1


def opened(path: Path, cache_type_k: str = "f16", gpu_layers: int = 0) -> LlamaRunner:
    """Ready to run; to be closed."""
    model = LlamaModel(path, cache_type_k=cache_type_k, gpu_layers=gpu_layers)
    runner = LlamaRunner(model, model_card(model, cache_type_k), THREADS, cache_type_k)
    try:
        selftest.run(runner)
    except BaseException:
        runner.close()
        raise
    return runner


def run(
    runner: LlamaRunner,
    request: RunRequest,
    steps: int,
    chosen: tuple[int, ...] = (),
    reuse: bool = False,
) -> Trace:
    """A greedy run as the window would hold it."""
    prompt = runner.prompt(request)
    trace = Trace(request=request, card=runner.card, prompt=prompt.tokens)
    found: list[tuple[Step, object]] = []
    generate(runner, prompt, chosen, steps, Sampling, lambda *both: found.append(both), reuse=reuse)
    for step, token in found:
        trace = trace.appended(step, token)
    return trace
