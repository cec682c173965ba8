"""What a lesson's figures are worked out from, taken from the state on screen.

The numbers come from the functions behind the panels, so that a lesson and a panel never disagree.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import get_args

import numpy as np

from explorer.figures.attention import head_scores, maps
from explorer.figures.cost import timing
from explorer.figures.text.tokens import plain
from explorer.figures.training.heads import strongest
from explorer.lessons.lesson import LessonPage, LookAt
from explorer.lessons.run_facts import HeadKind, HeadPlace, PassTimes, RunFacts
from explorer.session.state import State
from explorer.trace.experiments import AnyExperiment, Experiment, Result
from explorer.trace.step import Step
from explorer.trace.trace import Trace
from explorer.trace.training.run import TrainingRun

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

    def training_heads(self, run: TrainingRun) -> Mapping[str, HeadPlace]:
        """The head that does each thing most, at the last point of a training."""
        point = run.point()
        found = () if point is None else strongest(point, run.ids)
        return {one.habit: HeadPlace(one.layer, one.head, one.share) for one in found}

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
    found = state.comparison
    fits = found is not None and found.of == "mask" and found.fits(trace, index)
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
        training=state.training.runs,
        changed=state.request_changed,
    )


def not_there(page: LessonPage, state: State) -> str:
    """What a page selects or points at that its scene does not have, as a sentence; "" = nothing.

    The scene has to be in place.
    """
    trace, index = state.trace, state.step_index
    if trace is None or index is None:
        return ""
    scene, slots = page.scene, trace.read_slots(index)
    if scene.step is not None and scene.step >= len(trace.steps):
        return f"The run has steps {_to(len(trace.steps))}. The scene asks for step {scene.step}."
    for name, place in (("query", scene.query), ("key", scene.key)):
        if place is not None and place >= slots:
            return f"The text has positions {_to(slots)}. The scene asks for {name} {place}."
    target = page.look_at
    return "" if target is None else _beyond(target, trace, slots)


def _beyond(target: LookAt, trace: Trace, slots: int) -> str:
    one, other = target.first, target.second
    layers, heads, tokens = trace.card.layers, trace.card.heads, len(trace.tokens)
    asked = f"“look_at” asks for {target.kind}:{one}"
    if target.kind == "token" and one >= tokens:
        return f"The text has tokens {_to(tokens)}. {asked}."
    if target.kind == "cell" and max(one, other) >= slots:
        return f"The map has rows and columns {_to(slots)}. {asked},{other}."
    if target.kind == "head" and (one >= layers or other >= heads):
        return f"This model has layers {_to(layers)} and heads {_to(heads)}. {asked},{other}."
    return ""


def _to(count: int) -> str:
    """The numbers that there are, counted from 0."""
    return "0 only" if count == 1 else f"0 to {count - 1}"
