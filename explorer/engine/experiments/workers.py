"""Which function works on which experiment: (runner, what is asked, report, stop) -> its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from explorer.engine.experiments import (
    cache_comparison,
    policy_comparison,
    prefix,
    prompt_scores,
    prompt_table,
    read_position,
    samples,
    search,
)
from explorer.engine.experiments.padded import batch_inputs
from explorer.engine.experiments.torch_passes import TorchPasses
from explorer.engine.inside import attribution, head_sweep, lens, residual, structure
from explorer.engine.inside.walk import layer_walk
from explorer.engine.passes.runner import Runner
from explorer.trace import experiments as asked
from explorer.trace.inside.attribution import Attribute
from explorer.trace.inside.heads import SweepHeads
from explorer.trace.inside.lens import ReadLens
from explorer.trace.inside.stream import ReadStream
from explorer.trace.inside.structure import ReadStructure
from explorer.trace.inside.walk import WalkLayer

Worker = Callable[..., asked.Result]


def _through_passes(work: Worker) -> Worker:
    """The same for a runner: experiments that any library's passes can answer."""

    def with_torch(runner: Runner, *rest: Any, **more: Any) -> asked.Result:
        return work(TorchPasses(runner), *rest, **more)

    return with_torch


WORKERS: dict[type[asked.Experiment], Worker] = {
    asked.DrawMany: _through_passes(samples.draw_many),
    asked.SearchSequences: _through_passes(search.search),
    asked.PrefixExperiment: prefix.drop_last,
    asked.ScorePrompt: _through_passes(prompt_scores.score_prompt),
    asked.ScorePrompts: _through_passes(prompt_table.score_prompts),
    asked.CacheExperiment: _through_passes(cache_comparison.run),
    asked.ReadSlot: read_position.read,
    asked.CheckInputs: batch_inputs.check,
    asked.ComparePolicies: policy_comparison.compare,
    ReadLens: lens.read,
    ReadStream: residual.read,
    Attribute: attribution.attribute,
    SweepHeads: head_sweep.sweep,
    WalkLayer: layer_walk.walk,
    ReadStructure: structure.read,
}
