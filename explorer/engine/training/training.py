"""A training run: one update at a time, measured, repeatable, and saved as a model folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from explorer.engine.callbacks import Stop, never
from explorer.trace.training.settings import TrainingSettings
from explorer.trace.training.trained_step import TrainedStep


class Training:
    """A run that stands between two updates.

    The caller decides how many updates to make and when to look: between two calls of `advance`
    everything else may be called, and nothing of it changes the run.  One thread at a time.
    """

    def __init__(self, settings: TrainingSettings) -> None:
        """A fresh model.  BadInput with one sentence if the settings can't be trained."""
        self.settings = settings
        self.rate = settings.rate  # the highest learning rate; may be changed at any time
        self.step = 0  # updates made
        self.parameters = 0
        self.prompt: tuple[int, ...] = ()  # token ids (T,) that `maps` are of
        self.labels: tuple[str, ...] = ()  # (T,) the same tokens as text
        self.lowest_loss: float | None = None  # no causal model gets below; None: not known

    def advance(self, stop: Stop = never) -> TrainedStep:
        """Make one update.

        At every `evaluate_every`th update, the first and the last one the held-out figures are
        measured, too.  Cancelled if `stop` turned true; the update then was not made.
        """
        raise NotImplementedError

    def maps(self) -> np.ndarray:
        """(L, H, T, T) float32: attention weights on the fixed prompt, query before key.

        They are those that the build computes with, rows sum to 1.
        """
        raise NotImplementedError

    def accuracy(self) -> float:
        """Share of tokens that greedy generation gets right, on held-out lengths; 0 to 1.

        The model reads its own tokens, one after the other, under the causal mask, whatever it was
        trained with.  On a text file: share of next bytes of the held-out part.
        """
        raise NotImplementedError

    def held_out_loss(self) -> float:
        """Loss on rows that training never saw, computed as the training loss is (nats)."""
        raise NotImplementedError

    def state(self) -> bytes:
        """All that the next update depends on: weights, optimiser, generators, step and rate.

        A safetensors file in memory: about 12 bytes a parameter.
        """
        raise NotImplementedError

    def restore(self, state: bytes) -> None:
        """Go back (or on) to a state: the next losses are those that followed it, bit for bit.

        BadInput if the state is damaged or of another model.
        """
        raise NotImplementedError

    def save(self, folder: Path) -> None:
        """Write a model folder that transformers loads and the program opens.

        "modern" is written in Llama's layout, "encoder" and "primitives" in GPT-2's; the loaded
        model's logits are those of the build.  BadInput in one sentence if the folder has files in
        it, can't be written (disk full), or no layout of transformers is this model (a build that
        was trained without residual connections or positions, or without a causal mask: the saved
        model is causal then, and the sentence of `cannot_save` says so).
        """
        raise NotImplementedError
