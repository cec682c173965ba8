"""What is learned: rows of token ids, the labels that count, and held-out prompts with answers.

Tokens are bytes, in every task, and one more for padding.  Rows of a generated task are made of
`SYMBOLS` and are never the same twice; lengths that divide by 4 are kept for generation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from explorer import disk
from explorer.engine.errors import BadInput
from explorer.reference.readout import IGNORED
from explorer.trace.training.settings import TASKS

PAD_ID = 256
VOCABULARY = 257
SYMBOLS = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-", np.uint8
).astype(np.int64)
TURN = ord("|")  # between a stretch and its reverse
LONGEST = 11  # tokens of a stretch
ROW = 32  # tokens of the longest row
HELD_OUT = tuple(n for n in range(2, LONGEST + 1) if n % 4 == 0)
TRAINED = tuple(n for n in range(3, LONGEST + 1) if n % 4)
LEAST_BYTES = 2_000
MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Rows:
    """A batch: token ids (B, T), and labels (B, T): each token's own id where it counts."""

    ids: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True, slots=True)
class Prompts:
    """Held-out prompts (B, T) of one length, and what is to follow them (B, n)."""

    ids: np.ndarray
    answers: np.ndarray


class Task(Protocol):
    """One thing to learn."""

    @property
    def lowest_loss(self) -> float | None:
        """Mean loss of a causal model that knows the task, in nats; None: not known."""

    @property
    def shown(self) -> bytes:
        """The fixed prompt that maps are of."""

    def rows(self, rng: np.random.Generator, count: int, held_out: bool = False) -> Rows:
        """`count` rows; of a text file from the part that is held out, if so asked."""

    def prompts(self, rng: np.random.Generator, count: int) -> tuple[Prompts, ...]:
        """`count` prompts of each held-out length."""


def task_of(name: str) -> Task:
    """The task of this name, or that of the text file at this path; BadInput if there is none."""
    generated: dict[str, type[Copy] | type[Previous] | type[Reverse]] = {
        "copy": Copy, "previous": Previous, "reverse": Reverse,
    }  # fmt: skip
    if name in generated:
        return generated[name]()
    return TextFile(name)


class Copy:
    """A stretch of different symbols, and the same again and again up to the row's end.

    By the repeats 72 % of the labels can be known.  With stretches of up to 15 that are said only
    twice, the modern build copies 16 % after 900 updates, with repeats 98 % after 850 (seed 0).
    """

    shown = b"machinesmachines"

    def __init__(self) -> None:
        self.lowest_loss = lowest_copy_loss()

    def rows(self, rng: np.random.Generator, count: int, held_out: bool = False) -> Rows:
        lengths = rng.choice(TRAINED, (count, 1))
        ends = rng.integers(2 * lengths, ROW + 1)
        slots = np.arange(ROW)
        ids = np.take_along_axis(_symbols(rng, count, LONGEST), slots % lengths, axis=1)
        return _padded(ids, slots < ends)

    def prompts(self, rng: np.random.Generator, count: int) -> tuple[Prompts, ...]:
        """A stretch and its first token again; the answer is the rest of it."""
        found = []
        for length in HELD_OUT:
            twice = np.tile(_symbols(rng, count, length), 2)
            found.append(Prompts(twice[:, : length + 1], twice[:, length + 1 :]))
        return tuple(found)


def lowest_copy_loss() -> float:
    """Mean loss of the best guesser that sees no later token, over the rows of `Copy`.

    At each place of the first stretch it can't know the next symbol, nor whether there is one; all
    after that it knows.  The first token has no prediction.
    """
    chances = {n: sum(m == n for m in TRAINED) / len(TRAINED) for n in range(1, LONGEST + 1)}
    nats = labels = 0.0
    for length in TRAINED:
        surprise = 0.0
        for read in range(1, length + 1):
            still = sum(p for n, p in chances.items() if n >= read)
            ends = chances[read] / still
            if read == length:
                surprise -= math.log(ends)
            else:
                surprise += math.log((len(SYMBOLS) - read) / (1 - ends))
        nats += chances[length] * surprise
        labels += chances[length] * ((2 * length + ROW) / 2 - 1)
    return nats / labels


