"""Interventions in the window's words, as short as fits on a chip."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QCoreApplication

from explorer.figures.text.characters import elide
from explorer.figures.text.tokens import visible
from explorer.trace.interventions.kinds import (
    MOST,
    Cells,
    Intervention,
    Patch,
    Scale,
    Silence,
    Span,
)
from explorer.trace.vocabulary import Vocabulary

translate = QCoreApplication.translate
_LETTERS = 80  # of a text


def short(one: Intervention) -> str:
    """What one intervention does and where."""
    if isinstance(one, Silence):
        return {
            "head": translate("InterventionWords", "L{0} H{1} silenced"),
            "mlp": translate("InterventionWords", "MLP of layer {0} silenced"),
            "layer": translate("InterventionWords", "Layer {0} silenced"),
        }[one.part].format(one.layer, one.head)
    if isinstance(one, Patch):
        return _patched(one)
    where = _place(one)
    if isinstance(one, Scale):
        return translate("InterventionWords", "{0}: scores × {1}").format(where, f"{one.factor:g}")
    words = translate("InterventionWords", "{0}: {1} → {2} cut")
    if one.allowed:
        words = translate("InterventionWords", "{0}: {1} → {2} allowed")
    return words.format(where, _span(one.queries), _keys(one))


def _patched(one: Patch) -> str:
    named = {
        "head": translate("InterventionWords", "L{0} H{1} patched"),
        "mlp": translate("InterventionWords", "L{0} MLP patched"),
        "stream": translate("InterventionWords", "L{0} stream patched"),
    }[one.part].format(one.layer, one.head)
    if one.positions is None:
        return named
    at = translate("InterventionWords", "{0} at {1}").format(named, _span(one.positions))
    if one.taken == one.positions:
        return at
    return translate("InterventionWords", "{0} from {1}").format(at, _span(one.taken))


def source_words(one: Intervention, vocabulary: Vocabulary | None) -> str:
    """The text that a patch is taken from; empty for anything else, and where it is not known."""
    if not isinstance(one, Patch) or vocabulary is None:
        return ""
    known = [i for i in one.source.tokens if i < len(vocabulary)]
    text = elide(visible(b"".join(vocabulary.raw(i) for i in known)), _LETTERS)
    return translate("InterventionWords", "From the run of “{0}”").format(text)


def listed(some: Iterable[Intervention]) -> str:
    """All of them in one line."""
    return " · ".join(short(one) for one in some)


def _place(one: Cells | Scale) -> str:
    if one.layer is None and one.head is None:
        return translate("InterventionWords", "all heads")
    layer = "*" if one.layer is None else one.layer
    return f"L{layer}" if one.head is None else f"L{layer} H{one.head}"


def _span(span: Span | None) -> str:
    if span is None:
        return translate("InterventionWords", "any")
    return str(span[0]) if span[0] == span[1] else f"{span[0]}–{span[1]}"


def _keys(one: Cells) -> str:
    if one.back is None:
        return _span(one.keys)
    first, last = one.back
    if first == last:
        return translate("InterventionWords", "{0} back").format(first)
    if last == MOST:
        return translate("InterventionWords", "{0} or more back").format(first)
    return translate("InterventionWords", "{0} to {1} back").format(first, last)
