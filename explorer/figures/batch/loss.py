"""Teacher-forced loss of a padded batch: token by token, and its mean with and without mistakes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explorer.figures.batch.padding import PAD
from explorer.figures.batch.token_grid import Cell, GridBlock, GridLine, Mood
from explorer.figures.text.characters import elide
from explorer.figures.text.tokens import written
from explorer.trace.batch import BatchResult, BatchRow, Scored
from explorer.wording import exact_percent

_LONGEST = 14
NATS_PER_BIT = math.log(2)

TITLES = {"pads": "Count padding in the loss", "shift": "Do not shift the labels"}
BREAKS = {
    "pads": "The average then includes predictions of padding and from padding. They say nothing "
    "about the text.",
    "shift": "Each token is then scored at its own position, where the model has just read it. "
    "A model trained this way learns to copy its input.",
}


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of `targets` surprisals."""

    nats: float
    targets: int

    @property
    def bits(self) -> float:
        return self.nats / NATS_PER_BIT


def mean(result: BatchResult, *, pads: bool = False, shifted: bool = True) -> Mean:
    """Over every target that counts; NaN where there is none."""
    values = [
        value
        for row in result.rows
        for slot, value in enumerate(_nats(row, shifted))
        if pads or _counts(row, slot, shifted)
    ]
    return Mean(sum(values) / len(values) if values else math.nan, len(values))


def mean_alone(result: BatchResult) -> Mean:
    """The same over the rows run alone: what the padded batch must give."""
    values = [value for row in result.rows for value in row.alone_nats]
    return Mean(sum(values) / len(values) if values else math.nan, len(values))


def _nats(row: BatchRow, shifted: bool) -> Iterator[float]:
    return iter([one.nats for one in row.scored] if shifted else row.unshifted_nats)


def _counts(row: BatchRow, slot: int, shifted: bool) -> bool:
    """A real token predicted from a real token; unshifted, any real token."""
    return bool(row.real[slot] and (not shifted or row.real[slot + 1]))


@dataclass(frozen=True, slots=True)
class RowLoss:
    """One prompt's surprisals, each at the slot of its target."""

    slots: tuple[int, ...]
    nats: tuple[float, ...]


def by_position(
    result: BatchResult, *, pads: bool = False, shifted: bool = True
) -> tuple[RowLoss, ...]:
    """One a row: the targets that count, by where they stand in the padded batch."""
    return tuple(_row_loss(row, pads, shifted) for row in result.rows)


def _row_loss(row: BatchRow, pads: bool, shifted: bool) -> RowLoss:
    pairs = [
        (slot + shifted, value)
        for slot, value in enumerate(_nats(row, shifted))
        if pads or _counts(row, slot, shifted)
    ]
    return RowLoss(tuple(slot for slot, _ in pairs), tuple(value for _, value in pairs))


def mean_by_position(rows: Sequence[RowLoss]) -> RowLoss:
    """The mean over the rows that have a target at a slot, slot by slot."""
    found: dict[int, list[float]] = {}
    for row in rows:
        for slot, value in zip(row.slots, row.nats, strict=True):
            found.setdefault(slot, []).append(value)
    slots = tuple(sorted(found))
    return RowLoss(slots, tuple(sum(found[slot]) / len(found[slot]) for slot in slots))


def summary(result: BatchResult) -> str:
    """The right loss, and that it equals the rows alone."""
    right, alone = mean(result), mean_alone(result)
    if not right.targets:
        return "There is no loss: every prompt is a single token, so there is nothing to predict."
    gap = abs(right.nats - alone.nats)
    words = (
        f"Loss: {right.nats:.4f} nats ({right.bits:.4f} bits), averaged over {right.targets} real "
        f"targets. The prompts run alone give {alone.nats:.4f}"
    )
    return f"{words} (difference {gap:.2g})." if gap else f"{words} as well."


def effect_words(result: BatchResult, mistake: str) -> str:
    """What one mistake does to the mean."""
    right = mean(result)
    wrong = mean(result, pads=mistake == "pads", shifted=mistake != "shift")
    if not right.targets or math.isnan(wrong.nats):
        return "Not measured: there is nothing to compare."
    if mistake == "pads" and wrong.targets == right.targets:
        return "Measured: no change, because there is no padding."
    return (
        f"Measured: {wrong.nats:.3f} nats over {wrong.targets} targets instead of "
        f"{right.nats:.3f} over {right.targets}."
    )


