"""A list of prompts, one pass over each: the next token, the surprisal, an answer's probability."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import msgspec
import numpy as np

from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.errors import BadInput, Cancelled, EngineError
from explorer.engine.experiments.loss import nats
from explorer.engine.experiments.prompt_scores import LOGIT_BYTES
from explorer.engine.passes.model_passes import ModelPasses
from explorer.trace.chat import Message
from explorer.trace.experiments import PromptTable, ScoredPrompt, ScorePrompts
from explorer.trace.request import TYPED, RunRequest

NOT_SPLIT = (
    "The answer's probability is not known: prompt and answer share a token. Let the answer begin "
    "where a token begins."
)
NOT_CAUSAL = (
    "The answer's probability is not known: without the causal mask the prompt would read the "
    "answer."
)


def score_prompts(
    passes: ModelPasses,
    asked: ScorePrompts,
    progress: Report,
    cancelled: Stop = never,
    part: Callable[[PromptTable], None] = lambda table: None,
) -> PromptTable:
    """One row a prompt; `part` gets those that are there after each.

    A prompt that can't be run has a `problem` in place of figures.  The run's own cache is left
    as it was.
    """
    rows: list[ScoredPrompt] = []
    count = len(asked.prompts)
    for prompt, answer in asked.prompts:
        if cancelled():
            raise Cancelled
        try:
            rows.append(_row(passes, asked.request, prompt, answer, cancelled))
        except BadInput as error:
            rows.append(_not_run(prompt, error.sentence))
        progress(f"Running the prompts: {len(rows):,} of {count:,}", len(rows) / count)
        if len(rows) < count:
            part(PromptTable(asked=count, rows=tuple(rows)))
    return PromptTable(asked=count, rows=tuple(rows))


def _row(
    passes: ModelPasses, asked: RunRequest, prompt: str, answer: str, cancelled: Stop
) -> ScoredPrompt:
    request = _alone(asked, prompt)
    layout, problem = passes.layout(request, ()), ""
    read = len(layout.ids)
    if answer and request.sees_later:
        problem = NOT_CAUSAL
    elif answer:
        longer = passes.layout(answered(request, answer), ())
        if len(longer.ids) > read and longer.ids[:read] == layout.ids:
            layout = longer
        else:
            problem = NOT_SPLIT
    ids = layout.ids
    most = max(1, LOGIT_BYTES // (4 * max(1, passes.card.vocab_size)))
    surprisals: list[float] = []  # of the tokens from the second on
    last = np.zeros(0, np.float32)
    began = time.perf_counter()
    for slots, logits in passes.every_logit(request, layout, most, cancelled):
        if np.isnan(logits).any():
            raise EngineError("The model's logits contain NaN values. Try another dtype.")
        followed = [slot for slot in slots if slot + 1 < len(ids)]
        if followed:
            targets = [ids[slot + 1] for slot in followed]
            surprisals += nats(logits[: len(followed)], targets).tolist()
        if read - 1 in slots:
            last = logits[read - 1 - slots.start].astype(np.float64)
    ms = (time.perf_counter() - began) * 1000
    best = int(last.argmax())
    own, of_answer = surprisals[: read - 1], surprisals[read - 1 :]
    return ScoredPrompt(
        prompt=prompt,
        tokens=read,
        id=best,
        raw=passes.token(best).raw,
        probability=float(np.exp(-nats(last[None], [best])[0])),
        mean_nats=math.fsum(own) / len(own) if own else None,
        answer=math.exp(-math.fsum(of_answer)) if of_answer else None,
        ms=ms,
        problem=problem,
    )


def _not_run(prompt: str, why: str) -> ScoredPrompt:
    return ScoredPrompt(
        prompt=prompt,
        tokens=0,
        id=0,
        raw=b"",
        probability=0.0,
        mean_nats=None,
        answer=None,
        ms=0.0,
        problem=why,
    )


def _alone(asked: RunRequest, prompt: str) -> RunRequest:
    """The prompt read as that run would be, without its padding."""
    return msgspec.structs.replace(asked, prompt=prompt, padding=None, pad=0, **TYPED)


def answered(request: RunRequest, answer: str) -> RunRequest:
    """The same prompt with the answer behind it: in a chat, begun by the assistant."""
    if request.chat:
        said = (Message("user", request.prompt), Message("assistant", answer))
        return msgspec.structs.replace(request, messages=said)
    return msgspec.structs.replace(request, prompt=request.prompt + answer)
