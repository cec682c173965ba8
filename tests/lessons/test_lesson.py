"""Lesson files: what a page says, and every error with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer import places
from explorer.lessons import library
from explorer.lessons.lesson import LookAt, load, read_lesson
from explorer.lessons.toml_lines import LessonFileError
from tests.lessons.example import LESSON


def refusal(text: str) -> LessonFileError | None:
    """Why this is no lesson; None if it is one."""
    try:
        read_lesson(text, "lesson.toml")
    except LessonFileError as error:
        return error
    return None


def test_a_lesson_is_its_pages() -> None:
    lesson = read_lesson(LESSON, "lesson.toml", name="first")
    one, two = lesson.pages
    assert (lesson.name, lesson.title, lesson.minutes) == ("first", "A first lesson", 10)
    assert one.look_at == LookAt("panel", "attention")
    assert [figure.expression.source for figure in one.text.figures] == ["p(' red')", "token_count"]
    assert one.scene.model == "copycat"
    assert two.text.parts == ("Braces {x}",)
    assert two.question is not None
    assert two.question.hides == ("next-token",)


def test_a_change_keeps_the_rest_of_the_scene_before() -> None:
    one, two = read_lesson(LESSON, "lesson.toml").pages
    assert (two.scene.prompt, two.scene.run, two.scene.layer) == (one.scene.prompt, 2, 1)
    assert (two.scene.sampling.temperature, two.scene.sampling.greedy) == (2.0, False)


def test_a_page_without_a_scene_has_the_one_before() -> None:
    text = LESSON.replace("change = { layer = 1, sampling = { temperature = 2.0 } }\n", "")
    one, two = read_lesson(text, "lesson.toml").pages
    assert one.scene == two.scene


CHANGES = [
    ("{token_count}", "{tokn_count}", 9, "Did you mean “token_count”?"),
    ("{p(' red'):%}", "{p(' red'):q}", 8, "is no format"),
    ("{token_count} tokens", "{token_count tokens", 9, "without its }"),
    ("{token_count} tokens", "token_count} tokens", 9, "without its {"),
    ("panel:attention", "../secret", 10, "look_at"),
    ("run = 2", "run = 'two'", 11, "“run” must be a whole number, not text."),
    ("temperature = 2.0", "temprature = 2.0", 16, "Did you mean “temperature”?"),
    ("temperature = 2.0", "temperature = -2.0", 16, "Temperature"),
    ("when(rank", "wen(rank", 20, "Did you mean “when”?"),
    ("when(rank(' blue') == 1, 1, 2)", "dog", 20, """inside: answer = "'dog'"."""),
    ("when(rank(' blue') == 1, 1, 2)", "a dog", 20, """inside: answer = "'a dog'"."""),
    ('"Another"]', "]", 19, "two choices"),
    ('"Another"]', '\n"{x}"]', 20, "no figure called “x”"),
    ('hides = "next-token"', "hides = 3", 21, "“hides”"),
    ('hides = "next-token"', 'hides = "next-tokens"', 21, "Did you mean “next-token”?"),
    ('hides = "next-token"', 'hides = ["tokens",\n"nxt"]', 22, "no panel called “nxt”"),
    ("panel:attention", "panel:atention", 10, "Did you mean “attention”?"),
    ("panel:attention", "control:sed", 10, "Did you mean “seed”?"),
    ("run = 2", "view = { theme = 'drak' }", 11, "Did you mean “dark”?"),
    ("layer = 1", "view = { shown = ['x'] }", 16, "no panel called “x”"),
    ('title = "Two"\n', "", 13, "“title” is missing."),
    ("ask = ", "asks = ", 18, "Did you mean “ask”?"),
    ('ask = "What comes next?"', 'ask = "What', 18, "A text has no closing quote."),
    ('ask = "What comes next?"', "ask = 'What", 18, "A text has no closing quote."),
    ('["It is {chosen(1)}", "', '["It is, "', 19, "A text has no closing quote."),
    ('tokens."""', "tokens.", 7, "has no closing"),
    ('ask = "What comes next?"', "ask = “What?”", 18, "Use straight quotes"),
    ('"Another"]', "“Another”]", 19, "Use straight quotes"),
    ("change = { ", "change = {\n", 16, "Write all of { … } on one line"),
    ("layer = 1, ", "layer = 1,\n", 16, "Write all of { … } on one line"),
    ('[[page]]\ntitle = "Two"', '[page]\ntitle = "Two"', 13, "begins with [[page]]"),
    ('model = "copycat"', 'model = "/etc/passwd"', 3, "model"),
    ('summary = "Two pages"', 'summary = "Two pages"\nminutes = 0', 3, "at least 1"),
    ("change = {", "scene = {}\nchange = {", 17, "not both"),
]


