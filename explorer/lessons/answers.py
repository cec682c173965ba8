"""A student's answer beside the measured one."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from explorer.lessons.figure_text import filled, in_words, joined
from explorer.lessons.lesson import Question
from explorer.lessons.quantities import NotKnown, Quantity
from explorer.lessons.run_facts import RunFacts

MOST_TYPED = 200
_TYPED = re.compile(r"([-+]?[\d.,_\s]*\d[.]?(?:e[-+]?\d+)?)\s*(%|[a-z]*)")
_UNITS = {
    "thousand": 1e3, "million": 1e6, "billion": 1e9,
    "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20, "gib": 2**30,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judged:
    """What was measured, in words, and whether the answer given agrees with it."""

    measured: str
    right: bool | None  # None = the measured answer can't be had
    choice: int | None = None  # of a question with choices: the right one, from 0
    reason: str = ""  # why it can't be had


def choices_of(question: Question, facts: RunFacts) -> tuple[str, ...]:
    """The choices as they are shown, their figures measured now."""
    visible = facts.panels.visible
    return tuple(joined(filled(one, facts, visible)) for one in question.choices)


def judge(question: Question, facts: RunFacts, given: str | int | None = None) -> Judged:
    """The measured answer, and whether `given` is right: a choice from 0, or what was typed."""
    value = question.answer.value(facts)
    if isinstance(value, NotKnown):
        return Judged("", None, reason=value.reason)
    if not question.choices:
        right = isinstance(given, str) and _agrees(given, value, question.within)
        return Judged(in_words(value, "", facts.panels.visible), right)
    choices = choices_of(question, facts)
    place = _place(value, choices)
    if place is None:
        reason = f"{_none_fits(value, facts, len(choices))} The lesson's author should mend this."
        return Judged(in_words(value, "", facts.panels.visible), None, reason=reason)
    return Judged(choices[place], given == place, place)


def _place(value: Quantity, choices: tuple[str, ...]) -> int | None:
    if isinstance(value.value, str):
        same = [place for place, one in enumerate(choices) if _same(one, value.value)]
        return same[0] if same else None
    number = float(value.value)
    if isinstance(value.value, bool):  # true is the first choice, false the second
        return 0 if value.value else 1 if len(choices) == 2 else None
    fits = number == int(number) and 1 <= number <= len(choices)
    return int(number) - 1 if fits else None


def _none_fits(value: Quantity, facts: RunFacts, count: int) -> str:
    """Why the measured answer is none of the choices, as one or two sentences."""
    if isinstance(value.value, bool):
        return f"A comparison that is false fits two choices, not {count}. Give a number instead."
    words = in_words(value, "", facts.panels.visible)
    if isinstance(value.value, str):
        return f"The measured answer, “{words[:60]}”, is none of the choices."
    return f"The measured answer, {words}, is none of the choices: they have numbers 1 to {count}."


def _agrees(given: str, value: Quantity, within: float) -> bool:
    given = given[:MOST_TYPED]
    if isinstance(value.value, str):
        return _same(given, value.value)
    typed = _number(given)
    if typed is None:
        return False
    wanted = [float(value.value)]
    if value.unit == "share":  # 30 and 30 % mean the same; 0.3 is read as a share
        wanted.append(100 * wanted[0])
    return any(math.isclose(typed, one, rel_tol=within, abs_tol=1e-9) for one in wanted)


def _number(text: str) -> float | None:
    """What was typed: 1,024 and 9,5 are read as people mean them, and a unit may follow."""
    typed = _TYPED.fullmatch(text.partition("(")[0].strip().casefold())
    if typed is None:
        return None
    figure = re.sub(r"(?<=\d)[,_\s](?=\d{3}(?!\d))", "", typed[1]).replace(",", ".")
    try:
        number = float(figure) * _UNITS.get(typed[2], 1)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _same(one: str, other: str) -> bool:
    return _bare(one) == _bare(other)


def _bare(text: str) -> str:
    return text.replace("␣", " ").strip().strip("'\"“”").strip().casefold()
