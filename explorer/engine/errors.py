"""What can go wrong in the engine, as sentences for the user."""

from __future__ import annotations


class EngineError(Exception):
    """One plain sentence with a next step; `details` go to the log."""

    def __init__(self, sentence: str, details: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.details = details


class BadInput(EngineError):
    """The user can mend it: another model, prompt or setting."""


class NeedsCode(BadInput):
    """The model brings program code of its own, and nobody has allowed it to run."""

    def __init__(self, sentence: str, files: tuple[str, ...]) -> None:
        super().__init__(sentence)
        self.files = files


class NoMemory(EngineError):
    """What was to be done takes more than there is; it says nothing of the model."""


class FilesChanged(BadInput):
    """The weight files of the open model were written since; its numbers may be of both."""


class Cancelled(Exception):
    """The request was cancelled; nothing of it is kept."""
