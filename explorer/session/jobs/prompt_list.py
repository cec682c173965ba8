"""A list of prompts from a file: one a line, or a JSON list of strings."""

from __future__ import annotations

import json
import os
import re

from explorer import disk
from explorer.session.jobs.live_tokens import encoding_problem
from explorer.trace.batch import MOST_ROWS

_BEGUN = re.compile(r'\s*\[\s*("|\Z)')


class PromptListError(ValueError):
    """Why a file is no list of prompts, in one sentence."""


def read_prompts(name: str | os.PathLike[str]) -> tuple[str, ...]:
    """1 to 16 prompts of a UTF-8 file; PromptListError if they can't be had."""
    try:
        text = disk.read_text(name)
    except disk.TextError as error:
        raise PromptListError(str(error)) from error
    found = _json_list(name, text)
    if found is None:
        # Not splitlines: a line may hold form feeds and other separators of its own.
        found = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
        found = [] if found == [""] else found
    if not 1 <= len(found) <= MOST_ROWS:
        raise PromptListError(
            f"{name} has {len(found)} prompts, but a batch takes 1 to {MOST_ROWS}, one per line."
        )
    problem = next(filter(None, map(encoding_problem, found)), "")
    if problem:
        raise PromptListError(problem)
    return tuple(found)


def _json_list(name: str | os.PathLike[str], text: str) -> list[str] | None:
    """The strings of a JSON list; None if the text is anything else."""
    if not text.lstrip().startswith("["):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        if _BEGUN.match(text):  # no prompt begins so, a list of strings does
            raise PromptListError(
                f"{name} starts as a JSON list of strings but is incomplete ({error}). Complete "
                "it, or write one prompt per line."
            ) from error
        return None
    if isinstance(found, list) and all(isinstance(entry, str) for entry in found):
        return found
    return None
