"""`train`: a small decoder learns a task, rightly or with mistakes made on purpose."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from explorer import disk
from explorer.cli.client import Client
from explorer.cli.commands.engine import engine_command
from explorer.cli.document import print_json, print_table
from explorer.cli.errors import DONE, INTERRUPTED, CommandError
from explorer.trace.experiments import UnfitAnswer, read_result
from explorer.trace.training.job import (
    AccuracyByPosition,
    SaveTrained,
    SteerTraining,
    Train,
    TrainingNews,
)
from explorer.trace.training.settings import TASKS, TrainingSettings
from explorer.trace.training.trained_step import TrainedStep
from explorer.trace.wire import messages as m
from explorer.wording import percent

_LINES = 20  # of the table


def run(arguments: argparse.Namespace) -> int:
    settings = _settings(arguments)
    folder = "" if arguments.out is None else _new_folder(arguments)
    told = _Told()
    with Client(engine_command(arguments.engine)) as client:
        interrupted = _train(client, settings, told)
        if folder and told.steps:
            save = SaveTrained(name=told.news.name, step=told.steps[-1].step, folder=folder)
            client.facts(save)
    if interrupted:
        client.note(_kept_after_all(told, folder))
        return INTERRUPTED
    document = _document(settings, told, folder)
    if arguments.json:
        print_json(document)
    else:
        _print(document)
    return DONE


@dataclass
class _Told:
    """What is known of a training so far."""

    steps: list[TrainedStep] = field(default_factory=list)
    positions: AccuracyByPosition | None = None
    _news: TrainingNews | None = None

    @property
    def news(self) -> TrainingNews:
        assert self._news is not None
        return self._news

    def add(self, news: TrainingNews) -> None:
        self._news = news
        self.steps += news.steps
        self.positions = news.positions[-1] if news.positions else self.positions


def _train(client: Client, settings: TrainingSettings, told: _Told) -> bool:
    """Train to the end, or to Ctrl-C: then True, and what was learned by then can be saved."""
    try:
        _follow(client, client.answers(Train(settings=settings)), told)
    except KeyboardInterrupt:
        _follow(client, client.further(SteerTraining(act="pause")), told)
        return True
    if told.news.phase != "done":  # it paused by itself: the loss is no longer a number
        raise CommandError(told.news.problem)
    client.note(told.news.problem)
    return False


def _follow(client: Client, events: Iterable[m.Event], told: _Told) -> None:
    for event in events:
        if not isinstance(event, m.PartFacts):
            continue
        try:
            told.add(read_result(event.facts, TrainingNews))
        except UnfitAnswer as error:
            raise CommandError(str(error)) from error
        if told.steps:
            done = told.steps[-1]
            client.progress(f"Training: loss {done.loss:.2f}", done.step / told.news.settings.steps)
        if told.news.phase != "training":
            return


def _settings(arguments: argparse.Namespace) -> TrainingSettings:
    names = ("build", "task", "layers", "width", "heads", "steps", "rate", "seed", "wrong")
    asked = {name: getattr(arguments, name) for name in names}
    if arguments.engine is None and arguments.task not in TASKS:
        asked["task"] = str(Path(arguments.task).expanduser().absolute())
    asked["wrong"] = tuple(dict.fromkeys(arguments.wrong))
    try:
        return msgspec.convert(asked, TrainingSettings)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        limit = what.replace("`", "").partition(" ")[2].partition(" ")[2]
        raise CommandError(f"--{where.rstrip('`')} must be {limit}.") from error


def _new_folder(arguments: argparse.Namespace) -> str:
    """The folder to save in; CommandError if it is in use.  Elsewhere the engine looks."""
    if not arguments.out:
        raise CommandError("--out is empty; name a new folder for the model.")
    if arguments.engine is not None:
        return str(arguments.out)
    folder = Path(arguments.out).expanduser().absolute()
    try:
        if folder.exists() and not (folder.is_dir() and not os.listdir(folder)):
            kind = "is not empty" if folder.is_dir() else "is a file"
            raise CommandError(f"{arguments.out} {kind}; name a new folder for the model.")
        there = next(place for place in (folder, *folder.parents) if place.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            raise CommandError(f"{arguments.out} can't be made in {there}; name another folder.")
    except (OSError, ValueError) as error:
        raise CommandError(f"{arguments.out} can't be used: {disk.why(error)}.") from error
    return str(folder)


def _document(settings: TrainingSettings, told: _Told, folder: str) -> dict[str, Any]:
    last = told.steps[-1]
    names = ("step", "loss", "gradient_norm", "held_out_loss", "copy_accuracy")
    places = told.positions
    return {
        **{name: getattr(settings, name) for name in settings.__struct_fields__},
        "parameters": told.news.parameters,
        "lowest_loss": told.news.lowest_loss,
        "steps_made": last.step,
        "steps": [{name: getattr(step, name) for name in names} for step in told.steps],
        "final_loss": last.loss,
        "held_out_loss": last.held_out_loss,
        "copy_accuracy": last.copy_accuracy,
        "accuracy_by_position": None
        if places is None
        else {"own": places.own, "teacher_forced": places.forced},
        "seconds": last.seconds,
        "folder": folder or None,
    }


def _print(document: dict[str, Any]) -> None:
    measured = [step for step in document["steps"] if step["copy_accuracy"] is not None]
    every = -(-len(measured) // _LINES)
    shown = measured[:-1:every] + measured[-1:]
    rows = [
        (
            f"{step['step']:,}",
            f"{step['loss']:.3f}",
            f"{step['held_out_loss']:.3f}",
            percent(step["copy_accuracy"]),
        )
        for step in shown
    ]
    print_table(("update", "loss (nats)", "held-out loss", "generated right"), rows)
    lowest = document["lowest_loss"]
    print(
        f"\n{document['parameters']:,} parameters, {document['seconds']:.0f} s, final loss "
        f"{document['final_loss']:.3f} nats, {percent(document['copy_accuracy'])} of held-out "
        "tokens generated right"
    )
    if lowest:
        print(f"No model that sees only earlier tokens can reach a loss below {lowest:.2f} nats.")
    if document["folder"]:
        print(f"Saved in {document['folder']}")


def _kept_after_all(told: _Told, folder: str) -> str:
    """What holds after Ctrl-C."""
    if not told.steps:
        return "Interrupted before the first update; nothing was saved."
    done = f"Interrupted after {told.steps[-1].step:,} updates."
    if folder:
        return f"{done} The model as it was then is saved in {folder}."
    if told.news.name:
        return f"{done} The window's Training panel can go on from there."
    return f"{done} Nothing was saved."
