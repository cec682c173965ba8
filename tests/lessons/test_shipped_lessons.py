"""The lessons that come with the program: every figure and question has its value here."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from explorer import places
from explorer.cli.commands.lesson import checked
from explorer.engine.training import job
from explorer.lessons import library
from explorer.lessons.expressions import parse
from explorer.lessons.figure_text import FigureText
from explorer.lessons.lesson import Lesson, read_lesson
from explorer.lessons.live_figures import NAMES
from explorer.lessons.quantities import NotKnown, Value
from explorer.lessons.run_facts import RunFacts
from explorer.lessons.scene import Scene
from explorer.session.lesson_facts import facts_of
from explorer.trace.request import Sampling
from tests.engine.local_engine import LocalEngine
from tests.engine.training.stand_in import StandIn
from tests.session.playing import Playing

LESSONS = library.shipped()
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


def test_lessons_on_the_bundled_model_are_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is trained is a stand-in, whose figures are there at once."""
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path))
    monkeypatch.setattr(job, "Training", StandIn)
    measured(of_model("copycat"))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_lessons_that_train_a_model_are_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path))
    measured([one for one in LESSONS if any(page.scene.train for page in one.pages)])


@pytest.mark.smollm2
def test_lessons_on_smollm2_are_right() -> None:
    small = [one.name for one in of_model("copycat")]
    measured([one for one in of_model("smollm2") if one.name not in small])


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda one: one.name)
def test_each_page_shows_the_panels_that_it_needs_and_no_others(lesson: Lesson) -> None:
    for page in lesson.pages:
        shown, target = page.scene.view.shown, page.look_at
        assert 1 <= len(shown) <= 2, page.title
        if target is not None and target.kind == "panel":
            assert target.name in shown, page.title
        if target is not None and target.kind in ("cell", "head"):
            assert "attention" in shown, page.title


def test_each_lesson_is_on_a_model_that_is_there() -> None:
    assert {one.name for one in of_model("smollm2")} == {one.name for one in LESSONS}
    assert [one.name for one in LESSONS] == list(library.ORDER)


@pytest.mark.parametrize("lesson", LESSONS, ids=[one.name for one in LESSONS])
def test_a_lesson_asks(lesson: Lesson) -> None:
    assert 6 <= len(lesson.pages) <= 10
    questions = [page.question for page in lesson.pages if page.question is not None]
    assert len(questions) >= len(lesson.pages) / 2


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
    assert {name: words for name, words, _, _ in figure_rows()} == {
        name: figure.words for name, figure in NAMES.items()
    }


def test_the_guide_marks_what_follows_the_step_and_what_has_to_be_run() -> None:
    marked = {name for name, _, step, _ in figure_rows() if step}
    needs = {name: need for name, _, _, need in figure_rows() if need}
    playing = Playing(LocalEngine)
    try:
        sampling = Sampling(greedy=False, temperature=1.5)
        scene = Scene(
            model="copycat", prompt=" red fish blue bird red fish", run=3, sampling=sampling
        )
        assert playing.play(scene).problem == ""
        facts = facts_of(playing.state)
    finally:
        playing.session.close()
    first = {name: worked(name, replace(facts, step=0)) for name in NAMES}
    latest = {name: worked(name, facts) for name in NAMES}
    unknown = {name for name, value in latest.items() if isinstance(value, NotKnown)}
    assert unknown == set(needs) - {"number_drawn"}
    moved = {name for name in NAMES if first[name] != latest[name]}
    assert moved <= marked
    assert marked - moved <= {"mask_gap", "p_other", *STEADY}


STEADY = {
    "rank", "kept", "chosen_rank", "attention", "head_score", "this_head", "best_layer",
    "best_head",
}  # fmt: skip
ARGUMENTS = {
    "when": "(1, 2, 3)", "round": "(1)", "abs": "(1)", "max": "(1, 2)", "min": "(1, 2)",
    "attention": "(1, 0)", "parameters_of": "('table')",
    **dict.fromkeys(("p", "p_after", "rank", "p_other", "drawn_share"), "(' red')"),
    **dict.fromkeys(("head_score", "this_head", "best_layer", "best_head"), "('first')"),
}  # fmt: skip


def worked(name: str, facts: RunFacts) -> Value:
    """The figure with arguments that fit."""
    usual = "(1)" if NAMES[name].least else ""
    return parse(name + ARGUMENTS.get(name, usual), NAMES).value(facts)


def figure_rows() -> list[tuple[str, str, str, str]]:
    """(name, meaning, step, needs) of the guide's table of figures."""
    rows = GUIDE.partition("## Figures")[2].splitlines()
    cells = [
        [cell.strip() for cell in row.strip("|").split("|")] for row in rows if row[:3] == "| `"
    ]
    return [(one[0].strip("`"), one[1], one[2], one[3]) for one in cells]


def test_the_lesson_of_the_guide_is_one() -> None:
    example = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)[0]
    lesson = read_lesson(example, "guide")
    measured([lesson])
    (found,) = checked([lesson], LocalEngine)
    assert "The prompt has 6 tokens." in found["pages"][0]["text"]
    assert "next token is ␣blue" in found["pages"][0]["text"]


def test_the_guide_names_every_key_of_a_scene() -> None:
    keys = re.findall(r"^\| (`.*?) \| ", GUIDE.partition("## Figures")[0], re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", " ".join(keys)))
    assert named == set(Scene.__struct_fields__) - {"version", "special_as_text"}
