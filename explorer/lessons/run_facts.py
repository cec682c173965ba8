"""What the figures of a lesson are worked out from: the run on screen and its experiments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from explorer.lessons.quantities import NamedFigure, NotKnown, Quantity, Unit, Value
from explorer.trace.batch import BatchResult
from explorer.trace.card import ModelCard
from explorer.trace.comparison import Comparison
from explorer.trace.experiments import R, Result
from explorer.trace.found_models import Recipe
from explorer.trace.request import Sampling
from explorer.trace.step import Step
from explorer.trace.trace import Trace
from explorer.trace.training.run import TrainingRun
from explorer.trace.vocabulary import Vocabulary

HeadKind = Literal["first", "previous", "induction"]
HABITS = ("before", "answer", "next", "itself")  # what a head of a training attends to
NO_RUN = "There is no run yet. Press Step."
EXPERIMENT = {
    "PrefixShift": "prefix", "SearchResult": "search", "Draws": "samples",
    "PromptScores": "surprisal", "CacheComparison": "cache", "PositionRead": "position",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PassTimes:
    """Measured times of a run, and how many positions it ran through the model."""

    prefill_ms: float | None
    decode_ms: float | None  # median of the later passes
    positions: int
    positions_without_cache: int


@dataclass(frozen=True, slots=True)
class HeadPlace:
    """A head, and its mean weight on what it attends to."""

    layer: int
    head: int
    share: float


class PanelNumbers(Protocol):
    """The functions behind the panels, so that a lesson and a panel never disagree."""

    def visible(self, text: str) -> str:
        """A token's text with every character visible."""

    def attention_row(
        self, trace: Trace, step: int, layer: int, head: int, query: int
    ) -> np.ndarray:
        """(T,) weights of one query; ValueError with the reason if there are none."""

    def head_means(self, trace: Trace, step: int, kind: HeadKind) -> np.ndarray:
        """(L, H) mean weight on the token that `kind` asks about; NaN where there is none."""

    def times(self, trace: Trace, step: int) -> PassTimes:
        """What the passes of a run cost."""

    def training_heads(self, run: TrainingRun) -> Mapping[str, HeadPlace]:
        """The head that does each thing most, at the last point of a training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """A frozen view of what is on screen; anything may be missing."""

    panels: PanelNumbers
    trace: Trace | None = None
    step: int | None = None  # index of the step looked at
    layer: int = 0
    head: int = 0
    sampling: Sampling = field(default_factory=Sampling)
    card: ModelCard | None = None
    vocabulary: Vocabulary | None = None
    comparison: Comparison | None = None  # of the step looked at
    results: Mapping[type[Result], Result] = field(default_factory=dict)  # that fit it
    batch: BatchResult | None = None
    recipe: Recipe | None = None
    training: tuple[TrainingRun, ...] = ()  # of the training lab: the right run first
    changed: bool = False  # the run on screen was made with other settings than those set now

    def found(self, kind: type[R]) -> R | None:
        """The result of an experiment on this run."""
        result = self.results.get(kind)
        return result if isinstance(result, kind) else None


class CanNotTell(Exception):
    """Why a figure can't be had, as one sentence."""


def on_step(facts: RunFacts) -> tuple[Trace, int, Step]:
    """The run, the index of the step looked at and the step; CanNotTell if there is none."""
    if facts.trace is None or facts.step is None or not facts.trace.steps:
        raise CanNotTell(NO_RUN)
    return facts.trace, facts.step, facts.trace.steps[facts.step]


def result(facts: RunFacts, kind: type[R]) -> R:
    """The result of an experiment; CanNotTell if it has not run."""
    on_step(facts)
    found = facts.found(kind)
    if found is None:
        name = EXPERIMENT.get(kind.__name__, kind.__name__)
        raise CanNotTell(f"The experiment “{name}” has not been run on this text.")
    return found


def whole(value: Quantity, least: int, most: int, what: str) -> int:
    """A whole number from `least` to `most`; CanNotTell with what there is."""
    number = value.number
    if number is None or not math.isfinite(number) or number != int(number):
        raise CanNotTell(f"{what} is counted in whole numbers.")
    if not least <= number <= most:
        there = f"from {least:,} to {most:,}" if most >= least else "none"
        raise CanNotTell(f"{what} {int(number):,} is not there. There are numbers {there}.")
    return int(number)


def named(
    name: str, words: str, work: Callable[..., float | str | bool | None], unit: Unit = "",
    arguments: tuple[int, int] = (0, 0),
) -> NamedFigure:  # fmt: skip
    """One name of the language; `work` may raise CanNotTell or ValueError, or give None."""

    def worked(facts: RunFacts, *values: Quantity) -> Value:
        try:
            found = work(facts, *values)
        except (CanNotTell, ValueError) as error:
            return NotKnown(str(error))
        if found is None:
            return NotKnown("This was not measured.")
        return Quantity(found, "text" if isinstance(found, str) else unit)

    return NamedFigure(name, words, *arguments, worked)
