"""What loading a model takes, as a sentence."""

from __future__ import annotations

from collections.abc import Callable

from explorer.figures.text import sentences
from explorer.trace.found_models import FoundModel
from explorer.wording import short_bytes

DTYPES = ("float32", "bfloat16", "float16")
_WIDTH = {"float32": 4, "bfloat16": 2, "float16": 2}  # bytes of a number
NAMED = ("bundled", "Hugging Face cache", "Ollama")


def needs(found: FoundModel, dtype: str, available: int | None, tr: Callable[[str], str]) -> str:
    """The memory for a run in this dtype beside what is free; and what to do if it can't fit.

    Of a .gguf file also as it is.
    """
    if found.incomplete:
        return tr("The download of {0} is incomplete. Let it finish, or start it again.").format(
            found.name
        )
    needed = found.memory_bytes.get(dtype)
    if needed is None:
        return ""
    how = _parts(found, dtype, needed, tr)
    if found.is_gguf:
        how = tr("{0} as it is ({1}), or {2}").format(
            short_bytes(found.memory_bytes["as-is"]), found.dtype, how
        )
    if available is None:
        return tr("{0} needs about {1}.").format(sentences.name(found.name), how)
    if fits(found, dtype, available):
        return tr("{0} needs about {1}. {2} of memory is free.").format(
            sentences.name(found.name), how, short_bytes(available)
        )
    half = found.memory_bytes.get("bfloat16", needed)
    if fits(found, "as-is", available):
        return tr("{0} needs about {1}. Only {2} of memory is free. Open it as it is.").format(
            sentences.name(found.name), how, short_bytes(available)
        )
    advice = (
        tr("Choose bfloat16 (about {0}) or a smaller model.").format(short_bytes(half))
        if half <= available
        else tr("Choose a smaller model or close other programs.")
    )
    return tr("{0} needs about {1}, but only {2} of memory is free. {3}").format(
        found.name, how, short_bytes(available), advice
    )


def _parts(found: FoundModel, dtype: str, needed: int, tr: Callable[[str], str]) -> str:
    weights = (found.parameters or 0) * _WIDTH[dtype]
    return tr("{0} in {1} (weights {2}, one run {3})").format(
        short_bytes(needed), dtype, short_bytes(weights), short_bytes(max(0, needed - weights))
    )


def cautions(found: FoundModel, gpu: bool, tr: Callable[[str], str]) -> str:
    """What to know before this model is opened; empty if nothing.

    `gpu`: llama.cpp can put layers on one.
    """
    said = []
    if found.is_gguf and not found.incomplete and not gpu:
        said.append(
            tr(
                "As it is, all layers run on the processor: llama.cpp has no GPU support here, or "
                "finds no GPU."
            )
        )
    if found.pickle:
        said.append(
            tr(
                "Warning: its weights are pickle files (.bin), which can contain "
                "programs. They are loaded in torch's restricted mode, which runs none."
            )
        )
    if found.own_code:
        said.append(
            tr("This model contains its own program code. You will be asked before it runs.")
        )
    return " ".join(said)


def fits(found: FoundModel, dtype: str, available: int | None) -> bool:
    """False if the memory that is free now is known to be too little, or `dtype` is no choice."""
    if dtype == "as-is" and not found.is_gguf:
        return False
    return available is None or found.memory_bytes.get(dtype, 0) <= available


def target(found: FoundModel) -> str:
    """What opens this model: its name where the program keeps such names, else its path."""
    return found.name if found.source in NAMED else found.path
