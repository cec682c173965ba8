"""A page with every figure worked out."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.lessons.answers import Judged, judge
from explorer.lessons.figure_text import FilledPart, filled, joined
from explorer.lessons.lesson import LessonPage
from explorer.lessons.run_facts import RunFacts
from explorer.session.lesson_facts import facts_of
from explorer.session.state import State

Parts = tuple[FilledPart, ...]


@dataclass(frozen=True, slots=True)
class FilledPage:
    """What a page says about one state of the screen."""

    page: LessonPage
    facts: RunFacts
    text: Parts
    ask: Parts = ()
    choices: tuple[Parts, ...] = ()
    explanation: Parts = ()

    @property
    def choice_words(self) -> tuple[str, ...]:
        """The choices as they are read."""
        return tuple(joined(one) for one in self.choices)

    def judged(self, predicted: str) -> Judged:
        """The measured answer, and whether a prediction agrees with it."""
        assert self.page.question is not None
        words = self.choice_words
        given = words.index(predicted) if predicted in words else None
        return judge(self.page.question, self.facts, given if words else predicted)


def fill(page: LessonPage, state: State) -> FilledPage:
    """Work out all figures of a page; uses no Qt, so that it can run in a thread."""
    facts = facts_of(state)
    visible = facts.panels.visible
    text, question = filled(page.text, facts, visible), page.question
    if question is None:
        return FilledPage(page, facts, text)
    explained = question.explanation
    return FilledPage(
        page,
        facts,
        text,
        filled(question.ask, facts, visible),
        tuple(filled(one, facts, visible) for one in question.choices),
        () if explained is None else filled(explained, facts, visible),
    )
