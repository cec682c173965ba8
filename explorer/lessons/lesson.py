"""Lessons: pages of text with live figures, a scene each, and questions to answer beforehand.

A lesson is a folder with one `lesson.toml`.  The folder's name is the lesson's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from explorer import disk
from explorer.lessons.expressions import Expression, ExpressionError, parse
from explorer.lessons.figure_text import FigureText, FigureTextError, parse_text
from explorer.lessons.live_figures import NAMES
from explorer.lessons.scene import PanelId, Scene, is_model_name, scene_of
from explorer.lessons.screen_names import CONTROLS, HIDEABLE, PANELS, refusal
from explorer.lessons.toml_faults import PAGES
from explorer.lessons.toml_lines import MOST_CHARACTERS, Document, Faults, LessonFileError, read
from explorer.lessons.toml_lines import Path as Place

FILE = "lesson.toml"
MOST_PAGES = 60
_NO_MODEL = "“model” must be a model's name, such as copycat."
_LOOK_AT = re.compile(
    r"(panel|control):[A-Za-z][\w.-]{0,60}|token:\d{1,6}|(cell|head):\d{1,6},\d{1,6}"
)

_WORDS = re.compile(r"\s*[^\W\d]+(?: [^\W\d]+){0,5}\s*")  # an answer that lacks its quotes

Title = Annotated[str, Meta(min_length=1, max_length=120)]
Text = Annotated[str, Meta(min_length=1, max_length=4_000)]


@dataclass(frozen=True, slots=True)
class Question:
    """Something to predict before the measured answer is shown."""

    ask: FigureText
    choices: tuple[FigureText, ...]  # none: the answer is typed
    answer: Expression  # a number or text; with choices: the choice's number from 1, or its text
    within: float  # a typed number may miss by this share of the answer
    hides: tuple[str, ...]  # IDs of the panels that show the answer
    explanation: FigureText | None
    line: int


@dataclass(frozen=True, slots=True)
class LookAt:
    """What a page points at: a panel or control by name, or a token, map cell or head by number."""

    kind: str  # panel, control, token, cell, head
    name: str = ""
    first: int = 0  # token or query position, or layer
    second: int = 0  # key position, or head


@dataclass(frozen=True, slots=True)
class LessonPage:
    """One page: what to read, where to look, and what the window shows meanwhile."""

    title: str
    text: FigureText
    look_at: LookAt | None
    scene: Scene
    question: Question | None
    line: int


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson that was read and found to be whole."""

    name: str
    file: str
    title: str
    summary: str
    model: str
    minutes: int
    pages: tuple[LessonPage, ...]


class _QuestionTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    ask: Text
    answer: Annotated[str, Meta(min_length=1)] | float
    choices: Annotated[tuple[Title, ...], Meta(max_length=6)] = ()
    within: Annotated[float, Meta(ge=0, le=1)] = 0.02
    hides: PanelId | Annotated[tuple[PanelId, ...], Meta(max_length=20)] = ()
    explanation: Annotated[str, Meta(max_length=4_000)] = ""


class _PageTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    title: Title
    text: Text
    look_at: str = ""
    scene: dict[str, Any] | str = "same"
    change: dict[str, Any] = {}
    question: _QuestionTable | None = None


class _LessonTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    title: Title
    summary: Text
    model: Title
    page: Annotated[tuple[_PageTable, ...], Meta(min_length=1, max_length=MOST_PAGES)]
    minutes: Annotated[int, Meta(ge=1, le=600)] = 10
    version: Annotated[int, Meta(ge=1, le=1)] = 1


def load(path: Path) -> Lesson:
    """The lesson in a folder or a lesson file; LessonFileError with file and line."""
    file = path / FILE if path.is_dir() else path
    try:
        text = disk.read_text(file, most=4 * MOST_CHARACTERS)
    except disk.TextError as error:
        raise LessonFileError(str(file), 0, str(error)) from error
    return read_lesson(text, str(file), name=file.parent.name if file.name == FILE else file.stem)


def read_lesson(text: str, file: str, name: str = "") -> Lesson:
    """The lesson in a file's text; LessonFileError with all that is wrong, by lines, if not."""
    document, faults = read(text, file), Faults()
    if isinstance(document.values.get("page"), dict):
        raise document.error(("page",), PAGES)
    table = _table(document)
    if not is_model_name(table.model):
        faults.of(lambda: document.refuse(("model",), _NO_MODEL))
    pages: list[LessonPage | None] = []
    values: dict[str, Any] = {"model": table.model, "run": 0}
    places: dict[str, Place] = {}
    for number, page in enumerate(table.page):
        at: Place = ("page", number)
        known = partial(_scene_values, document, page, at, table.model, values, places)
        before = values, places  # what is wrong in one page's scene is reported once
        values, places = faults.of(known) or before
        scene = faults.of(partial(scene_of, document, values, at, places))
        values, places = before if scene is None else (values, places)
        pages.append(faults.of(partial(_page, document, page, scene or Scene(), at)))
    faults.tell()
    return Lesson(
        name=name,
        file=file,
        title=table.title,
        summary=table.summary,
        model=table.model,
        minutes=table.minutes,
        pages=tuple(filter(None, pages)),
    )


