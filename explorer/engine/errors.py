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


class Cancelled(Exception):
    """The request was cancelled; nothing of it is kept."""
