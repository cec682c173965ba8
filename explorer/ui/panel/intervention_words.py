"""Interventions in the window's words, as short as fits on a chip."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QCoreApplication

from explorer.figures.text.characters import elide
from explorer.figures.text.tokens import visible
from explorer.trace.interventions.context_policy import ContextPolicy
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
_MOST_APART = 3  # areas of one kind and place that have a chip each


def short(one: Intervention) -> str:
    """What one intervention does and where."""
    if isinstance(one, Silence):
        if one.by == "mean":
            return translate("InterventionWords", "L{0} H{1} at its mean").format(
                one.layer, one.head
            )
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
    words = {
        "cut": translate("InterventionWords", "{0}: {1} → {2} cut"),
        "allow": translate("InterventionWords", "{0}: {1} → {2} allowed"),
        "restore": translate("InterventionWords", "{0}: {1} → {2} restored"),
    }[one.effect]
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


def together(some: Iterable[Intervention]) -> list[tuple[str, tuple[Intervention, ...]]]:
    """Each with its words; more than a few areas of one kind and place are one."""
    groups: dict[object, list[Intervention]] = {}
    for one in some:
        areas = (one.effect, one.layer, one.head) if isinstance(one, Cells) else one
        groups.setdefault(areas, []).append(one)
    found: list[tuple[str, tuple[Intervention, ...]]] = []
    for group in groups.values():
        first = group[0]
        if isinstance(first, Cells) and len(group) > _MOST_APART:
            found.append((_counted(first, len(group)), tuple(group)))
        else:
            found += [(short(one), (one,)) for one in group]
    return found


def _counted(first: Cells, count: int) -> str:
    words = {
        "cut": translate("InterventionWords", "{0}: {1} areas cut"),
        "allow": translate("InterventionWords", "{0}: {1} areas allowed"),
        "restore": translate("InterventionWords", "{0}: {1} areas restored"),
    }[first.effect]
    return words.format(_place(first), count)


def listed(some: Iterable[Intervention]) -> str:
    """All of them in one line."""
    return " · ".join(words for words, _ in together(some))


def _place(one: Cells | Scale) -> str:
    if one.layer is None and one.head is None:
        return translate("InterventionWords", "all heads")
    layer = "*" if one.layer is None else one.layer
    return f"L{layer}" if one.head is None else f"L{layer} H{one.head}"


def _span(span: Span | None) -> str:
    if span is None or span == (0, MOST):
        return translate("InterventionWords", "any")
    if span[1] == MOST:
        return translate("InterventionWords", "{0} and later").format(span[0])
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


def policy_words(policy: ContextPolicy) -> str:
    """What a run does about a full context, without a full stop."""
    if policy.name == "window":
        words = translate(
            "InterventionWords", "Sliding window: each token attends to the last {0} tokens"
        )
        return words.format(f"{policy.tokens:,}")
    if policy.name == "sinks":
        words = translate(
            "InterventionWords", "Each token attends to the first {0} and the last {1} tokens"
        )
        said = words.format(f"{policy.sinks:,}", f"{policy.last:,}")
        if not policy.moves_sinks:
            return said
        return translate("InterventionWords", "{0}, distances counted in the cache").format(said)
    if policy.name == "drop-turns" and policy.tokens:
        words = translate(
            "InterventionWords", "Over {0} tokens, the oldest turns of a chat are left out"
        )
        return words.format(f"{policy.tokens:,}")
    if policy.name == "drop-turns":
        return translate(
            "InterventionWords", "When it is full, the oldest turns of a chat are left out"
        )
    if policy.tokens:
        words = translate("InterventionWords", "The run stops at {0} tokens")
        return words.format(f"{policy.tokens:,}")
    return translate("InterventionWords", "When it is full, the run stops")
