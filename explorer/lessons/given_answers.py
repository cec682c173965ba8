"""The predictions of a student beside what was measured, and both as they are kept."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAnswer:
    """One prediction beside the measured answer; `right` is None if nothing was measured."""

    lesson: str
    page: int  # from 0
    question: str
    predicted: str  # empty = skipped
    measured: str  # or why there is none
    right: bool | None


class GivenAnswers:
    """The answers of a session, in the order in which the questions were answered first."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, int], GivenAnswer] = {}

    def put(self, answer: GivenAnswer) -> None:
        """Keep an answer; another one to the same question takes its place."""
        self._given[answer.lesson, answer.page] = answer

    def of(self, lesson: str, page: int) -> GivenAnswer | None:
        """The answer to the question of a page."""
        return self._given.get((lesson, page))

    def drop(self, lesson: str, page: int) -> None:
        """The question is open again."""
        self._given.pop((lesson, page), None)

    def kept(self, lesson: str) -> list[dict[str, Any]]:
        """The answers of a lesson as plain data."""
        return [asdict(one) for one in self.all if one.lesson == lesson]

    def restore(self, lesson: str, kept: object) -> None:
        """The answers of a lesson from what `kept` once gave; anything else is left out."""
        for one in kept if isinstance(kept, list) else []:
            try:
                answer = msgspec.convert(one, GivenAnswer)
            except msgspec.ValidationError:
                continue
            if answer.lesson == lesson and self.of(lesson, answer.page) is None:
                self.put(answer)

    @property
    def all(self) -> tuple[GivenAnswer, ...]:
        """Every answer, those skipped too."""
        return tuple(self._given.values())

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """(question, predicted, measured) of each that was predicted, for a report."""
        return [(one.question, one.predicted, one.measured) for one in self.all if one.predicted]
