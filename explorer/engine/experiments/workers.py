"""Which function works on which experiment: (runner, what is asked, report, stop) -> its result."""

from __future__ import annotations

from collections.abc import Callable

from explorer.engine.experiments import (
    cache_comparison,
    prefix,
    prompt_scores,
    read_position,
    samples,
    search,
)
from explorer.engine.inside import lens
from explorer.trace import experiments as asked
from explorer.trace.inside.lens import ReadLens

WORKERS: dict[type[asked.Experiment], Callable[..., asked.Result]] = {
    asked.DrawMany: samples.draw_many,
    asked.SearchSequences: search.search,
    asked.PrefixExperiment: prefix.drop_last,
    asked.ScorePrompt: prompt_scores.score_prompt,
    asked.CacheExperiment: cache_comparison.run,
    asked.ReadSlot: read_position.read,
    ReadLens: lens.read,
}
