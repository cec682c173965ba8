"""What a command writes for people: text from files and models never drives the terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from explorer import places
from explorer.figures.text.characters import printable
from explorer.figures.text.sentences import fitting
from explorer.session.connection import log

_WORD = 240  # letters: a path is to be copied whole, and a terminal breaks it by itself


class MarkedStream:
    """A text stream on which escape sequences and the like are shown as marks."""

    def __init__(self, stream: TextIO) -> None:
        self.unmarked = stream

    def write(self, text: str) -> int:
        self.unmarked.write(printable(text, keep="\n"))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unmarked, name)


@contextlib.contextmanager
def marked_output() -> Iterator[None]:
    """stdout and stderr marked, for as long as a command runs; a windowed build has neither."""
    before = sys.stdout, sys.stderr
    if sys.stdout is not None:
        sys.stdout = MarkedStream(sys.stdout)
    if sys.stderr is not None:
        sys.stderr = MarkedStream(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def overwrite(line: str) -> None:
    """Put a line of progress over the one before it, on stderr."""
    stream = sys.stderr
    bare = stream.unmarked if isinstance(stream, MarkedStream) else stream
    bare.write(f"\r{line}")
    bare.flush()


def complain(text: str) -> None:
    """A sentence on stderr, where there is one."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(sentence(text), file=sys.stderr)


def sentence(text: str) -> str:
    """One line that fits; what is cut from it is in the log."""
    line = printable(" ".join(text.splitlines()))  # names may hold line breaks
    short = fitting(line, word=_WORD)
    if short == line:
        return short
    log.keep(line)
    return f"{short} (Shortened; the whole text is in {places.log_file()}.)"
