"""A training run: one update at a time, measured, repeatable, and saved as a model folder.

What makes the copy task quick, on one core: first weights of the right spread
(`builds._first_weights`) and rows that repeat their stretch (`tasks.Copy`).  With the preset the
modern build copies 95 % of held-out tokens after 600 to 650 updates and 97 to 99 % after 1,000,
with seeds 0, 1 and 2.
"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from explorer.engine.callbacks import Stop, never
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.training import builds, model_folder
from explorer.engine.training.tasks import PAD_ID, Rows, task_of
from explorer.reference.readout import next_token_loss
from explorer.trace.training.settings import TrainingSettings
from explorer.trace.training.trained_step import TrainedStep

BATCH = 48  # rows
WARM_UP = 50  # updates until the rate is at its height
LOWEST_SHARE = 0.05  # of the rate, at the end
LONGEST_GRADIENT = 1.0  # longer ones are shortened to this
EVALUATE_EVERY = 25
_HELD_OUT_ROWS = 256
_PROMPTS = 64  # of each held-out length
_ENTRIES = ("exp_avg", "exp_avg_sq", "step")  # that AdamW keeps of each weight


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
        self._task = task_of(settings.task)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            self.model = builds.new_model(settings)
        self.parameters = builds.parameters(self.model)
        self.prompt = tuple(self._task.shown)  # token ids (T,) that `maps` are of
        self.labels = tuple(bytes([i]).decode("latin-1") for i in self.prompt)  # as text
        # Nothing causal gets below in nats; None: not known, as where easy padding counts, too.
        self.lowest_loss = None if "padding" in settings.wrong else self._task.lowest_loss
        self._rng = np.random.default_rng(settings.seed)
        self._weights = [(n, p) for n, p in self.model.named_parameters() if p.requires_grad]
        trained = [weight for _, weight in self._weights]
        self._optimizer = torch.optim.AdamW(trained, betas=(0.9, 0.98), weight_decay=0.01)
        held_out = np.random.default_rng([settings.seed, 1])
        self.held_out = self._task.rows(held_out, _HELD_OUT_ROWS, held_out=True)
        self.prompts = self._task.prompts(held_out, _PROMPTS)
        self._seconds = 0.0

    def advance(self, stop: Stop = never) -> TrainedStep:
        """Make one update.

        At every `EVALUATE_EVERY`th update, the first and the last one the held-out figures are
        measured, too.  Cancelled if `stop` turned true, BadInput if the loss is no longer a number;
        the update then was not made.
        """
        if stop():
            raise Cancelled
        began = time.perf_counter()
        rows = self._task.rows(self._rng, BATCH)
        loss = self._loss(rows)
        self._optimizer.zero_grad()
        loss.backward()
        norm = clip_grad_norm_([weight for _, weight in self._weights], LONGEST_GRADIENT)
        if not math.isfinite(loss.item()) or not math.isfinite(norm.item()):
            raise BadInput(
                f"After {self.step:,} updates the loss is no longer a number: the learning rate is "
                "too high. Go back to an earlier point, or train again with a lower rate."
            )
        for group in self._optimizer.param_groups:
            group["lr"] = self.rate * self.share_of_rate
        self._optimizer.step()
        self.step += 1
        spent = time.perf_counter() - began
        held_out_loss, accuracy = None, None
        if self.step % EVALUATE_EVERY == 0 or self.step in (1, self.settings.steps):
            held_out_loss, accuracy = self.held_out_loss(), self.accuracy()
        self._seconds += time.perf_counter() - began
        return TrainedStep(
            step=self.step,
            loss=loss.item(),
            gradient_norm=norm.item(),
            tokens_per_second=int((rows.ids != PAD_ID).sum()) / spent,
            seconds=self._seconds,
            held_out_loss=held_out_loss,
            copy_accuracy=accuracy,
        )

    @property
    def share_of_rate(self) -> float:
        """Of the highest rate: up in `WARM_UP` updates, level, from half of the run on down."""
        done = self.step / self.settings.steps
        start = 1.0 if "warm-up" in self.settings.wrong else (self.step + 1) / WARM_UP
        return min(1.0, start, max(LOWEST_SHARE, 2 * (1 - done)))

    def _loss(self, rows: Rows) -> Tensor:
        """The loss that is trained on, with the mistakes that are asked for."""
        wrong = self.settings.wrong
        ids, labels = torch.from_numpy(rows.ids), torch.from_numpy(rows.labels)
        if "padding" in wrong:
            labels = torch.where(ids == PAD_ID, PAD_ID, labels)
        logits = self.model(ids, mask=builds.training_mask(ids, wrong))
        return next_token_loss(logits, labels, shift="shift" not in wrong)

    def maps(self) -> np.ndarray:
        """(L, H, T, T) float32: attention weights on the fixed prompt, query before key.

        They are those of a training pass, under the mask that the model is trained with; rows sum
        to 1.
        """
        ids = torch.tensor([self.prompt])
        mask = builds.training_mask(ids, self.settings.wrong)
        return builds.attention_maps(self.model, ids, mask).numpy()

    def accuracy(self) -> float:
        """Share of tokens that greedy generation gets right, on held-out lengths; 0 to 1.

        The model reads its own tokens, one after the other, under the causal mask, whatever it was
        trained with.  On a text file: share of next bytes of the held-out part.
        """
        right = [self.generated(i) == prompts.answers for i, prompts in enumerate(self.prompts)]
        return float(np.concatenate([one.ravel() for one in right]).mean())

    def accuracy_by_position(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """(own, forced): share of tokens right at each place of the longest held-out answers.

        `own`: the model reads what it wrote before; `forced`: it reads the right tokens, as in
        training.  What the first loses against the second is called exposure bias.
        """
        prompts = self.prompts[-1]
        own = self.generated(len(self.prompts) - 1) == prompts.answers
        ids = torch.from_numpy(np.concatenate([prompts.ids, prompts.answers], axis=1))
        with torch.inference_mode():
            guessed = self.model(ids)[:, prompts.ids.shape[1] - 1 : -1].argmax(-1).numpy()
        forced = guessed == prompts.answers
        return tuple(own.mean(0).tolist()), tuple(forced.mean(0).tolist())

    def generated(self, index: int) -> np.ndarray:
        """(B, n) the tokens that follow `prompts[index]`, each read once it is chosen."""
        prompts = self.prompts[index]
        count = prompts.answers.shape[1]
        return builds.generate(self.model, torch.from_numpy(prompts.ids), count).numpy()

    def held_out_loss(self) -> float:
        """Loss on rows that training never saw, computed as the training loss is (nats)."""
        with torch.inference_mode():
            return float(self._loss(self.held_out))

    def state(self) -> bytes:
        """All that the next update depends on: weights, optimiser, generator, step and rate.

        A safetensors file in memory: about 12 bytes a parameter.
        """
        tensors = {f"weight.{name}": weight.detach() for name, weight in self._weights}
        for name, weight in self._weights:
            for entry, value in self._optimizer.state.get(weight, {}).items():
                tensors[f"{entry}.{name}"] = value
        about = {
            "step": self.step,
            "rate": self.rate,
            "seconds": self._seconds,
            "generator": self._rng.bit_generator.state,
        }
        return safetensors.torch.save(tensors, {"training": json.dumps(about)})

    def restore(self, state: bytes) -> None:
        """Go back (or on) to a state: the next losses are those that followed it, bit for bit.

        BadInput if the state is damaged or of another model; the run then stays where it is.
        """
        try:
            tensors = safetensors.torch.load(state)
            about = _metadata(state)
            optimizer: dict[Any, Any] = {}
            for name, weight in self._weights:
                if tensors[f"weight.{name}"].shape != weight.shape:
                    raise ValueError(f"another shape: {name}")
                if about["step"]:
                    optimizer[weight] = {e: tensors[f"{e}.{name}"].clone() for e in _ENTRIES}
            rng = np.random.default_rng()
            rng.bit_generator.state = about["generator"]
            step, rate, seconds = int(about["step"]), float(about["rate"]), about["seconds"]
        except Exception as error:  # bytes from a disk may be anything
            raise BadInput(
                "This point of the training is damaged or of another model. Go on from another "
                "one.",
                f"{type(error).__name__}: {error}",
            ) from error
        with torch.no_grad():
            for name, weight in self._weights:
                weight.copy_(tensors[f"weight.{name}"])
        self._optimizer.state.clear()
        self._optimizer.state.update(optimizer)
        self._rng, self.step, self.rate, self._seconds = rng, step, rate, float(seconds)

    def save(self, folder: Path) -> None:
        """Write a model folder that transformers loads and the program opens.

        "modern" is written in Llama's layout, "encoder" and "primitives" in GPT-2's; the loaded
        model's logits are those of the build under the causal mask.  BadInput in one sentence if
        the folder has files in it, can't be written (disk full), or no layout of transformers is
        this model (no residual connections).
        """
        model_folder.write(self.model, self.settings, folder)


def _metadata(state: bytes) -> dict[str, Any]:
    """What `state` says of itself beside its tensors."""
    length = int.from_bytes(state[:8], "little")
    found = json.loads(json.loads(state[8 : 8 + length])["__metadata__"]["training"])
    if not isinstance(found, dict):
        raise ValueError("no training")
    return found
