"""Numbers of a stage, pairs, scores and experts in words, and how far a stage was checked."""

from __future__ import annotations

from math import degrees

from PySide6.QtCore import QCoreApplication

from explorer.figures.inside.block import Experts, ScoreTerms, StageGrid, TurnedPair, form_of
from explorer.trace.inside.walk import LayerStage, LayerWalk
from explorer.ui.panels.block.stage_words import stage_words
from explorer.wording import exact_percent

translate = QCoreApplication.translate


def number(value: float) -> str:
    """One entry, short enough for its cell."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e4 or size < 1e-3:
        return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{value:.{3 if size < 1 else 2 if size < 10 else 1 if size < 100 else 0}f}"


def shape(stage: LayerStage) -> str:
    """Its size: "9 × 64"."""
    return " × ".join(f"{size:,}" for size in stage.shape)


def checked(stage: LayerStage) -> str:
    """How far its formula was seen to hold."""
    if stage.gap is not None:
        off = f"{stage.gap:z.1g}" if stage.gap else "0"
        return translate("Block", "Recomputed from the stage before: off by {0}.").format(off)
    if stage.formula.startswith("inside "):
        return translate("Block", "Hidden inside a fused module: only its output is known.")
    if stage.first_key is not None:
        return translate("Block", "Made from Q and K.")
    return translate("Block", "As measured.")


def told(stage: LayerStage) -> str:
    """A stage for tips and screen readers."""
    words = stage_words(stage)
    return translate("Block", "{0}: {1}. Shape {2}, norm {3}. {4} {5}").format(
        words.title, stage.formula, shape(stage), f"{stage.norm:z.4g}", checked(stage), words.does
    )


def headline(walk: LayerWalk, token: str) -> str:
    """What is walked through."""
    kinds = {
        "attention": translate("Block", "attention"),
        "mixer": translate("Block", "recurrent or convolutional"),
        "mlp": translate("Block", "MLP"),
    }
    return translate("Block", "Layer {0} ({1}), position {2} {3}: {4} stages").format(
        walk.layer, kinds.get(walk.kind, walk.kind), walk.slot, token, len(walk.stages)
    )


def added(walk: LayerWalk) -> str:
    """What the layer added to the stream, and how exactly that adds up."""
    if walk.residual_gap is None:
        return walk.residual_reason
    parts = ", ".join(
        translate("Block", "{0} (norm {1})").format(one.name.rpartition(".")[2], f"{one.norm:z.3g}")
        for one in walk.writes
    )
    off = f"{walk.residual_gap:z.1g}" if walk.residual_gap else "0"
    return translate("Block", "Residual gap {0}. Added to the stream: {1}.").format(off, parts)


def cell(stage: LayerStage, grid: StageGrid, row: int, column: int, key: str) -> str:
    """One number of a stage with its place; `key` words the token of its column."""
    value = float(grid.numbers[row, column])
    told = translate("Block", "hidden") if value == float("-inf") else f"{value:z.6g}"
    if grid.form == "keys":
        if stage.name == "softmax":
            told = exact_percent(value)
        return translate("Block", "Head {0}, key {1}: {2}").format(row, key, told)
    if grid.form == "vector":
        return translate("Block", "Number {0}: {1}").format(
            row * grid.numbers.shape[1] + column, told
        )
    if grid.form == "heads":
        return translate("Block", "Head {0}, number {1}: {2}").format(row, column, told)
    if grid.head is None:
        return translate("Block", "Row {0}, column {1}: {2}").format(row, column, told)
    return translate("Block", "Head {0}, row {1}, column {2}: {3}").format(
        grid.head, row, column, told
    )


def grid_words(stage: LayerStage, grid: StageGrid) -> str:
    """What the rows and columns of its board are."""
    if grid.form == "keys":
        return translate("Block", "Rows are heads, columns are keys.")
    if grid.form == "heads":
        return translate("Block", "Rows are heads.")
    if grid.form == "vector":
        return translate("Block", "Read it row by row.")
    if grid.head is not None:
        return translate("Block", "The matrix of head {0}.").format(grid.head)
    return ""


def pair(one: TurnedPair, number: int, position: int) -> str:
    """One pair that RoPE turned."""
    by = f"{degrees(one.angle):z.4g}°"
    if one.frequency is not None:
        by = translate("Block", "position {0} × {1}° = {2}°").format(
            position, f"{degrees(one.frequency):z.4g}", f"{degrees(one.frequency) * position:z.5g}"
        )
    (x, y), (u, v) = one.before, one.after
    return translate(
        "Block", "Pair {0} (numbers {1} and {2}) turned by {3}: ({4}, {5}) → ({6}, {7})"
    ).format(number, *one.places, by, *(f"{value:z.4g}" for value in (x, y, u, v)))


def score(terms: ScoreTerms, key: str, measured: float | None) -> str:
    """One score from its products to the map."""
    told = translate("Block", "Head {0}, key {1}: Σ q·k {2} × {3} = {4}").format(
        terms.head, key, f"{terms.total:z.5g}", f"{terms.scaling:z.5g}", f"{terms.score:z.5g}"
    )
    if measured is not None:
        off = abs(terms.score - measured) / max(abs(measured), 1e-9)
        told = translate("Block", "{0} (off by {1})").format(told, f"{off:z.1g}" if off else "0")
    if terms.added:
        told = translate("Block", "{0}; {1} is added for the distance").format(
            told, f"{terms.added:z.5g}"
        )
    if terms.hidden:
        return translate("Block", "{0}. The mask hides it.").format(told)
    return translate("Block", "{0}. Weight {1}.").format(told, exact_percent(terms.weight))


def chosen_experts(found: Experts) -> str:
    """Which experts the token went to, and what was counted."""
    if not found.ids:
        return translate("Block", "The experts of this token could not be read.")
    parts = ", ".join(
        f"{number} ({weight:z.3g})" for number, weight in zip(found.ids, found.weights, strict=True)
    )
    return translate(
        "Block", "Experts of this token, with weights: {0}. Load: {1} tokens up to it."
    ).format(parts, f"{found.tokens:,}")


def corner(stage: LayerStage) -> str:
    """What the columns of its board are, where they have names."""
    return translate("Block", "keys →") if form_of(stage) == "keys" else ""
