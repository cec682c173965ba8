"""What can go wrong in the engine, as sentences for the user."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

_ENDLESS = re.compile(r"\S{200,}")


class EngineError(Exception):
    """One plain sentence with a next step; `details` go to the log."""

    def __init__(self, sentence: str, details: str = "") -> None:
        # A name or a value out of a model's file may have any length, and hold half a character.
        sentence = sentence.encode("utf-8", "backslashreplace").decode()
        self.sentence = _ENDLESS.sub(lambda word: f"{word[0][:100]}…{word[0][-50:]}", sentence)
        super().__init__(self.sentence)
        self.details = details if self.sentence == sentence else f"{sentence[:100_000]}\n{details}"


class BadInput(EngineError):
    """The user can mend it: another model, prompt or setting."""


class TooLarge(BadInput):
    """The model to be opened does not fit into the memory that is free."""


class TruncatedFile(BadInput):
    """A file ends before its tensors do."""


class NeedsCode(BadInput):
    """The model brings program code of its own, and nobody has allowed it to run."""

    def __init__(self, sentence: str, files: tuple[str, ...]) -> None:
        super().__init__(sentence)
        self.files = files


class NoMemory(EngineError):
    """What was to be done takes more than there is; it says nothing of the model."""


class FilesChanged(BadInput):
    """The weight files of the open model were written since; its numbers may be of both."""


@contextmanager
def no_panic() -> Iterator[None]:
    """While inside, a panic of a library written in Rust is a RuntimeError like any other.

    Such a panic is a BaseException of its own, which no `except Exception` holds up.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise RuntimeError(str(error)) from error


class Cancelled(Exception):
    """The request was cancelled; nothing of it is kept."""