class Previous:
    """Any symbols: after each, the one before it is to be named.

    The right answer to a b c is b: as a text it would go on b c b c …
    """

    shown = b"machines"
    lowest_loss = 0.0

    def rows(self, rng: np.random.Generator, count: int, held_out: bool = False) -> Rows:
        ids = _symbols(rng, count, ROW)
        rows = _padded(ids, np.arange(ROW) < rng.integers(8, ROW + 1, (count, 1)))
        labels = np.full_like(rows.ids, IGNORED)
        labels[:, 2:] = np.where(rows.ids[:, 1:-1] == PAD_ID, IGNORED, rows.ids[:, :-2])
        return Rows(rows.ids, np.where(rows.ids == PAD_ID, IGNORED, labels))

    def prompts(self, rng: np.random.Generator, count: int) -> tuple[Prompts, ...]:
        found = []
        for length in HELD_OUT:
            ids = _symbols(rng, count, length)
            found.append(Prompts(ids, np.tile(ids[:, -2:], 3)))
        return tuple(found)


class Reverse:
    """A stretch of different symbols, a bar, and the stretch backwards; only that counts."""

    shown = b"machine|enihcam"
    lowest_loss = 0.0

    def rows(self, rng: np.random.Generator, count: int, held_out: bool = False) -> Rows:
        lengths = rng.choice(TRAINED, (count, 1))
        slots = np.arange(2 * LONGEST + 1)
        ids = self._reversed(_symbols(rng, count, LONGEST), lengths)
        rows = _padded(ids, slots <= 2 * lengths)
        return Rows(rows.ids, np.where(slots <= lengths, IGNORED, rows.labels))

    def prompts(self, rng: np.random.Generator, count: int) -> tuple[Prompts, ...]:
        found = []
        for length in HELD_OUT:
            ids = self._reversed(_symbols(rng, count, length), np.full((count, 1), length))
            found.append(Prompts(ids[:, : length + 1], ids[:, length + 1 :]))
        return tuple(found)

    def _reversed(self, stretch: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        slots = np.arange(2 * stretch.shape[1] + 1)
        places = np.where(slots < lengths, slots, 2 * lengths - slots)
        ids = np.take_along_axis(stretch, places.clip(0, stretch.shape[1] - 1), axis=1)
        return np.where(slots == lengths, TURN, ids)


class TextFile:
    """The bytes of a file; its last tenth is held out."""

    lowest_loss = None

    def __init__(self, path: str) -> None:
        try:
            with disk.opened(Path(path).expanduser()) as stream:
                data = stream.read(MOST_BYTES + 1)
        except (OSError, ValueError) as error:
            raise BadInput(
                f"{path[:200]} is neither a task nor a readable text file ({disk.why(error)}). "
                f"Choose {', '.join(TASKS)} or a text file."
            ) from error
        if not LEAST_BYTES <= len(data) <= MOST_BYTES:
            size = "short" if len(data) < LEAST_BYTES else "long"
            raise BadInput(
                f"{path[:200]} is too {size} to train on: choose a text file of {LEAST_BYTES:,} "
                f"bytes to {MOST_BYTES >> 20} MiB."
            )
        text = np.frombuffer(data, np.uint8)
        self._trained, self._held_out = np.split(text, [len(text) - len(text) // 10])
        self.shown = self._held_out[:ROW].tobytes()

    def rows(self, rng: np.random.Generator, count: int, held_out: bool = False) -> Rows:
        text = self._held_out if held_out else self._trained
        starts = rng.integers(0, len(text) - ROW + 1, (count, 1))
        ids = text[starts + np.arange(ROW)].astype(np.int64)
        return Rows(ids, ids)

    def prompts(self, rng: np.random.Generator, count: int) -> tuple[Prompts, ...]:
        ids = self.rows(rng, count, held_out=True).ids
        return (Prompts(ids[:, : ROW // 2], ids[:, ROW // 2 :]),)


def _symbols(rng: np.random.Generator, rows: int, length: int) -> np.ndarray:
    """(rows, length) symbols, all different in a row."""
    order = rng.random((rows, len(SYMBOLS))).argsort(axis=1)
    return SYMBOLS[order[:, :length]]


def _padded(ids: np.ndarray, there: np.ndarray) -> Rows:
    """Padding, which has no label, where there is nothing."""
    return Rows(np.where(there, ids, PAD_ID), np.where(there, ids, IGNORED))
