"""In place of a training: no model, and every figure follows from the settings and the step."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from explorer.engine.callbacks import Stop, never
from explorer.engine.errors import BadInput, Cancelled
from explorer.trace.training.settings import TrainingSettings
from explorer.trace.training.trained_step import TrainedStep

TOKENS = 8
PROMPT = (1, 2, 3, 4, 1, 2, 3, 4)


class StandIn:
    """The loss is a random walk of the seed; head 0 of each layer learns its part with the steps.

    `before`: called ahead of each update with the step, in the thread that trains.
    """

    before: Callable[[int], None] = staticmethod(lambda step: None)
    state_bytes = 0

    def __init__(self, settings: TrainingSettings) -> None:
        if settings.width % settings.heads:
            raise BadInput("The width must be a multiple of the heads.")
        self.settings, self.rate, self.step = settings, settings.rate, 0
        self.parameters = 12 * settings.layers * settings.width**2
        self.prompt, self.labels = PROMPT, tuple(map(str, PROMPT))
        self.lowest_loss: float | None = 0.5
        self._walk = 4.0

    def advance(self, stop: Stop = never) -> TrainedStep:
        type(self).before(self.step)
        if stop():
            raise Cancelled
        rng = np.random.default_rng([self.settings.seed, self.step])
        self._walk *= 1 - self.rate * rng.random()
        self.step += 1
        last = self.step % 10 == 0 or self.step in (1, self.settings.steps)
        return TrainedStep(
            step=self.step, loss=self._walk, gradient_norm=1.0, tokens_per_second=1000.0,
            seconds=0.1 * self.step, held_out_loss=self._walk + 0.1 if last else None,
            copy_accuracy=self.accuracy() if last else None,
        )  # fmt: skip

    def _learned(self) -> float:
        return min(self.step / self.settings.steps, 1.0)

    def maps(self) -> np.ndarray:
        even = np.tril(np.ones((TOKENS, TOKENS), np.float32))
        even /= even.sum(1, keepdims=True)
        maps = np.tile(even, (self.settings.layers, self.settings.heads, 1, 1))
        share = self._learned()
        before, copied = np.eye(TOKENS, k=-1, dtype=np.float32), even.copy()
        before[0, 0] = 1
        copied[4:] = np.eye(TOKENS, k=-3, dtype=np.float32)[4:]
        maps[0, 0] = (1 - share) * even + share * before
        maps[-1, 0] = (1 - share) * even + share * copied
        return maps

    def accuracy(self) -> float:
        return self._learned() ** 2

    def accuracy_by_position(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        own, forced = self._learned() ** 2, self._learned()
        return (own,) * 4, (forced,) * 4

    def held_out_loss(self) -> float:
        return self._walk + 0.1

    def state(self) -> bytes:
        found = json.dumps([self.step, self._walk, self.rate]).encode()
        return found.ljust(self.state_bytes)

    def restore(self, state: bytes) -> None:
        self.step, self._walk, self.rate = json.loads(state)

    def save(self, folder: Path) -> None:
        if folder.is_dir() and any(folder.iterdir()):
            raise BadInput(f"There are files in {folder} already. Choose an empty folder.")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.json").write_text(json.dumps([self.step, self._walk]))
