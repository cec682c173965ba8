"""What a reader of a run's figures should know of the model first, as sentences."""

from __future__ import annotations

from explorer.sampling import left_out
from explorer.trace.card import ModelCard
from explorer.trace.request import Sampling
from explorer.trace.trace import Trace

_EXACT = {"F64", "F32", "F16", "BF16"}  # forms of a GGUF file that round no weight in blocks


def of_model(source: str, warnings: tuple[str, ...] | list[str]) -> list[str]:
    """Those of a model: that its weights are quantised, if they are; then what its card says."""
    return [*_quantised(source), *warnings]


def of_card(card: ModelCard) -> list[str]:
    """Those of an open model."""
    if card.form == "as-is":
        return [_as_it_is(card), *card.warnings]
    return of_model(card.source, card.warnings)


def of_trace(trace: Trace) -> list[str]:
    """Those of a run: its model's, and what of the model's own settings it left out."""
    return of_run(trace.card, trace.steps[-1].sampling if trace.steps else Sampling())


def of_run(card: ModelCard, sampling: Sampling) -> list[str]:
    """Those of a run of this model with these settings."""
    return [*of_card(card), *filter(None, [settings_left_out(card, sampling)])]


def settings_left_out(card: ModelCard, sampling: Sampling) -> str:
    """One sentence if the model's makers ship settings that pick otherwise; else empty."""
    return left_out(card.generation_defaults, sampling)


def _as_it_is(card: ModelCard) -> str:
    stored = card.stored_dtype
    what = f"The weights are quantised ({stored})"
    if _is_exact(stored):
        what = f"The weights are {stored}" if stored else "The weights are those of the file"
    return (
        f"{what}, and llama.cpp runs them as they are stored. Results differ from those in "
        "float32, and from the original model's."
    )


def _is_exact(stored: str) -> bool:
    """True if nothing was rounded when the file was made, by its formats with their shares."""
    return {part.split()[0] for part in stored.split(", ") if part.strip()} <= _EXACT


def _quantised(source: str) -> list[str]:
    stored = source.removeprefix("from ").removesuffix(" (dequantised)")
    if stored == source or _is_exact(stored):
        return []
    return [
        f"The weights are quantised ({stored}): they were rounded when the file was made. "
        "Results differ from the original model's."
    ]
