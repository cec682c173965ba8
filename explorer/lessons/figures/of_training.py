"""Figures of the training lab: losses, what generation gets right, and what the heads do."""

from __future__ import annotations

from collections.abc import Callable

from explorer.lessons.quantities import Quantity
from explorer.lessons.run_facts import HABITS, CanNotTell, HeadPlace, RunFacts, named, whole
from explorer.trace.training.run import TrainingRun
from explorer.trace.training.trained_step import TrainedStep

_FIRST = Quantity(1)


def _run(facts: RunFacts, number: Quantity = _FIRST) -> TrainingRun:
    """One of the runs, counted from 1."""
    runs = facts.training
    if not runs:
        raise CanNotTell("Nothing has been trained yet.")
    return runs[whole(number, 1, len(runs), "Training") - 1]


def _last(facts: RunFacts, number: Quantity = _FIRST) -> TrainedStep:
    found = _run(facts, number).figures()
    if found is None:
        raise CanNotTell("No update has been made yet.")
    return found


def _looked(facts: RunFacts, number: Quantity = _FIRST) -> TrainedStep:
    """The last update after which generation was measured."""
    found = _run(facts, number).evaluated()
    if found is None:
        raise CanNotTell("Generation has not been measured yet.")
    return found


def _head(facts: RunFacts, habit: Quantity, number: Quantity = _FIRST) -> HeadPlace:
    if habit.value not in HABITS:
        raise CanNotTell(f"A head of a training attends to one of: {', '.join(HABITS)}.")
    found = facts.panels.training_heads(_run(facts, number)).get(str(habit.value))
    if found is None:
        raise CanNotTell("No head has a figure for this.")
    return found


def _of_run(work: Callable[[TrainingRun], float | None]) -> Callable[..., float | None]:
    return lambda facts, *number: work(_run(facts, *number))


_ANY, _HABIT = (0, 1), (1, 2)  # arguments
FIGURES = (
    named("trained_updates", "updates that the training made; trained_updates(2) of the second run",
          _of_run(lambda run: run.step), "count", _ANY),
    named("trained_parameters", "parameters of the model that is trained",
          _of_run(lambda run: run.parameters), "count", _ANY),
    named("training_loss", "loss of the last update", lambda f, *n: _last(f, *n).loss, "nats",
          _ANY),
    named("held_out_loss", "loss on held-out data, when it was measured last",
          lambda f, *n: _looked(f, *n).held_out_loss, "nats", _ANY),
    named("lowest_loss", "the lowest loss of any model that sees only earlier tokens",
          _of_run(lambda run: run.lowest_loss), "nats", _ANY),
    named("right_in_generation", "share of tokens that generation gets right",
          lambda f, *n: _looked(f, *n).copy_accuracy, "share", _ANY),
    named("trained_head", "largest mean weight of a head: 'before', 'answer', 'next' or 'itself'",
          lambda f, *of: _head(f, *of).share, "share", _HABIT),
    named("trained_head_layer", "layer of that head, from 0", lambda f, *of: _head(f, *of).layer,
          "", _HABIT),
    named("trained_head_number", "its head, from 0", lambda f, *of: _head(f, *of).head, "",
          _HABIT),
)  # fmt: skip
