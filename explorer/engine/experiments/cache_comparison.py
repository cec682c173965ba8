"""The cache experiment: the same greedy generation with the cache and without it.

Both ways take each step one after the other, so that a busy moment of the machine hits both.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.passes.forward import Stop
from explorer.engine.passes.runner import Runner
from explorer.trace.request import RunRequest
from explorer.trace.wire.messages import CacheExperiment

MOST_TOKENS = 512


def run(
    runner: Runner,
    asked: CacheExperiment,
    progress: Callable[[str, float], None],
    cancelled: Stop = lambda: False,
) -> dict[str, Any]:
    """{prompt, tokens, ids, same_tokens, cached, uncached}; the last two {positions, ms}.

    `positions` and `ms` have one entry a step: slots run through the model, and the time of the
    pass.  The run's own cache is left as it was.  BadInput where no cache can be used, or the
    tokens exceed the context; Cancelled between and within passes.
    """
    ways = {
        "cached": msgspec.structs.replace(asked.request, cache=True),
        "uncached": msgspec.structs.replace(asked.request, cache=False),
    }
    _refuse(runner, asked, ways["cached"])
    prompt = len(runner.layout(asked.request, ()).ids)
    found: dict[str, dict[str, list[float]]] = {w: {"positions": [], "ms": []} for w in ways}
    ids: dict[str, list[int]] = {way: [] for way in ways}
    work = sum(prompt + i for i in range(asked.tokens)) + prompt + asked.tokens - 1
    done = 0
    with runner.own_cache_aside():
        for step in range(asked.tokens):
            for way, request in ways.items():
                if cancelled():
                    raise Cancelled
                progress(f"Token {step + 1} of {asked.tokens}, {way}", done / work)
                layout = runner.layout(request, ids[way])
                started = time.perf_counter()
                logits, read = runner.pass_after(request, layout, step, cancelled)
                found[way]["ms"].append((time.perf_counter() - started) * 1e3)
                found[way]["positions"].append(read)
                ids[way].append(int(logits.argmax()))
                done += read
    return {
        "prompt": prompt,
        "tokens": asked.tokens,
        "ids": ids["cached"],
        "same_tokens": ids["cached"] == ids["uncached"],
        **found,
    }


def _refuse(runner: Runner, asked: CacheExperiment, cached: RunRequest) -> None:
    if not 1 <= asked.tokens <= MOST_TOKENS:
        raise BadInput(f"The cache experiment takes 1 to {MOST_TOKENS} tokens.")
    if not asked.request.causal_mask:
        raise BadInput("The cache needs the causal mask. Switch the mask on first.")
    if not runner.caches(cached):
        raise BadInput(f"The cache is not available here: {runner.loaded.card.words('cache')}.")
    needed = len(runner.layout(cached, ()).ids) + asked.tokens - 1
    limit = runner.loaded.card.context
    if limit and needed > limit:
        raise BadInput(
            f"Prompt and new tokens take {needed:,} positions, but this model reads at "
            f"most {limit:,}. Choose fewer tokens or a shorter prompt."
        )
