"""Rows, cells and colours of the lens in words."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from explorer.figures.inside.lens import By, LensColumn, LensColumns, nats, settled_from
from explorer.figures.text.tokens import Label, in_quotes, written
from explorer.wording import exact_percent, information

translate = QCoreApplication.translate
BY: tuple[By, ...] = ("probability", "rank", "entropy", "kl")


def by_words(by: By) -> str:
    """What the cells are coloured by."""
    return {
        "probability": translate("Lens", "probability"),
        "rank": translate("Lens", "rank of final choice"),
        "entropy": translate("Lens", "entropy"),
        "kl": translate("Lens", "KL to final row"),
    }[by]


def ends(by: By, vocabulary: int) -> tuple[str, str]:
    """What the darkest and the brightest colour stand for."""
    if by == "probability":
        return "0 %", "100 %"
    if by == "rank":
        return f"{vocabulary:,}", "1"
    most = information(nats(max(vocabulary, 2).bit_length() - 1), ".0f")
    return "0", most


def row_words(name: str) -> str:
    """A row by its name, for a sentence."""
    if name == "embedding":
        return translate("Lens", "Embedding")
    if name == "final":
        return translate("Lens", "Final row")
    return translate("Lens", "After layer {0}").format(name)


def note(gap: float) -> str:
    """What a row is worth, and how near the replayed last one came to the model's own logits."""
    said = translate(
        "Lens",
        "An early layer's row is a reading, not a belief. The last row is the model's real "
        "prediction; cells that agree with it are underlined.",
    )
    if gap == 0:
        return said
    return translate(
        "Lens", "{0} Replayed, the last layer's logits differ from the model's own by {1}."
    ).format(said, f"{gap:.1g}")


def cell_words(
    known: LensColumns, column: LensColumn | None, row: int, slot: int, label: Label
) -> str:
    """One cell: its place, its most probable tokens, and how far it is from the final choice."""
    place = translate("Lens", "{0}, position {1} {2}").format(
        row_words(known.rows[row]), slot, label.quoted
    )
    if column is None:
        return translate("Lens", "{0}: not read yet").format(place)
    top = ", ".join(f"{written(t)} {exact_percent(p)}" for t, p in known.top(column, row))
    final = translate("Lens", "final choice {0}: rank {1}, {2}").format(
        written(known.token(column.final_id)),
        f"{int(column.final_rank[row]) + 1:,}",
        exact_percent(float(column.final_share[row])),
    )
    spread = translate("Lens", "entropy {0}, KL {1}").format(
        information(nats(float(column.entropy_bits[row]))),
        information(nats(float(column.kl_bits[row]))),
    )
    return f"{place}: {top}; {final}; {spread}"


def token_words(known: LensColumns, column: LensColumn, slot: int, label: Label) -> str:
    """What the model says at a position, and from which layer on."""
    start = settled_from(column)
    final = in_quotes(written(known.token(column.final_id)))
    share = exact_percent(float(column.final_share[-1]))
    if start >= len(known.rows) - 1:
        return translate(
            "Lens", "Position {0} {1}: {2} {3}. Only the final row puts it first."
        ).format(slot, label.quoted, final, share)
    if start == 0:
        return translate("Lens", "Position {0} {1}: {2} {3}. Every row puts it first.").format(
            slot, label.quoted, final, share
        )
    return translate("Lens", "Position {0} {1}: {2} {3}. It stays first from layer {4} on.").format(
        slot, label.quoted, final, share, known.rows[start]
    )