def _table(document: Document) -> _LessonTable:
    """The file's tables; LessonFileError with what is wrong in each page's own."""
    values, faults, each = document.values, Faults(), Faults()
    table = faults.of(lambda: document.convert(values, _LessonTable, ()))
    pages = values.get("page")
    if table is None and isinstance(pages, list) and 1 <= len(pages) <= MOST_PAGES:
        for number, page in enumerate(pages):
            each.of(partial(document.convert, page, _PageTable, ("page", number)))
        whole = {**values, "page": [{"title": " ", "text": " "}]}
        each.of(lambda: document.convert(whole, _LessonTable, ()))
    each.tell()
    faults.tell()
    assert table is not None
    return table


def _scene_values(
    document: Document,
    page: _PageTable,
    at: Place,
    model: str,
    before: dict[str, Any],
    places: dict[str, Place],
) -> tuple[dict[str, Any], dict[str, Place]]:
    """The keys of a page's scene, and the table that each of them is written in."""
    if isinstance(page.scene, dict):
        if page.change:
            raise document.error((*at, "change"), "A page has a “scene” or a “change”, not both.")
        return {"model": model, **page.scene}, dict.fromkeys(page.scene, (*at, "scene"))
    if page.scene != "same":
        words = "“scene” must be a table, or the word same. Changes go into “change”."
        raise document.error((*at, "scene"), words)
    changed = {
        key: {**before[key], **value}
        if isinstance(value, dict) and isinstance(before.get(key), dict)
        else value
        for key, value in page.change.items()
    }
    return {**before, **changed}, {**places, **dict.fromkeys(changed, (*at, "change"))}


def _page(document: Document, page: _PageTable, scene: Scene, at: Place) -> LessonPage:
    faults, question = Faults(), page.question
    look_at = faults.of(partial(_look_at, document, page.look_at, (*at, "look_at")))
    text = faults.of(partial(_text, document, page.text, (*at, "text")))
    asked = None
    if question is not None:
        asked = faults.of(partial(_question, document, question, (*at, "question")))
    faults.tell()
    assert text is not None
    return LessonPage(
        title=page.title,
        text=text,
        look_at=look_at,
        scene=scene,
        question=asked,
        line=document.line(at),
    )


def _look_at(document: Document, text: str, at: Place) -> LookAt | None:
    if not text:
        return None
    if not _LOOK_AT.fullmatch(text):
        words = "“look_at” is one of panel:NAME, control:NAME, token:4, cell:5,2 or head:1,0."
        raise document.error(at, words)
    kind, _, rest = text.partition(":")
    if kind in ("panel", "control"):
        if unknown := refusal(rest, PANELS if kind == "panel" else CONTROLS, kind):
            raise document.error(at, unknown)
        return LookAt(kind, rest)
    first, _, second = rest.partition(",")
    return LookAt(kind, "", int(first), int(second or 0))


def _question(document: Document, table: _QuestionTable, at: Place) -> Question:
    faults = Faults()
    if len(table.choices) == 1:
        words = "A question has two choices or more, or none."
        faults.of(partial(document.refuse, (*at, "choices"), words))
    choices = [
        faults.of(partial(_text, document, one, (*at, "choices", number)))
        for number, one in enumerate(table.choices)
    ]
    explained = None
    if table.explanation:
        words_at = (*at, "explanation")
        explained = faults.of(partial(_text, document, table.explanation, words_at))
    hides = (table.hides,) if isinstance(table.hides, str) else table.hides
    for number, name in enumerate(hides):
        if name and (unknown := refusal(name, HIDEABLE, "panel")):
            faults.of(partial(document.refuse, (*at, "hides", number), unknown))
    ask = faults.of(partial(_text, document, table.ask, (*at, "ask")))
    answer = faults.of(partial(_answer, document, table, (*at, "answer")))
    faults.tell()
    assert ask is not None
    assert answer is not None
    return Question(
        ask=ask,
        choices=tuple(filter(None, choices)),
        answer=answer,
        within=table.within,
        hides=tuple(filter(None, hides)),
        explanation=explained,
        line=document.line(at),
    )


def _answer(document: Document, table: _QuestionTable, at: Place) -> Expression:
    try:
        return parse(str(table.answer), NAMES)
    except ExpressionError as error:
        words = str(error)
        if _WORDS.fullmatch(text := str(table.answer)):
            words += f""" For text, put it in single quotes inside: answer = "'{text.strip()}'"."""
        raise document.error(at, words) from error


def _text(document: Document, source: str, at: Place) -> FigureText:
    try:
        return parse_text(source.strip("\n"), NAMES)
    except FigureTextError as error:
        skipped = len(source) - len(source.lstrip("\n"))
        line = document.starts.get(at, document.line(at)) + skipped + error.line
        raise LessonFileError(document.file, line, str(error)) from error
