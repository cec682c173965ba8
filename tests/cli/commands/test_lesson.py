"""`lesson`: the list, a check of every figure, and bad lessons; the engine in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from explorer.cli.commands import lesson as command_lesson
from tests.cli.conftest import Done
from tests.engine.local_engine import LocalEngine
from tests.lessons.example import LESSON

Command = Callable[..., Done]


@pytest.fixture(autouse=True)
def local_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_lesson, "EngineProcess", lambda command: LocalEngine())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine" / "lesson.toml"
    path.parent.mkdir()
    path.write_text(LESSON, encoding="utf-8")
    return path


def test_the_list(command: Command) -> None:
    done = command("lesson", "--list", "--json")
    assert (done.code, done.err) == (0, "")
    lessons = json.loads(done.out)["lessons"]
    assert [one["name"] for one in lessons][:3] == ["tokens", "next-token", "attention"]
    assert len(lessons) >= 8
    assert all({"name", "title", "pages", "model"} <= one.keys() for one in lessons)
    assert "next-token" in command("lesson", "--list").out


def test_a_check_measures_every_figure_and_question(command: Command, file: Path) -> None:
    done = command("lesson", file, "--check", "--json")
    assert (done.code, done.err) == (0, ""), done.out
    found = json.loads(done.out)
    one, two = found["pages"]
    assert (found["name"], found["passed"], found["model"]) == ("mine", True, "copycat")
    assert [figure["expression"] for figure in one["figures"]] == ["p(' red')", "token_count"]
    assert one["figures"][1]["value"] == 9
    assert "{" not in one["text"]
    assert two["question"]["right_choice"] in (1, 2)
    assert two["question"]["choices"][0].startswith("It is ")


def test_a_folder_is_a_lesson_too_and_words_are_for_people(command: Command, file: Path) -> None:
    done = command("lesson", file.parent, "--check")
    assert done.code == 0
    assert "Every figure is known." in done.out
    assert "What comes next?" in done.out


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("{token_count}", "{greedy_p}", "has not been run"),
        ("{token_count}", "{p('nosuchtoken')}", "not one token"),
        ("when(rank(' blue') == 1, 1, 2)", "7", "none of the choices"),
        ("layer = 1", "layer = 7", "layers 0 to 1"),
        ('model = "copycat"', 'model = "no-such-model"', "no model called"),
        ('model = "copycat"', 'model = "copicat"', "Did you mean “copycat”?"),
        ("panel:attention", "cell:50,2", "rows and columns 0 to 7. “look_at” asks for cell:50,2."),
        ("panel:attention", "head:5,2", "layers 0 to 1 and heads 0 to 3. “look_at” asks for head"),
        ("panel:attention", "token:70", "tokens 0 to 8. “look_at” asks for token:70."),
        ("run = 2", "run = 2, key = 70", "positions 0 to 7. The scene asks for key 70."),
        ("layer = 1,", "query = 70,", "positions 0 to 7. The scene asks for query 70."),
    ],
)
def test_a_figure_that_can_not_be_had_fails_the_check(
    command: Command, file: Path, old: str, new: str, words: str
) -> None:
    file.write_text(LESSON.replace(old, new), encoding="utf-8")
    done = command("lesson", file, "--check", "--json")
    assert done.code == 1
    found = json.loads(done.out)
    assert not found["passed"]
    assert words in json.dumps(found, ensure_ascii=False)


PROBLEMS = [
    ("layer = 1", "layer = 7", ["line 13: The scene is not in place: "], "1 page has problems: "
     "page 2 (line 13)."),
    ("panel:attention", "token:70", ["line 5: The text has tokens"], "1 page has problems: "
     "page 1 (line 5)."),
    ("{token_count}", "{greedy_p}", ["line 5: not known: greedy_p: "], "1 page has problems: "
     "page 1 (line 5)."),
    ("when(rank(' blue') == 1, 1, 2)", "7", ["line 17: the answer: The measured answer, 7, "],
     "1 page has problems: page 2 (line 13)."),
    ('model = "copycat"', 'model = "copicat"', ["line 5: The scene is not in place: There is no "
     "model called “copicat”. Did", "line 13: The scene is not in place: "],
     "2 pages have problems: page 1 (line 5), page 2 (line 13)."),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "faults", "ending"), PROBLEMS, ids=[p[1] for p in PROBLEMS])
def test_problems_are_told_once_each_with_their_line(
    command: Command, file: Path, old: str, new: str, faults: list[str], ending: str
) -> None:
    file.write_text(LESSON.replace(old, new), encoding="utf-8")
    done = command("lesson", file, "--check")
    assert (done.code, done.err) == (1, "")
    told = [line.strip() for line in done.out.splitlines() if line.startswith("  line ")]
    assert len(told) == len(faults), told
    assert all(one.startswith(fault) for one, fault in zip(told, faults, strict=True)), told
    assert done.out.strip().endswith(ending)


def test_bad_input_is_one_sentence_with_the_line(command: Command, file: Path) -> None:
    file.write_text(LESSON.replace("token_count", "tokn_count"), encoding="utf-8")
    done = command("lesson", file, "--check", "--json")
    assert (done.code, done.out) == (2, "")
    assert "line 9: There is no figure called “tokn_count”" in done.err
    for words in (["no-such-lesson", "--check"], ["attention", "--json"], [""]):
        done = command("lesson", *words)
        assert (done.code, done.out) == (2, "")
        assert done.err.count("\n") == 1


def test_a_window_is_refused_a_lesson_that_is_none(command: Command, file: Path) -> None:
    file.write_text("title = 3", encoding="utf-8")
    for words in (["--lesson", file], ["lesson", file], ["--lesson", "no-such-lesson"]):
        done = command(*words)
        assert (done.code, done.out) == (2, "")
        assert done.err.count("\n") == 1


def test_the_window_gets_the_lesson(
    command: Command, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[object] = []
    monkeypatch.setattr("explorer.app.main", lambda *values: given.append(values) or 0)
    for words in (["--lesson", file], ["lesson", file], ["lesson", "attention"]):
        assert command(*words).code == 0
    assert [values[3].name for values in given] == ["mine", "mine", "attention"]


def test_a_lesson_is_checked_with_its_file_as_it_is() -> None:
    lesson = command_lesson.lesson_named("greedy")
    file = [page.scene.model == "smollm2" for page in lesson.pages]
    assert any(file)
    forms = [page.scene.form for page in command_lesson.in_form(lesson, "as-is").pages]
    assert forms == ["as-is" if one else "" for one in file]
    assert command_lesson.in_form(lesson, "") is lesson
    padding = command_lesson.in_form(command_lesson.lesson_named("padding"), "as-is")
    batches = [page.scene.form for page in padding.pages if page.scene.batch is not None]
    assert set(batches) == {"float32"}  # llama.cpp takes no padding


def test_the_window_gets_the_form_of_a_file(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[object] = []
    monkeypatch.setattr("explorer.app.main", lambda *values: given.append(values) or 0)
    assert command("a.gguf", "--as", "as-is").code == 0
    assert given == [("a.gguf", None, None, None, "as-is")]
