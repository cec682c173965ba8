"""Where and how a model runs, in a few words each."""

from __future__ import annotations

from collections.abc import Callable

from explorer.trace.card import ModelCard

USUAL_KEYS = "f16"


def where(card: ModelCard, tr: Callable[[str], str]) -> str:
    """The device, and how many processes share the model."""
    if card.processes == 1:
        return card.device
    return tr("{0}, {1} processes").format(card.device, card.processes)


def as_is_words(card: ModelCard, tr: Callable[[str], str]) -> list[str]:
    """Of a .gguf file: that it is run so, what keys are kept in, how many layers are on a GPU."""
    runs = tr("run as it is by llama.cpp ({0})").format(card.stored_dtype or card.dtype)
    return [runs, *as_is_choices(card, tr)]


def as_is_choices(card: ModelCard, tr: Callable[[str], str]) -> list[str]:
    """What keys are kept in, and how many layers are on a GPU, where these are not the usual."""
    words = []
    if card.cache_type_k not in ("", USUAL_KEYS):
        words.append(tr("keys in {0}").format(card.cache_type_k))
    if card.gpu_layers:
        words.append(tr("{0} of {1} layers on a GPU").format(card.layers_on_gpu, card.layers))
    return words