def blocks(
    result: BatchResult, vocabulary: int, *, pads: bool = False, shifted: bool = True
) -> tuple[GridBlock, ...]:
    """One a row: inputs over targets, and how surprised the model is.

    Colours go from 0 to ln V, the surprisal of a blind guess among V tokens.
    """
    blind = math.log(max(vocabulary, 2))
    return tuple(
        _block(number, row, blind, pads, shifted) for number, row in enumerate(result.rows, 1)
    )


def _block(number: int, row: BatchRow, blind: float, pads: bool, shifted: bool) -> GridBlock:
    slots = range(len(row.tokens) - shifted)
    values = list(_nats(row, shifted))
    counted = {slot for slot in slots if pads or _counts(row, slot, shifted)}
    here = [values[slot] for slot in counted]
    words = "no target counts"
    if here:
        many = "1 target" if len(here) == 1 else f"{len(here)} targets"
        words = f"mean {sum(here) / len(here):.3f} nats over {many}"
    scores = [
        _score(row, slot, values[slot], blind, shifted) if slot in counted else (None, None)
        for slot in slots
    ]
    ranks = (_rank(row, slot) if slot in counted else None for slot in slots)
    lines = (
        GridLine("input", tuple(_token(row, slot) for slot in slots)),
        GridLine(
            "target",
            tuple(_token(row, slot + shifted) for slot in slots),
            "The token that follows the input above it",
        ),
        GridLine("nats", tuple(nats for nats, _ in scores), "surprisal, -ln p"),
        GridLine("bits", tuple(bits for _, bits in scores), "surprisal, -log2 p"),
        GridLine("rank", tuple(ranks), "1: the most likely token") if shifted else None,
    )
    return GridBlock(
        title=f"Prompt {number}: {words}",
        mood="bad" if pads or not shifted else "plain",
        lines=tuple(line for line in lines if line is not None),
    )


def _token(row: BatchRow, slot: int) -> Cell:
    token = row.tokens[slot]
    what = "" if row.real[slot] else ", padding"
    tip = f"position {slot}: {written(token)}, id {token.id}{what}"
    text = elide(written(token), _LONGEST) if row.real[slot] else PAD
    return Cell(text, tip, token)


def _score(row: BatchRow, slot: int, nats: float, blind: float, shifted: bool) -> tuple[Cell, Cell]:
    """Nats, coloured, and bits of one target that counts."""
    real = _counts(row, slot, shifted)
    tip = _tip(row.scored[slot], row) if shifted else f"{nats:.4f} nats for the token just read"
    if not real:
        tip += "\npadding, counted here by mistake"
    mood: Mood = "plain" if real and shifted else "bad"
    level = min(1.0, max(0.0, nats / blind)) if math.isfinite(nats) else None
    return (
        Cell(f"{nats:.2f}", tip, mood=mood, level=level, framed=mood == "bad"),
        Cell(f"{nats / NATS_PER_BIT:.2f}", tip, mood=mood),
    )


def _tip(scored: Scored, row: BatchRow) -> str:
    target = row.tokens[scored.slot + 1]
    lines = [
        f"{written(target)} after {written(row.tokens[scored.slot])}: {scored.nats:.4f} nats, "
        f"{scored.nats / NATS_PER_BIT:.4f} bits, {exact_percent(math.exp(-scored.nats))}, "
        f"rank {scored.rank + 1:,}"
        if math.isfinite(scored.nats)
        else f"{written(target)}: the model gave NaN or infinity here"
    ]
    if scored.top:
        lines.append("Most likely tokens:")
        lines += [f"{written(one.token)}  {exact_percent(one.probability)}" for one in scored.top]
    return "\n".join(lines)


def _rank(row: BatchRow, slot: int) -> Cell:
    return Cell(f"{row.scored[slot].rank + 1:,}", _tip(row.scored[slot], row), mood="muted")


def table(result: BatchResult) -> Iterator[tuple[object, ...]]:
    """Every real prediction as plain values, a header first."""
    yield "prompt", "slot", "input", "target", "nats", "bits", "rank", "nats_alone"
    for number, row in enumerate(result.rows, 1):
        alone = iter(row.alone_nats)
        for one in row.scored:
            if _counts(row, one.slot, True):
                given, target = map(written, row.tokens[one.slot : one.slot + 2])
                bits = one.nats / NATS_PER_BIT
                yield (
                    *(number, one.slot, given, target, one.nats, bits, one.rank + 1),
                    next(alone, ""),
                )
