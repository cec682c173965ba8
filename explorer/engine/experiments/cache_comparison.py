"""The cache experiment: the same greedy generation with the cache and without it.

The two runs take each step one after the other, so that a busy moment of the machine hits both.
"""

from __future__ import annotations

import time

import msgspec

from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.passes.model_passes import ModelPasses
from explorer.trace.experiments import CacheComparison, CacheExperiment, Way
from explorer.trace.request import RunRequest

MOST_TOKENS = 512


def run(
    passes: ModelPasses, asked: CacheExperiment, progress: Report, cancelled: Stop = never
) -> CacheComparison:
    """With and without the cache, step by step.  The run's own cache is left as it was.

    BadInput where no cache can be used, or the tokens exceed the context; Cancelled between and
    within passes.
    """
    ways = {
        "cached": msgspec.structs.replace(asked.request, cache=True),
        "uncached": msgspec.structs.replace(asked.request, cache=False),
    }
    _refuse(passes, asked, ways["cached"])
    prompt = len(passes.layout(asked.request, ()).ids)
    positions: dict[str, list[int]] = {way: [] for way in ways}
    ms: dict[str, list[float]] = {way: [] for way in ways}
    ids: dict[str, list[int]] = {way: [] for way in ways}
    work = sum(prompt + i for i in range(asked.tokens)) + prompt + asked.tokens - 1
    read = 0
    with passes.own_cache_aside():
        for step in range(asked.tokens):
            for way, request in ways.items():
                if cancelled():
                    raise Cancelled
                progress(f"Token {step + 1} of {asked.tokens}, {way}", read / work)
                layout = passes.layout(request, ids[way])
                started = time.perf_counter()
                logits, slots_run = passes.next_pass(request, layout, step, cancelled)
                ms[way].append((time.perf_counter() - started) * 1e3)
                positions[way].append(slots_run)
                ids[way].append(int(logits.argmax()))
                read += slots_run
    found = {w: Way(positions=tuple(positions[w]), ms=tuple(ms[w])) for w in ways}
    return CacheComparison(
        prompt=prompt,
        tokens=asked.tokens,
        ids=tuple(ids["cached"]),
        same_tokens=ids["cached"] == ids["uncached"],
        cached=found["cached"],
        uncached=found["uncached"],
    )


def _refuse(passes: ModelPasses, asked: CacheExperiment, cached: RunRequest) -> None:
    if not 1 <= asked.tokens <= MOST_TOKENS:
        raise BadInput(f"The cache experiment takes 1 to {MOST_TOKENS} tokens.")
    if not asked.request.causal_mask:
        raise BadInput("The cache needs the causal mask. Switch the mask on first.")
    if not passes.caches(cached):
        raise BadInput(f"The cache is not available here: {passes.card.words('cache')}.")
    needed = len(passes.layout(cached, ()).ids) + asked.tokens - 1
    limit = passes.card.context
    if limit and needed > limit:
        raise BadInput(
            f"Prompt and new tokens take {needed:,} positions, but this model reads at "
            f"most {limit:,}. Choose fewer tokens or a shorter prompt."
        )
