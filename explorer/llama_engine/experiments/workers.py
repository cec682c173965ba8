"""Which function works on which experiment: (runner, what is asked, report, stop) -> its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from explorer.engine.experiments import (
    cache_comparison,
    prompt_scores,
    prompt_table,
    samples,
    search,
)
from explorer.llama_engine.experiments import prefix, read_position
from explorer.llama_engine.experiments.llama_passes import LlamaPasses
from explorer.llama_engine.inside import head_sweep, lens, residual
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.trace import experiments as asked
from explorer.trace.inside.heads import SweepHeads
from explorer.trace.inside.lens import ReadLens
from explorer.trace.inside.stream import ReadStream

Worker = Callable[..., asked.Result]


def _through_passes(work: Worker) -> Worker:
    """The torch engine's own function, on llama.cpp's passes."""

    def with_llama(runner: LlamaRunner, *rest: Any, **more: Any) -> asked.Result:
        return work(LlamaPasses(runner), *rest, **more)

    return with_llama


WORKERS: dict[type[asked.Experiment], Worker] = {
    asked.DrawMany: _through_passes(samples.draw_many),
    asked.SearchSequences: _through_passes(search.search),
    asked.PrefixExperiment: prefix.drop_last,
    asked.ScorePrompt: _through_passes(prompt_scores.score_prompt),
    asked.ScorePrompts: _through_passes(prompt_table.score_prompts),
    asked.CacheExperiment: _through_passes(cache_comparison.run),
    asked.ReadSlot: read_position.read,
    ReadLens: lens.read,
    ReadStream: residual.read,
    SweepHeads: head_sweep.sweep,
}
