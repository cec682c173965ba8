"""Stages of a block: what each is called, what it does, and its term of the glossary."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from PySide6.QtCore import QCoreApplication

from explorer.trace.inside.walk import LayerStage
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP

translate = QCoreApplication.translate
Group = Literal["stream", "attention", "mlp", "other"]


@dataclass(frozen=True, slots=True)
class StageWords:
    """A kind of stage: title, one sentence, term of the glossary, and its part."""

    title: str
    does: str
    term: str = ""
    group: Group = "other"


_ATTENDS: Group = "attention"
_MLP: Group = "mlp"
_STREAM: Group = "stream"
_NORM = QT_TRANSLATE_NOOP(
    "Block", "Brings the vector to a fixed size, so that only its direction counts."
)
_RECEIVED = QT_TRANSLATE_NOOP("Block", "As the attention kernel received it.")
_KNOWN = {  # by the names that the engine gives
    "residual stream": StageWords(
        QT_TRANSLATE_NOOP("Block", "Stream"),
        QT_TRANSLATE_NOOP("Block", "The vector that the layer reads, and adds to."),
        "residual-stream", _STREAM),
    "input norm": StageWords(QT_TRANSLATE_NOOP("Block", "Input norm"), _NORM, "norm"),
    "norm": StageWords(QT_TRANSLATE_NOOP("Block", "Norm"), _NORM, "norm"),
    "Q": StageWords(
        QT_TRANSLATE_NOOP("Block", "Query (Q)"),
        QT_TRANSLATE_NOOP("Block", "What this token looks for: one vector for each head."),
        "query", _ATTENDS),
    "K": StageWords(
        QT_TRANSLATE_NOOP("Block", "Key (K)"),
        QT_TRANSLATE_NOOP("Block", "What this token can be found by."), "key", _ATTENDS),
    "V": StageWords(
        QT_TRANSLATE_NOOP("Block", "Value (V)"),
        QT_TRANSLATE_NOOP("Block", "What tokens that attend to this one receive."),
        "value", _ATTENDS),
    "Q, K and V in one": StageWords(
        QT_TRANSLATE_NOOP("Block", "Q, K and V"),
        QT_TRANSLATE_NOOP("Block", "One projection makes query, key and value."), "", _ATTENDS),
    "Q norm": StageWords(
        QT_TRANSLATE_NOOP("Block", "Q norm"),
        QT_TRANSLATE_NOOP("Block", "Brings each head's query to a fixed size (QK-norm)."),
        "norm", _ATTENDS),
    "K norm": StageWords(
        QT_TRANSLATE_NOOP("Block", "K norm"),
        QT_TRANSLATE_NOOP("Block", "Brings each head's key to a fixed size (QK-norm)."),
        "norm", _ATTENDS),
    "latent Q": StageWords(
        QT_TRANSLATE_NOOP("Block", "Latent Q"),
        QT_TRANSLATE_NOOP("Block", "A short vector that every head's query is made from (MLA)."),
        "", _ATTENDS),
    "latent Q norm": StageWords(
        QT_TRANSLATE_NOOP("Block", "Latent Q norm"), _NORM, "norm", _ATTENDS),
    "Q from its latent": StageWords(
        QT_TRANSLATE_NOOP("Block", "Q from latent"),
        QT_TRANSLATE_NOOP("Block", "Every head's query, made from the short vector."),
        "query", _ATTENDS),
    "latent K and V": StageWords(
        QT_TRANSLATE_NOOP("Block", "Latent K and V"),
        QT_TRANSLATE_NOOP("Block", "A short vector for keys and values, with a key for position."),
        "", _ATTENDS),
    "latent K and V norm": StageWords(
        QT_TRANSLATE_NOOP("Block", "Latent K, V norm"), _NORM, "norm", _ATTENDS),
    "K and V from their latent": StageWords(
        QT_TRANSLATE_NOOP("Block", "K, V from latent"),
        QT_TRANSLATE_NOOP("Block", "Every head's key and value, made from the short vector."),
        "", _ATTENDS),
    "latent": StageWords(
        QT_TRANSLATE_NOOP("Block", "Latent part"),
        QT_TRANSLATE_NOOP("Block", "The part that every head's key and value are made from."),
        "kv-cache", _ATTENDS),
    "K for position": StageWords(
        QT_TRANSLATE_NOOP("Block", "K for position"),
        QT_TRANSLATE_NOOP("Block", "The part of the key that RoPE turns: one for all heads."),
        "rope", _ATTENDS),
    "K of both": StageWords(
        QT_TRANSLATE_NOOP("Block", "K of both parts"),
        QT_TRANSLATE_NOOP("Block", "In each head: a part from the latent, a part for position."),
        "key", _ATTENDS),
    "Q after RoPE": StageWords(
        QT_TRANSLATE_NOOP("Block", "Q after RoPE"),
        QT_TRANSLATE_NOOP("Block", "Pairs turned by angles that grow with position."),
        "rope", _ATTENDS),
    "K after RoPE": StageWords(
        QT_TRANSLATE_NOOP("Block", "K after RoPE"),
        QT_TRANSLATE_NOOP("Block", "Turned like the query: a score then depends on the distance."),
        "rope", _ATTENDS),
    "Q of the kernel": StageWords(
        QT_TRANSLATE_NOOP("Block", "Q as used"), _RECEIVED, "query", _ATTENDS),
    "K of the kernel": StageWords(
        QT_TRANSLATE_NOOP("Block", "K as used"), _RECEIVED, "key", _ATTENDS),
    "V of the kernel": StageWords(
        QT_TRANSLATE_NOOP("Block", "V as used"), _RECEIVED, "value", _ATTENDS),
    "scores": StageWords(
        QT_TRANSLATE_NOOP("Block", "Scores"),
        QT_TRANSLATE_NOOP("Block", "How well the query fits each key. Click one."),
        "", _ATTENDS),
    "soft cap": StageWords(
        QT_TRANSLATE_NOOP("Block", "Soft cap"),
        QT_TRANSLATE_NOOP("Block", "Keeps every score within a limit."), "", _ATTENDS),
    "position bias": StageWords(
        QT_TRANSLATE_NOOP("Block", "Position bias"),
        QT_TRANSLATE_NOOP("Block", "Adds a number that depends on the distance to the key."),
        "", _ATTENDS),
    "moved sinks": StageWords(
        QT_TRANSLATE_NOOP("Block", "Moved sinks"),
        QT_TRANSLATE_NOOP(
            "Block", "The distances to the first keys are counted in the cache."
        ),
        "attention-sink", _ATTENDS),
    "mask": StageWords(
        QT_TRANSLATE_NOOP("Block", "Mask"),
        QT_TRANSLATE_NOOP("Block", "Hides the keys that this token must not attend to."),
        "causal-mask", _ATTENDS),
    "sinks": StageWords(
        QT_TRANSLATE_NOOP("Block", "Sinks"),
        QT_TRANSLATE_NOOP("Block", "One more score for each head: takes weight, adds no value."),
        "attention-sink", _ATTENDS),
    "softmax": StageWords(
        QT_TRANSLATE_NOOP("Block", "Softmax"),
        QT_TRANSLATE_NOOP("Block", "Turns scores into weights that add up to 1."),
        "softmax", _ATTENDS),
    "weights · V": StageWords(
        QT_TRANSLATE_NOOP("Block", "Weights × values"),
        QT_TRANSLATE_NOOP("Block", "Each head's mix of the values, by its attention weights."),
        "attention-weight", _ATTENDS),
    "concat": StageWords(
        QT_TRANSLATE_NOOP("Block", "Heads joined"),
        QT_TRANSLATE_NOOP("Block", "The heads' outputs side by side."), "head", _ATTENDS),
    "gated heads": StageWords(
        QT_TRANSLATE_NOOP("Block", "Gated heads"),
        QT_TRANSLATE_NOOP("Block", "The heads' outputs, changed by a gate or a norm."),
        "", _ATTENDS),
    "W_O": StageWords(
        QT_TRANSLATE_NOOP("Block", "Output (W_O)"),
        QT_TRANSLATE_NOOP("Block", "Mixes the heads into the vector that attention adds (W_O)."),
        "", _ATTENDS),
    "norm after attention": StageWords(
        QT_TRANSLATE_NOOP("Block", "Norm after attn."), _NORM, "norm", _ATTENDS),
    "norm after mixer": StageWords(
        QT_TRANSLATE_NOOP("Block", "Norm after mixer"), _NORM, "norm", _ATTENDS),
    "norm after mlp": StageWords(QT_TRANSLATE_NOOP("Block", "Norm after MLP"), _NORM, "norm", _MLP),
    "residual": StageWords(
        QT_TRANSLATE_NOOP("Block", "+ Stream"),
        QT_TRANSLATE_NOOP("Block", "The stream with what this layer has added so far."),
        "residual-stream", _STREAM),
    "gate": StageWords(
        QT_TRANSLATE_NOOP("Block", "Gate"),
        QT_TRANSLATE_NOOP("Block", "After the activation it decides how much of “up” passes."),
        "mlp", _MLP),
    "up": StageWords(
        QT_TRANSLATE_NOOP("Block", "Up"),
        QT_TRANSLATE_NOOP("Block", "Projects the vector to the wider space of the MLP."),
        "mlp", _MLP),
    "gate and up in one": StageWords(
        QT_TRANSLATE_NOOP("Block", "Gate and up"),
        QT_TRANSLATE_NOOP("Block", "One projection makes both."), "mlp", _MLP),
    "activation": StageWords(
        QT_TRANSLATE_NOOP("Block", "Activation"),
        QT_TRANSLATE_NOOP("Block", "Bends each number by itself: the step that is not linear."),
        "mlp", _MLP),
    "product": StageWords(
        QT_TRANSLATE_NOOP("Block", "Product"),
        QT_TRANSLATE_NOOP("Block", "Two vectors multiplied entry by entry."), "", _MLP),
    "down": StageWords(
        QT_TRANSLATE_NOOP("Block", "Down"),
        QT_TRANSLATE_NOOP("Block", "Projects back to the stream's width: what the MLP adds."),
        "mlp", _MLP),
    "router": StageWords(
        QT_TRANSLATE_NOOP("Block", "Router"),
        QT_TRANSLATE_NOOP("Block", "Scores the experts. The token goes to the best of them."),
        "mixture-of-experts", _MLP),
    "experts": StageWords(
        QT_TRANSLATE_NOOP("Block", "Experts"),
        QT_TRANSLATE_NOOP("Block", "What the chosen experts give, by their weights."),
        "mixture-of-experts", _MLP),
    "mlp output": StageWords(
        QT_TRANSLATE_NOOP("Block", "MLP output"),
        QT_TRANSLATE_NOOP("Block", "What the MLP adds to the stream."), "mlp", _MLP),
    "attention output": StageWords(
        QT_TRANSLATE_NOOP("Block", "Attention output"),
        QT_TRANSLATE_NOOP("Block", "What attention adds to the stream."), "", _ATTENDS),
    "mixer output": StageWords(
        QT_TRANSLATE_NOOP("Block", "Mixer output"),
        QT_TRANSLATE_NOOP("Block", "What the mixer adds to the stream."), "", _ATTENDS),
    "residual stream after": StageWords(
        QT_TRANSLATE_NOOP("Block", "+ Stream after"),
        QT_TRANSLATE_NOOP("Block", "What the next layer reads."), "residual-stream", _STREAM),
}  # fmt: skip

_OF_STATE = {  # by the kind before the colon of a stage's name: title, and what it does
    "state": (
        QT_TRANSLATE_NOOP("Block", "State ({0})"),
        QT_TRANSLATE_NOOP("Block", "What the layer keeps of all tokens so far, in a fixed size."),
    ),
    "decay": (
        QT_TRANSLATE_NOOP("Block", "Decay ({0})"),
        QT_TRANSLATE_NOOP("Block", "How much of the state before this token is kept."),
    ),
    "write": (
        QT_TRANSLATE_NOOP("Block", "Written ({0})"),
        QT_TRANSLATE_NOOP("Block", "What this token adds to the state."),
    ),
}


def stage_words(stage: LayerStage) -> StageWords:
    """What a stage is; its own name where the field has no word for it."""
    kind, _, name = stage.name.partition(": ")
    name = name.replace("_", " ")
    if kind in _OF_STATE:
        title, does = (translate("Block", words) for words in _OF_STATE[kind])
        return StageWords(title.format(name), does, "recurrent-state", "attention")
    found = _KNOWN.get(stage.name)
    if found is None:
        return StageWords(stage.name, translate("Block", "A module of this model."))
    title, does = (translate("Block", words) for words in (found.title, found.does))
    return replace(found, title=title, does=does)
