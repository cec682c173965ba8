"""The parts of the picture in words."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication

from explorer.figures.inside.model_map import MapPart, mixing
from explorer.trace.card import ModelCard
from explorer.trace.inside.structure import ModelStructure
from explorer.wording import ms_text, short_bytes

translate = QCoreApplication.translate


def name(part: MapPart, card: ModelCard) -> str:
    """What a part is."""
    words = {
        "embedding": translate("ModelPicture", "Embedding"),
        "norm": translate("ModelPicture", "Norm"),
        "attention": translate("ModelPicture", "Attention"),
        "mixer": translate("ModelPicture", "Mixer (recurrent or convolutional)"),
        "mlp": translate("ModelPicture", "MLP"),
        "experts": translate("ModelPicture", "Experts (MoE)"),
        "final norm": translate("ModelPicture", "Final norm"),
        "head": translate("ModelPicture", "Head"),
        "softmax": translate("ModelPicture", "Softmax"),
    }.get(part.kind, part.name)
    if part.kind == "attention" and part.layer is not None:
        kind, window = mixing(card, part.layer)
        if window:
            return translate("ModelPicture", "{0} ({1}, {2} tokens)").format(
                words, kind, f"{window:,}"
            )
        return f"{words} ({kind})" if kind else words
    return words


def figures(part: MapPart, card: ModelCard, before: Sequence[MapPart], short: bool = False) -> str:
    """Its shape, parameters, time and bytes, and what it reads if that is not plain to see.

    `before`: the parts above it; `short`: rounded, in fewer words.
    """
    found = []
    if part.kind == "softmax":
        return translate("ModelPicture", "{0} probabilities").format(f"{card.vocab_size:,}")
    if part.reads == "entered" and any(one.adds for one in before):
        found.append(translate("ModelPicture", "reads the stream as it entered"))
    if part.source and part.source != before[-1].name:
        found.append(translate("ModelPicture", "reads {0}").format(part.source))
    if part.kind == "attention":
        heads = translate("ModelPicture", "{0} heads × {1}, {2} KV heads")
        if short:
            heads = translate("ModelPicture", "{0} × {1}, {2} KV")
        found.append(heads.format(card.heads, card.head_dim, card.kv_heads))
    elif part.shape:
        found.append(" × ".join(f"{size:,}" for size in part.shape))
    if part.tied:
        found.append(translate("ModelPicture", "the embedding's own table"))
    elif part.parameters:
        count = translate("ModelPicture", "{0} parameters").format(f"{part.parameters:,}")
        found += [_short_count(part.parameters) if short else count, short_bytes(part.bytes)]
    if part.ms is not None:
        found.append(ms_text(part.ms))
    return " · ".join(found)


def _short_count(count: int) -> str:
    """Three digits of a number: 576, 885 K, 2.65 M, 1.2 B."""
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if count >= 0.9995 * size:
            return f"{count / size:.3g} {letter}"
    return str(count)


def layer_title(found: ModelStructure, layer: int) -> str:
    """The row of layers: which is lit, and how many are put together like it."""
    same = len(found.block_of(layer).layers)
    if same == found.layers:
        return translate("ModelPicture", "Layer {0}: one of {1} that are alike").format(
            layer, found.layers
        )
    return translate("ModelPicture", "Layer {0} of {1}: {2} are put together like it").format(
        layer, found.layers, same
    )
