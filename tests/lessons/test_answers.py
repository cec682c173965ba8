"""Answers: what a student typed or chose, beside what was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.lessons.answers import judge
from explorer.lessons.expressions import Constant, Expression
from explorer.lessons.lesson import Question, read_lesson
from explorer.lessons.quantities import Quantity
from explorer.lessons.run_facts import RunFacts
from explorer.session.lesson_facts import PanelFunctions
from tests.lessons.example import LESSON

FACTS = RunFacts(panels=PanelFunctions())


def question(answer: str, choices: str = "", within: str = "") -> Question:
    text = LESSON.replace("when(rank(' blue') == 1, 1, 2)", answer)
    text = text.replace('choices = ["It is {chosen(1)}", "Another"]\n', choices + within)
    found = read_lesson(text, "lesson.toml").pages[1].question
    assert found is not None
    return found


TYPED = [
    ("1000 + 24", "1024", True), ("1024", "1,024", True), ("1024", " 1030 ", True),
    ("1024", "1100", False), ("'Paris'", " paris", True), ("' Paris'", "␣Paris", True),
    ("'Paris'", "London", False), ("5", "five", False), ("5", "", False), ("5", "nan", False),
    ("5", "1e999", False), ("5", "5" * 5000, False), ("460800", "460,800 bytes", True),
    ("460800", "450 KiB", True), ("460800", "460,800 bytes (450 KiB)", True),
    ("460800", "460 800", True), ("9.5", "9,5 %", True), ("95", "9,5", False),
    ("28311552", "28.3 million", True), ("10", "10 tokens", True),
    ("10", "tokens", False), ("10", "10 or 11", False), ("1024", "1,02,4", False),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "given", "right"), TYPED)
def test_what_is_typed(answer: str, given: str, right: bool) -> None:
    assert judge(question(answer), FACTS, given).right is right


def test_an_exact_number_has_to_be_exact() -> None:
    exact = question("100", within="within = 0.0\n")
    assert judge(exact, FACTS, "100").right
    assert not judge(exact, FACTS, "101").right


@pytest.mark.parametrize(("answer", "place"), [("2", 1), ("'No'", 1), ("1 < 2", 0), ("1 > 2", 1)])
def test_what_is_chosen(answer: str, place: int) -> None:
    asked = question(answer, 'choices = ["Yes", "No"]\n')
    judged = judge(asked, FACTS, place)
    assert (judged.right, judged.choice) == (True, place)
    assert judge(asked, FACTS, 1 - place).right is False


@pytest.mark.parametrize("answer", ["3", "'Perhaps'", "entropy", "1 / 0", "1.5"])
def test_an_answer_that_can_not_be_had_says_why(answer: str) -> None:
    judged = judge(question(answer, 'choices = ["Yes", "No"]\n'), FACTS, 0)
    assert judged.right is None
    assert judged.reason.endswith(".")


MISFITS = [
    ("4", "The measured answer, 4, is none of the choices: they have numbers 1 to 3."),
    ("'Perhaps'", "The measured answer, “Perhaps”, is none of the choices."),
    ("1 > 2", "A comparison that is false fits two choices, not 3. Give a number instead."),
]


@pytest.mark.parametrize(("answer", "words"), MISFITS)
def test_an_answer_that_is_no_choice_says_which(answer: str, words: str) -> None:
    asked = question(answer, 'choices = ["Yes", "No", "Both"]\n')
    assert judge(asked, FACTS, 0).reason.startswith(words)
    assert judge(question("1 < 2", 'choices = ["Yes", "No", "Both"]\n'), FACTS, 0).right


def test_a_share_is_typed_in_percent_or_as_a_number_below_one() -> None:
    asked = replace(question("5"), answer=Expression("", Constant(Quantity(0.3, "share"))))
    for typed in ("30", "30 %", "0.3", "30.0%"):
        assert judge(asked, FACTS, typed).right, typed
    assert not judge(asked, FACTS, "3").right
