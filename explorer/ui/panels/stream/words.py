"""Parts and figures of the residual stream in words."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QCoreApplication

from explorer.figures.inside.stream import STREAM, Measure, Part, StreamColumn, StreamColumns
from explorer.figures.text.tokens import Label
from explorer.wording import signed

translate = QCoreApplication.translate
MEASURES: tuple[Measure, ...] = ("norm", "cosine")


def measure_words(measure: Measure) -> str:
    """What the cells show."""
    return {
        "norm": translate("Stream", "norm"),
        "cosine": translate("Stream", "cosine"),
    }[measure]


def part_words(part: Part) -> str:
    """The stream, or what writes to it."""
    if part == STREAM:
        return translate("Stream", "stream")
    kind, place = part
    words = {
        "attention": translate("Stream", "attention"),
        "mixer": translate("Stream", "mixer"),
        "mlp": translate("Stream", "MLP"),
    }.get(kind, translate("Stream", "other"))
    return words if place == 0 else f"{words} {place + 1}"


def number(value: float, measure: Measure) -> str:
    """A figure as it stands in a cell."""
    if measure == "cosine":
        return signed(value, ".2f")
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def row_words(name: str) -> str:
    """A row of the stream by its name, for a sentence."""
    if name == "embedding":
        return translate("Stream", "Embedding")
    if name == "final":
        return translate("Stream", "After the last layer")
    return translate("Stream", "After layer {0}").format(name)


def figures_words(column: StreamColumn, row: int) -> str:
    """Length and direction of the stream after a row."""
    return translate("Stream", "norm {0}, cosine with the end {1}").format(
        number(float(column.norms[row]), "norm"), number(float(column.cosines[row]), "cosine")
    )


def written_words(known: StreamColumns, column: StreamColumn, layer: int) -> str:
    """What each part of a layer adds: "attention 12.3 (cosine +0.10), MLP 40.1 (cosine +0.31)"."""
    found = []
    for part, places in known.parts.items():
        if layer in places:
            place = places[layer]
            found.append(
                translate("Stream", "{0} {1} (cosine {2})").format(
                    part_words(part),
                    number(float(column.write_norms[place]), "norm"),
                    number(float(column.write_cosines[place]), "cosine"),
                )
            )
    return ", ".join(found)


def layer_words(known: StreamColumns, column: StreamColumn, row: int) -> str:
    """The stream after a row, and what was added to it there."""
    said = f"{row_words(known.rows[row])}: {figures_words(column, row)}"
    if row == 0:
        return said
    added = written_words(known, column, row - 1)
    return translate("Stream", "{0}; layer {1} added {2}").format(said, row - 1, added)


def cell_words(
    known: StreamColumns, column: StreamColumn | None, row: int, slot: int, label: Label
) -> str:
    """One token after one row."""
    place = translate("Stream", "Position {0} {1}").format(slot, label.quoted)
    if column is None:
        return translate("Stream", "{0}: not read yet").format(place)
    return f"{place}. {layer_words(known, column, row)}"


def token_words(known: StreamColumns, column: StreamColumn, slot: int, label: Label) -> str:
    """From where to where the stream grows at a token, and the longest write."""
    longest = int(np.argmax(column.write_norms))
    write = known.writes[longest]
    part = next(part for part, places in known.parts.items() if longest in places.values())
    return translate(
        "Stream",
        "Position {0} {1}: norm {2} → {3}. Longest write: L{4} {5} {6}",
    ).format(
        slot, label.quoted, number(float(column.norms[0]), "norm"),
        number(float(column.norms[-1]), "norm"), write.layer, part_words(part),
        number(float(column.write_norms[longest]), "norm"),
    )  # fmt: skip


def proof(known: StreamColumns) -> str:
    """How well the writes make up what the layers changed."""
    return translate(
        "Stream",
        "In each layer the writes add up to the change of the stream; the largest gap is {0} of "
        "the largest entry. Cosine: with the last layer's output.",
    ).format(f"{known.gap:.1g}")
