"""A list of prompts from a file: one a line, or a JSON list of strings."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from explorer import disk
from explorer.session.jobs.live_tokens import encoding_problem
from explorer.trace.batch import MOST_ROWS

# So begins a JSON list of texts or conversations, and hardly a prompt: those begin as [INST] does.
_JSON = re.compile(r'\s*\[\s*("|\{|\[\s*\{|\]?\s*\Z)')


class PromptListError(ValueError):
    """Why a file is no list of prompts, in one sentence."""


def read_prompts(name: str | os.PathLike[str]) -> tuple[str, ...]:
    """1 to 16 prompts of a UTF-8 file; PromptListError if they can't be had."""
    try:
        found = entries(name, disk.read_text(name))
    except disk.TextError as error:
        raise PromptListError(str(error)) from error
    if not all(isinstance(entry, str) for entry in found):
        raise PromptListError(f"{name} holds more than texts. List texts alone, one per line.")
    if not 1 <= len(found) <= MOST_ROWS:
        raise PromptListError(
            f"{name} has {len(found)} prompts, but a batch takes 1 to {MOST_ROWS}, one per line."
        )
    problem = next(filter(None, map(encoding_problem, found)), "")
    if problem:
        raise PromptListError(problem)
    return tuple(found)


def entries(name: str | os.PathLike[str], text: str) -> list[Any]:
    """The lines of a file, or what its JSON list holds.  PromptListError if that is broken."""
    if _JSON.match(text):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise PromptListError(
                f"{name} starts as a JSON list but is none ({error}). Complete it, or write one "
                "prompt per line."
            ) from error
        return list(found)
    # Not splitlines: a line may hold form feeds and other separators of its own.
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    return [] if lines == [""] else lines
