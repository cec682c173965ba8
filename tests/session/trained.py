"""What an engine tells of a training: figures and maps of the stand-in of the engine tests."""

from __future__ import annotations

from typing import Any

import msgspec

from explorer.trace.training.job import Train, TrainingNews, TrainingPoint
from explorer.trace.training.settings import TrainingSettings
from explorer.trace.training.trained_step import TrainedStep
from explorer.trace.wire import messages as m
from tests.engine.training.stand_in import StandIn
from tests.session.scripted import ScriptedEngine

SETTINGS = TrainingSettings(steps=40, rate=0.1, width=16, heads=2)


class ToldTraining:
    """A training that is told of when the test says so."""

    def __init__(self, engine: ScriptedEngine, name: str = "one") -> None:
        self.engine, self.name = engine, name
        self.asked = engine.last(Train)
        self.training = StandIn(self.asked.settings)
        self.kept: tuple[int, ...] = ()

    def news(self, steps: int = 0, **more: Any) -> m.PartFacts:
        """So many updates, and the point after them."""
        done: list[TrainedStep] = [self.training.advance() for _ in range(steps)]
        step = self.training.step
        self.kept = tuple(one for one in (*self.kept, step))
        fields: dict[str, Any] = {
            "name": self.name, "phase": "training", "settings": self.asked.settings,
            "rate": self.training.rate, "parameters": self.training.parameters,
            "labels": self.training.labels, "ids": self.training.prompt, "kept": self.kept,
            "steps": tuple(done), "points": (TrainingPoint.of(step, self.training.maps()),),
            "lowest_loss": 0.5,
        }  # fmt: skip
        found = TrainingNews(**{**fields, **more})
        return m.PartFacts(run=self.asked.run, facts=msgspec.structs.asdict(found))

    def tell(self, steps: int = 0, **more: Any) -> None:
        self.engine.say(self.news(steps, **more))
