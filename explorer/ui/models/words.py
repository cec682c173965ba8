"""What loading a model takes, as a sentence."""

from __future__ import annotations

from collections.abc import Callable

from explorer.figures.cache import short_bytes
from explorer.trace.library import FoundModel

DTYPES = ("float32", "bfloat16", "float16")
NAMED = ("bundled", "Hugging Face cache", "Ollama")


def needs(found: FoundModel, dtype: str, available: int | None, tr: Callable[[str], str]) -> str:
    """The memory for a run in this dtype beside what is free; and what to do if it can't fit."""
    needed = found.memory_bytes.get(dtype)
    if needed is None:
        return ""
    if available is None:
        return tr("{0} takes about {1} in {2}.").format(found.name, short_bytes(needed), dtype)
    if fits(found, dtype, available):
        return tr("{0} takes about {1} in {2}; {3} of memory are free.").format(
            found.name, short_bytes(needed), dtype, short_bytes(available)
        )
    half = found.memory_bytes.get("bfloat16", needed)
    advice = (
        tr("choose bfloat16 (about {0}) or a smaller model").format(short_bytes(half))
        if half <= available
        else tr("choose a smaller model or close other programs")
    )
    return tr("{0} needs about {1} in {2} and {3} of memory are free; {4}.").format(
        found.name, short_bytes(needed), dtype, short_bytes(available), advice
    )


def fits(found: FoundModel, dtype: str, available: int | None) -> bool:
    """False if the memory that is free now is known to be too little."""
    return available is None or found.memory_bytes.get(dtype, 0) <= available


def target(found: FoundModel) -> str:
    """What opens this model: its name where the program keeps such names, else its path."""
    return found.name if found.source in NAMED else found.path
