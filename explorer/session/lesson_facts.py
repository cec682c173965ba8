"""What a lesson's figures are worked out from, taken from the state on screen.

The numbers come from the functions behind the panels, so that a lesson and a panel never disagree.
"""

from __future__ import annotations

from functools import lru_cache
from typing import get_args

import numpy as np

from explorer.figures.attention import head_scores, maps
from explorer.figures.cost import timing
from explorer.figures.text.tokens import plain
from explorer.lessons.run_facts import HeadKind, PassTimes, RunFacts
from explorer.session.state import State
from explorer.trace.experiments import AnyExperiment, Experiment, Result
from explorer.trace.step import Step
from explorer.trace.trace import Trace

KINDS: tuple[type[Experiment], ...] = get_args(AnyExperiment)


class PanelFunctions:
    """The functions that the panels draw from, as a lesson asks for them."""

    def visible(self, text: str) -> str:
        """A token's text with every character visible."""
        return plain(text)

    def attention_row(
        self, trace: Trace, step: int, layer: int, head: int, query: int
    ) -> np.ndarray:
        """(T,) weights of one query; ValueError with the reason if there are none."""
        return maps.row(trace, step, layer, head, query).weights

    def head_means(self, trace: Trace, step: int, kind: HeadKind) -> np.ndarray:
        """(L, H) mean weight on the token that `kind` asks about; NaN where there is none."""
        return _means(_Passes(trace, step), kind)

    def times(self, trace: Trace, step: int) -> PassTimes:
        """What the passes of a run cost."""
        found = timing.chart(trace, step)
        decode = found.decode
        return PassTimes(
            prefill_ms=found.prefill_ms,
            decode_ms=None if decode is None else decode.median,
            positions=found.positions,
            positions_without_cache=found.positions_without_cache,
        )


class _Passes:
    """A run up to one step; equal to another if it is of the very same passes."""

    def __init__(self, trace: Trace, step: int) -> None:
        self.trace, self.step = trace, step
        self.passes: tuple[Step, ...] = trace.steps[: step + 1]

    def __hash__(self) -> int:
        return hash(tuple(map(id, self.passes)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Passes) and (
            len(self.passes) == len(other.passes)
            and all(a is b for a, b in zip(self.passes, other.passes, strict=True))
        )


@lru_cache(maxsize=4)
def _means(passes: _Passes, kind: HeadKind) -> np.ndarray:
    """The scores after every row was looked at."""
    found = None
    for found in head_scores.scores(passes.trace, passes.step, kind):  # noqa: B007 - the last one
        pass
    assert found is not None
    return found.means


def facts_of(state: State) -> RunFacts:
    """What is on screen now, for `Expression.value` and `figure_text.filled`."""
    trace, index = state.trace, state.step_index
    results: dict[type[Result], Result] = {}
    for kind in KINDS:
        read = state.result_of_prompt if kind.OF_PROMPT else state.result
        result = read(kind.RESULT)
        if result is not None:
            results[kind.RESULT] = result
    fits = state.comparison is not None and state.comparison.fits(trace, index)
    return RunFacts(
        panels=PanelFunctions(),
        trace=trace,
        step=index,
        layer=state.selection.layer,
        head=state.selection.head,
        sampling=state.sampling,
        card=state.card if trace is None else trace.card,
        vocabulary=state.vocabulary if trace is None else state.names,
        comparison=state.comparison if fits else None,
        results=results,
        batch=state.batch,
        recipe=state.recipe,
        changed=state.request_changed,
    )
