"""The lessons that come with the program: every figure and question has its value here."""

from __future__ import annotations

import re

import pytest

from explorer import places
from explorer.cli.commands.lesson import checked
from explorer.lessons import library
from explorer.lessons.figure_text import FigureText
from explorer.lessons.lesson import Lesson, read_lesson
from explorer.lessons.live_figures import NAMES
from explorer.lessons.scene import Scene
from tests.engine.local_engine import LocalEngine

LESSONS = library.shipped()
PANELS = {
    "attention", "next-token", "kv-cache", "timings", "sampling", "surprisal", "branches", "draws",
    "padding", "model", "tokens",
}  # fmt: skip


GUIDE = places.asset("lessons", "README.md").read_text(encoding="utf-8")


def measured(lessons: list[Lesson]) -> None:
    """Every page shows its scene and has all its figures."""
    for found in checked(lessons, LocalEngine):
        for page in found["pages"]:
            unknown = [one for one in page["figures"] if not one["known"]]
            question = page["question"]
            if question is not None and not question["known"]:
                unknown.append(question)
            assert (page["scene_problem"], unknown) == ("", []), (found["name"], page["title"])
        assert found["passed"]


def of_model(name: str) -> list[Lesson]:
    """The lessons that need this model only."""
    return [one for one in LESSONS if {page.scene.model for page in one.pages} <= {name, "copycat"}]


def test_lessons_on_the_bundled_model_are_right() -> None:
    measured(of_model("copycat"))


@pytest.mark.smollm2
def test_lessons_on_smollm2_are_right() -> None:
    small = [one.name for one in of_model("copycat")]
    measured([one for one in of_model("smollm2") if one.name not in small])


def test_each_lesson_is_on_a_model_that_is_there() -> None:
    assert {one.name for one in of_model("smollm2")} == {one.name for one in LESSONS}
    assert [one.name for one in LESSONS] == list(library.ORDER)


@pytest.mark.parametrize("lesson", LESSONS, ids=[one.name for one in LESSONS])
def test_a_lesson_asks_and_points_at_what_there_is(lesson: Lesson) -> None:
    assert 6 <= len(lesson.pages) <= 10
    questions = [page.question for page in lesson.pages if page.question is not None]
    assert len(questions) >= len(lesson.pages) / 2
    for page in lesson.pages:
        hidden = page.question.hides if page.question is not None else ()
        shown = page.scene.view.in_front
        assert set(hidden) | set(shown) <= PANELS
        if page.look_at is not None and page.look_at.kind == "panel":
            assert page.look_at.name in PANELS


@pytest.mark.parametrize("lesson", LESSONS, ids=[one.name for one in LESSONS])
def test_sentences_are_short(lesson: Lesson) -> None:
    for page in lesson.pages:
        texts: list[FigureText | None] = [page.text]
        if page.question is not None:
            texts += [page.question.ask, page.question.explanation]
        for text in filter(None, texts):
            words = "".join(part if isinstance(part, str) else "N" for part in text.parts)
            for sentence in re.split(r"(?<=[.?!:])\s", words):
                assert len(sentence.split()) <= 20, sentence


def test_the_guide_names_every_figure_and_no_other() -> None:
    figures = GUIDE.partition("## Figures")[2]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", figures, re.MULTILINE)
    assert dict(rows) == {name: figure.words for name, figure in NAMES.items()}


def test_the_lesson_of_the_guide_is_one() -> None:
    example = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)[0]
    measured([read_lesson(example, "guide")])


def test_the_guide_names_every_key_of_a_scene() -> None:
    keys = re.findall(r"^\| (`.*?) \| ", GUIDE.partition("## Figures")[0], re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", " ".join(keys)))
    assert named == set(Scene.__struct_fields__) - {"version", "special_as_text"}
