"""How llama.cpp runs a .gguf file as it is, in a few words each."""

from __future__ import annotations

from collections.abc import Callable

from explorer.trace.card import ModelCard

USUAL_KEYS = "f16"


def as_is_words(card: ModelCard, tr: Callable[[str], str]) -> list[str]:
    """That it is run so, what keys are kept in, and how many layers are on a GPU, if any are."""
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