@pytest.mark.parametrize(("old", "new", "line", "words"), CHANGES, ids=[c[1] for c in CHANGES])
def test_what_is_wrong_is_told_with_its_line(old: str, new: str, line: int, words: str) -> None:
    assert old in LESSON
    with pytest.raises(LessonFileError) as refused:
        read_lesson(LESSON.replace(old, new), "lesson.toml")
    assert str(refused.value).startswith(f"lesson.toml, line {line}: "), str(refused.value)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({"{token_count}": "{tokn}", "panel:attention": "x", "1, 2)": "1, 2"}, [9, 10, 20]),
        ({"run = 2": "run = 'two'", "layer = 1": "view = { theme = 'drak' }"}, [11, 16]),
        ({'title = "Two"\n': "", 'model = "copycat"': "model = 3", "run = 2": "rn = 2"}, [3, 13]),
        ({"run = 2": "run = 2, view = { zoom = 9 }"}, [11]),
    ],
)
def test_all_that_is_wrong_is_told_at_once(changes: dict[str, str], lines: list[int]) -> None:
    text = LESSON
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    refused = refusal(text)
    assert refused is not None
    assert [one.line for one in refused.each] == lines


@given(st.text(max_size=30), st.integers(0, len(LESSON)), st.integers(0, 60))
def test_a_damaged_lesson_is_read_or_refused(junk: str, at: int, cut: int) -> None:
    refused = refusal(LESSON[:at] + junk + LESSON[at + cut :])
    assert refused is None or refused.line >= 1


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=9,
    ),
    st.sampled_from(["title", "page", "minutes", "scene", "question", "change"]),
)
def test_values_of_any_kind_are_refused_in_one_sentence(value: object, key: str) -> None:
    import tomlkit

    try:
        table = tomlkit.dumps({key: value} if value is not None else {})
    except (TypeError, ValueError):
        return
    for text in (table, f"{LESSON}\n[page.{key}2]\n{table}", f"{LESSON}\n{table}"):
        assert "\n" not in str(refusal(text)).strip()


def test_a_long_lesson_is_read_at_once() -> None:
    pages = LESSON.partition("[[page]]")[2].replace("[[page]]", "")
    text = LESSON.partition("[[page]]")[0] + ("[[page]]" + pages) * 300
    with pytest.raises(LessonFileError):
        read_lesson(text[:190_000], "long.toml")


def test_a_folder_and_a_file_are_lessons(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "lesson.toml").write_text(LESSON, encoding="utf-8")
    assert load(folder).name == load(folder / "lesson.toml").name == "mine"
    assert library.find(str(folder)).title == "A first lesson"


def test_a_single_page_needs_two_pairs_of_brackets_too() -> None:
    one = LESSON.partition('[[page]]\ntitle = "Two"')[0].replace("[[page]]", "[page]")
    refused = refusal(one)
    assert refused is not None
    assert (refused.line, "begins with [[page]]" in str(refused)) == (5, True)


def test_a_folder_without_a_lesson_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(LessonFileError, match=r"There is no lesson\.toml in this folder"):
        library.find(str(tmp_path))


def test_a_language_without_lessons_has_the_english_ones() -> None:
    assert library.shipped("xx") == library.shipped()


def test_a_fault_in_one_lesson_belongs_to_that_one_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("good", LESSON), ("bad", "title = 3")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lesson.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(places, "asset", lambda *_: tmp_path)
    assert library.find("good").name == "good"
    lessons, faults = library.readable()
    assert [one.name for one in lessons] == ["good"]
    assert {Path(one.file).parent.name for one in faults} == {"bad"}
    with pytest.raises(LessonFileError, match="Lessons: bad, good"):
        library.find("other")


def test_what_is_no_lesson_is_told(tmp_path: Path) -> None:
    for name in (str(tmp_path), str(tmp_path / "none"), "nothing", "", "\0"):
        with pytest.raises(LessonFileError, match="no lesson"):
            library.find(name)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(LessonFileError, match="UTF-8"):
        library.find(str(tmp_path / "bytes.toml"))
