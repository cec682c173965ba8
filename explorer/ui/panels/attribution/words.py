"""Parts of a logit in words."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from explorer.figures.inside.attribution import Column, ranked
from explorer.figures.text.tokens import in_quotes, written
from explorer.trace.inside.attribution import Attribution, LogitPart, Target
from explorer.trace.step import Token
from explorer.wording import signed

translate = QCoreApplication.translate
_LISTED = 3


def number(value: float) -> str:
    """A part of a logit, its sign always told."""
    return signed(value, ".3g")


def kind_words(kind: str) -> str:
    """A kind of part."""
    return {
        "embedding": translate("Attribution", "embedding"),
        "attention": translate("Attribution", "attention"),
        "mixer": translate("Attribution", "mixer"),
        "mlp": translate("Attribution", "MLP"),
        "bias": translate("Attribution", "bias"),
        "rounding": translate("Attribution", "rounding"),
    }.get(kind, translate("Attribution", "other"))


def column_words(column: Column) -> str:
    """A column of the map: a head by its number, or what else a layer adds."""
    kind, head = column
    return kind_words(kind) if head is None else translate("Attribution", "H{0}").format(head)


def part_words(kind: str, layer: int | None, head: int | None) -> str:
    """A part by its place in the model: "L23 H4", "L29 MLP", "embedding"."""
    if layer is None:
        return kind_words(kind)
    return translate("Attribution", "L{0} {1}").format(layer, column_words((kind, head)))


def added(name: str, value: float) -> str:
    """What a part adds, as a sentence without its full stop."""
    return translate("Attribution", "{0} adds {1} to the logit").format(name, number(value))


def of(part: LogitPart) -> str:
    """A part and what it adds."""
    return f"{part_words(part.kind, part.layer, part.head)} {number(part.value)}"


def token_words(target: Target) -> str:
    """A token in quotes."""
    return in_quotes(written(Token(target.id, target.raw, "generated")))


def what(found: Attribution) -> str:
    """What is taken apart, with its value."""
    token = token_words(found.target)
    if found.against is None:
        return translate("Attribution", "Logit of {0}: {1}").format(
            token, f"{found.target.logit:z.4g}"
        )
    return translate("Attribution", "Logit of {0} minus that of {1}: {2}").format(
        token, token_words(found.against), number(found.wanted)
    )


def headline(found: Attribution) -> str:
    """What is taken apart, and the parts that matter most."""
    most = ", ".join(of(part) for part in ranked(found)[:_LISTED])
    return translate("Attribution", "{0}. Most: {1}").format(what(found), most)


def sum_words(found: Attribution) -> str:
    """The sum, how far it is from the logit, and what was held."""
    return translate(
        "Attribution",
        "The {0} parts add up to {1}; the gap to the logit is {2}. The final norm's scale is held "
        "at its actual value.",
    ).format(f"{len(found.parts):,}", f"{found.sum:z.5g}", f"{found.gap:z.2g}")
