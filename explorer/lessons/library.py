"""The lessons that come with the program, and finding one by name or file."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from explorer import places
from explorer.lessons.lesson import FILE, Lesson, load
from explorer.lessons.toml_lines import Faults, LessonFileError

ENGLISH = "en"


def shipped(language: str = ENGLISH) -> tuple[Lesson, ...]:
    """The lessons that come with the program, in the order they build on each other.

    In English where there are none in the language.
    """
    return tuple(load(folder) for folder in _folders(language))


def readable(language: str = ENGLISH) -> tuple[tuple[Lesson, ...], tuple[LessonFileError, ...]]:
    """The same, and what is wrong with those that can't be read."""
    faults = Faults()
    lessons = [faults.of(partial(load, folder)) for folder in _folders(language)]
    return tuple(filter(None, lessons)), faults.found


def _folders(language: str) -> list[Path]:
    try:
        root = places.asset("lessons", language)
    except FileNotFoundError:
        root = places.asset("lessons", ENGLISH)
    folders = [one for one in root.iterdir() if (one / FILE).is_file()]
    return sorted(folders, key=lambda one: (_place(one.name), one.name))


def find(name: str, language: str = ENGLISH) -> Lesson:
    """A shipped lesson by its name, or the lesson in a file or folder; LessonFileError if none."""
    if os.sep not in name and name not in (".", ".."):
        for folder in _folders(language):
            if folder.name == name:
                return load(folder)
    path = Path(name).expanduser()
    try:
        there = path.is_file() or (path / FILE).is_file()
    except (OSError, ValueError):
        there = False
    if not there and _is_folder(path):
        words = f"There is no {FILE} in this folder. A lesson is a folder with a file of this name."
        raise LessonFileError(name[:200], 0, words)
    if not there:
        names = ", ".join(folder.name for folder in _folders(language))
        words = f"There is no lesson and no lesson file of this name. Lessons: {names}."
        raise LessonFileError(name[:200], 0, words)
    return load(path)


def _is_folder(path: Path) -> bool:
    try:
        return bool(path.name) and path.is_dir()
    except (OSError, ValueError):
        return False


ORDER = (
    "tokens", "next-token", "attention", "causal-mask", "kv-cache", "padding", "greedy",
    "parameters", "training", "training-mistakes",
)  # fmt: skip


def _place(name: str) -> int:
    return ORDER.index(name) if name in ORDER else len(ORDER)
