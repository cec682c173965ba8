"""Runs of real models, made by the engine in this process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from explorer import sampling as chain
from explorer.engine.loading.loading import load
from explorer.engine.passes.generate import generate
from explorer.engine.passes.layout import Prompt
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import selftest
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import Step, Token
from explorer.trace.trace import Trace


@cache
def _runner(model: str) -> Runner:
    runner = Runner(load(model))
    selftest.run(runner)
    return runner


def run(request: RunRequest, samplings: Sequence[Sampling], forced: dict[int, int]) -> Trace:
    """One step for each of `samplings`; `forced` names tokens to take instead, by step."""
    runner = _runner(request.model)
    prompt = runner.prompt(request)
    trace = Trace(request=request, card=runner.loaded.card, prompt=prompt.tokens)
    for index, sampling in enumerate(samplings):
        step, token = _one(runner, prompt, trace, sampling)
        trace = trace.appended(step, token)
        if index in forced:
            token = runner.loaded.tokenizer.token(forced[index], "forced")
            before = trace.context_ids(index)
            logits = trace.steps[-1].logits
            trace = trace.forced(token, chain.force(logits, sampling, token.id, before))
    return trace


def _one(runner: Runner, prompt: Prompt, trace: Trace, sampling: Sampling) -> tuple[Step, Token]:
    made: list[tuple[Step, Token]] = []
    generate(runner, prompt, trace.chosen_ids, 1, lambda: sampling, lambda *one: made.append(one))
    return made[0]
