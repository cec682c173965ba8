"""What the training panel says; every figure in it was measured."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path

from PySide6.QtCore import QCoreApplication

from explorer.figures.training.heads import HeadHabit
from explorer.trace.training.run import TrainingLab, TrainingRun
from explorer.trace.training.settings import TASKS, Mistake
from explorer.trace.training.trained_step import TrainedStep
from explorer.ui.look.text_size import for_back_row
from explorer.wording import information, percent

translate = QCoreApplication.translate
CLEAR = 0.5  # a head that puts this share on one thing is named for it


def mistake(wrong: Mistake) -> str:
    """A mistake by its name, for a list."""
    names: dict[Mistake, str] = {
        "mask": translate("TrainingPanel", "no causal mask"),
        "transposed": translate("TrainingPanel", "mask transposed"),
        "shift": translate("TrainingPanel", "targets not shifted"),
        "padding": translate("TrainingPanel", "padding in the loss"),
        "positions": translate("TrainingPanel", "no positions"),
        "residual": translate("TrainingPanel", "no residual connections"),
        "warm-up": translate("TrainingPanel", "no warm-up"),
        "untied": translate("TrainingPanel", "untied head"),
    }
    return names[wrong]


def explained(wrong: Mistake) -> str:
    """What a mistake changes, in one sentence."""
    words: dict[Mistake, str] = {
        "mask": translate("TrainingPanel", "In training each token can see the later ones."),
        "transposed": translate(
            "TrainingPanel", "In training each token sees itself and the later ones only."
        ),
        "shift": translate(
            "TrainingPanel", "The target of each position is its own token, not the next one."
        ),
        "padding": translate(
            "TrainingPanel",
            "Padding positions count in the loss. They are easy, so the loss is too low.",
        ),
        "positions": translate("TrainingPanel", "The model does not know where a token stands."),
        "residual": translate(
            "TrainingPanel", "Each part of a layer replaces its input instead of adding to it."
        ),
        "warm-up": translate(
            "TrainingPanel", "The learning rate is at its highest from the first update on."
        ),
        "untied": translate(
            "TrainingPanel", "The output head is a matrix of its own, not the token table."
        ),
    }
    return words[wrong]


def name(run: TrainingRun) -> str:
    """A run by what is wrong with it."""
    wrong = run.settings.wrong
    if not wrong:
        return translate("TrainingPanel", "right")
    return ", ".join(map(mistake, wrong))


def task(run: TrainingRun) -> str:
    """What it learns, by its name."""
    names = {
        "copy": translate("TrainingPanel", "copy"),
        "previous": translate("TrainingPanel", "previous token"),
        "reverse": translate("TrainingPanel", "reverse"),
    }
    return names.get(run.settings.task, Path(run.settings.task).name)


def updates(run: TrainingRun, at: int | None) -> str:
    """Where it stands: "update 340 of 1,000"."""
    step = run.step if at is None else min(at, run.step)
    return translate("TrainingPanel", "update {0} of {1}").format(
        f"{step:,}", f"{run.settings.steps:,}"
    )


def losses(run: TrainingRun, at: int | None) -> str:
    """Losses and what generation makes of them, after the update that is looked at."""
    last, looked = run.figures(at), run.evaluated(at)
    if last is None and run.phase == "starting":
        return translate("TrainingPanel", "the engine starts")
    if last is None:
        return translate("TrainingPanel", "no update yet")
    parts = [translate("TrainingPanel", "training loss {0}").format(_nats(last.loss))]
    if looked is not None and looked.held_out_loss is not None:
        held_out = _nats(looked.held_out_loss)
        parts.append(translate("TrainingPanel", "held-out loss {0}").format(held_out))
    if looked is not None:
        parts.append(generation(run, looked))
    return ", ".join(parts)


def generation(run: TrainingRun, looked: TrainedStep) -> str:
    """How much it gets right when it reads its own tokens."""
    share = percent(looked.copy_accuracy or 0.0)
    if run.settings.task == "copy":
        return translate("TrainingPanel", "generation copies {0}").format(share)
    if run.settings.task in TASKS:
        return translate("TrainingPanel", "generation gets {0} right").format(share)
    return translate("TrainingPanel", "{0} of the next bytes are right").format(share)


def too_good(run: TrainingRun, at: int | None) -> str:
    """A held-out loss below what any causal model can reach, said; empty if it is not.

    The loss of a single batch may get there by chance: its texts are short or long.
    """
    looked, lowest = run.evaluated(at), run.lowest_loss
    if looked is None or looked.held_out_loss is None or lowest is None:
        return ""
    if not looked.held_out_loss < 0.9 * lowest:
        return ""
    return translate(
        "TrainingPanel",
        "No model that sees only earlier tokens can get below {0}: this one is shown the answer.",
    ).format(_nats(lowest))


def comparison(lab: TrainingLab) -> str:
    """The figures of each run after the same number of updates."""
    at = min(run.step for run in lab.runs)
    at = at if lab.at is None else min(at, lab.at)
    parts = []
    for run in lab.runs:
        words = f"{name(run)}: {losses(run, at)}."
        parts.append(" ".join(filter(None, [words[:1].upper() + words[1:], too_good(run, at)])))
    after = translate("TrainingPanel", "After {0} updates.").format(f"{at:,}")
    return " ".join([after, *parts])


def headline(lab: TrainingLab) -> str:
    """What the figures of the run, or of both runs, come to."""
    if len(lab.runs) > 1:
        return comparison(lab)
    (run,) = lab.runs
    start = updates(run, lab.at)
    words = f"{start[:1].upper()}{start[1:]}: {losses(run, lab.at)}."
    return " ".join(filter(None, [words, too_good(run, lab.at)]))


def doing(one: HeadHabit, run: TrainingRun) -> str:
    """What a head attends to, with its share."""
    words = {
        "before": translate("TrainingPanel", "attends to the token before"),
        "answer": translate("TrainingPanel", "attends to the token to be copied")
        if run.settings.task in ("copy", "reverse")
        else translate("TrainingPanel", "attends to an earlier copy of the next token"),
        "next": translate("TrainingPanel", "attends to the token that comes next"),
        "itself": translate("TrainingPanel", "attends to the token itself"),
    }
    return translate("TrainingPanel", "{0}: {1}").format(words[one.habit], percent(one.share))


def habit(one: HeadHabit, run: TrainingRun) -> str:
    """The same, with the head."""
    return f"L{one.layer} H{one.head} {doing(one, run)}"


def heads(found: Sequence[HeadHabit], run: TrainingRun) -> str:
    """The heads that do one thing clearly; else how far the two are that copying takes."""
    clear = [one for one in found if one.share >= CLEAR]
    if clear:
        return " · ".join(habit(one, run) for one in clear)
    both = [one for one in found if one.habit in ("before", "answer")]
    if not both:
        return ""
    so_far = translate("TrainingPanel", "No head has a clear job yet.")
    return f"{so_far} {' · '.join(habit(one, run) for one in both)}"


def exposure(run: TrainingRun, at: int | None, lab: TrainingLab) -> str:
    """What reading its own output costs on average, in percentage points."""
    found = run.by_position(at)
    if found is None or not found.own:
        return translate("TrainingPanel", "not measured yet")
    own, forced = (sum(some) / len(some) for some in (found.own, found.forced))
    words = translate(
        "TrainingPanel", "{0} right with its own output, {1} with the right tokens"
    ).format(percent(own), percent(forced))
    return words if len(lab.runs) == 1 else f"{name(run)}: {words}"


def pace(run: TrainingRun, at: int | None) -> str:
    """Speed, gradient and size, for the small print."""
    last = run.figures(at)
    if not run.parameters:
        return ""
    size = translate("TrainingPanel", "{0} parameters").format(f"{run.parameters:,}")
    if last is None:
        return size
    parts = [
        translate("TrainingPanel", "{0} tokens/s").format(f"{last.tokens_per_second:,.0f}"),
        translate("TrainingPanel", "gradient norm {0}").format(f"{last.gradient_norm:.3g}"),
    ]
    if not for_back_row():
        seconds = translate("TrainingPanel", "{0} s of training").format(f"{last.seconds:,.0f}")
        parts += [seconds, size]
    return " · ".join(parts)


def _nats(loss: float) -> str:
    return information(loss) if isfinite(loss) else translate("TrainingPanel", "not a number")
