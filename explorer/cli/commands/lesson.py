"""`lesson`: open a lesson, list the lessons there are, or measure every figure of one."""

from __future__ import annotations

import argparse
import queue
from collections.abc import Callable, Iterator
from typing import Any

from explorer.cli.commands.engine import engine_command
from explorer.cli.document import print_json, print_table
from explorer.cli.errors import BAD_USE, CHECK_FAILED, DONE, CommandError
from explorer.figures.text.characters import printable
from explorer.lessons import library
from explorer.lessons.answers import choices_of, judge
from explorer.lessons.figure_text import FigureText, filled, joined
from explorer.lessons.lesson import Lesson, LessonPage, Question
from explorer.lessons.quantities import NotKnown, Value
from explorer.lessons.run_facts import RunFacts
from explorer.lessons.toml_lines import LessonFileError
from explorer.session.connection.remote import EngineProcess
from explorer.session.lesson_facts import facts_of
from explorer.session.scenes import ScenePlayer
from explorer.session.session import Session


def run(arguments: argparse.Namespace) -> int:
    """List, check or open; a lesson file that can't be read is refused with its line."""
    if arguments.list:
        return _list(arguments.json)
    named = [] if arguments.lesson is None else [lesson_named(arguments.lesson)]
    if arguments.check:
        lessons = named or list(library.shipped())
        return _check(lessons, arguments.engine, arguments.json, one=bool(named))
    if arguments.json:
        raise CommandError("--json goes with --list or --check.")
    if not named:
        return _list(as_json=False)
    return _open(named[0], arguments.engine)


def lesson_named(name: str) -> Lesson:
    """A lesson by name or file; CommandError with file and line if it can't be read."""
    try:
        return library.find(name)
    except LessonFileError as error:
        raise CommandError(str(error)) from error


def _open(lesson: Lesson, engine: str | None) -> int:
    engine_command(engine)
    try:
        from explorer.app import main as app_main
    except ImportError as error:
        raise CommandError(f"The window can't be opened: {error}.", BAD_USE) from error
    return int(app_main(None, None, engine, lesson))


def _list(as_json: bool) -> int:
    lessons = library.shipped()
    if as_json:
        print_json({"lessons": [_listed(one) for one in lessons]})
        return DONE
    rows = [(one.name, one.title, str(len(one.pages)), one.model) for one in lessons]
    print_table(("lesson", "title", "pages", "model"), rows, left={0, 1, 3})
    return DONE


def _listed(lesson: Lesson) -> dict[str, Any]:
    return {
        "name": lesson.name,
        "title": lesson.title,
        "pages": len(lesson.pages),
        "model": lesson.model,
        "minutes": lesson.minutes,
        "summary": lesson.summary,
    }


# -- checking


def _check(lessons: list[Lesson], engine: str | None, as_json: bool, one: bool) -> int:
    command = engine_command(engine)
    found = list(checked(lessons, lambda: EngineProcess(command)))
    passed = all(lesson["passed"] for lesson in found)
    if as_json:
        print_json(found[0] if one else {"passed": passed, "lessons": found})
    else:
        for lesson in found:
            _print(lesson)
    return DONE if passed else CHECK_FAILED


def checked(lessons: list[Lesson], engine: Callable[[], Any]) -> Iterator[dict[str, Any]]:
    """What each lesson shows when its scenes are put in place one after the other."""
    posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    session = Session(engine, posted.put)
    player = ScenePlayer(session)
    try:
        session.start_engine()
        for lesson in lessons:
            pages = [_page(session, player, posted, page) for page in lesson.pages]
            passed = all(page.pop("passed") for page in pages)
            yield {**_listed(lesson), "passed": passed, "pages": pages}
    finally:
        player.close()
        session.close()


def _page(
    session: Session,
    player: ScenePlayer,
    posted: queue.SimpleQueue[Callable[[], None]],
    page: LessonPage,
) -> dict[str, Any]:
    player.play(page.scene)
    while player.playing:
        try:
            posted.get(timeout=0.5)()  # without a timeout Ctrl-C would go unheard on Windows
        except queue.Empty:
            if session.state.plan is not None:
                player.cancel()
    progress = session.state.scene
    problem = "" if progress is None or progress.finished else progress.problem
    facts = facts_of(session.state)
    text, figures = _text(page.text, facts)
    question = None if page.question is None else _question(page.question, facts)
    known = all(one["known"] for one in (*figures, *([question] if question else [])))
    return {
        "title": page.title,
        "line": page.line,
        "text": text,
        "scene_problem": problem,
        "figures": figures,
        "question": question,
        "passed": known and not problem,
    }


def _text(text: FigureText, facts: RunFacts) -> tuple[str, list[dict[str, Any]]]:
    parts = filled(text, facts, facts.panels.visible)
    figures = [
        {"expression": part.expression, "text": part.text, **_value(part.value)}
        for part in parts
        if part.value is not None
    ]
    return joined(parts), figures


def _value(value: Value) -> dict[str, Any]:
    if isinstance(value, NotKnown):
        return {"value": None, "unit": "", "known": False, "reason": value.reason}
    return {"value": value.value, "unit": value.unit, "known": True, "reason": ""}


def _question(question: Question, facts: RunFacts) -> dict[str, Any]:
    ask, figures = _text(question.ask, facts)
    explanation = ""
    if question.explanation is not None:
        explanation, more = _text(question.explanation, facts)
        figures += more
    for choice in question.choices:
        figures += _text(choice, facts)[1]
    judged = judge(question, facts)
    value = _value(question.answer.value(facts))
    reason = value["reason"] or judged.reason
    return {
        "ask": ask,
        "choices": list(choices_of(question, facts)),
        "answer": question.answer.source,
        **value,
        "measured": judged.measured,
        "right_choice": None if judged.choice is None else judged.choice + 1,
        "explanation": explanation,
        "figures": figures,
        "known": value["known"] and not judged.reason and all(one["known"] for one in figures),
        "reason": reason,
    }


def _print(lesson: dict[str, Any]) -> None:
    print(f"{lesson['title']} ({lesson['name']}, {lesson['model']})")
    for number, page in enumerate(lesson["pages"], 1):
        print(f"\n{number}. {page['title']}\n{printable(page['text'], keep=chr(10)).strip()}")
        if page["scene_problem"]:
            print(f"  The scene is not in place: {page['scene_problem']}")
        question = page["question"]
        figures = [*page["figures"], *(question["figures"] if question else [])]
        for figure in figures:
            if not figure["known"]:
                print(f"  not known: {figure['expression']}: {figure['reason']}")
        if question:
            print(f"  {question['ask']} → {question['measured'] or question['reason']}")
            if question["explanation"]:
                print(f"  {question['explanation'].strip()}")
    print("\nEvery figure is known.\n" if lesson["passed"] else "\nSome figures are not known.\n")
