"""Exit codes, and the one kind of error that a command ends with."""

from __future__ import annotations

DONE = 0
CHECK_FAILED = 1
BAD_USE = 2
ENGINE_FAILED = 3
INTERRUPTED = 130


class CommandError(Exception):
    """One sentence for stderr, and the exit code."""

    def __init__(self, sentence: str, code: int = BAD_USE) -> None:
        super().__init__(sentence)
        self.code = code
