"""`lesson`: open a lesson, list the lessons there are, or measure every figure of one."""

from __future__ import annotations

import argparse
import queue
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import msgspec

from explorer import smollm2
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
from explorer.lessons.screen_names import refusal
from explorer.lessons.toml_lines import LessonFileError
from explorer.session.connection.remote import EngineProcess
from explorer.session.lesson_facts import facts_of, not_there
from explorer.session.scenes import ScenePlayer
from explorer.session.session import Session
from explorer.trace.request import Form

_ALWAYS = ("copycat", "smollm2")  # known to every installation, also before a download


def run(arguments: argparse.Namespace) -> int:
    """List, check or open; a lesson file that can't be read is refused with its line."""
    if arguments.list:
        return _list(arguments.json)
    named = [] if arguments.lesson is None else [lesson_named(arguments.lesson)]
    if arguments.check:
        lessons = named or list(library.shipped())
        lessons = [in_form(lesson, arguments.form) for lesson in lessons]
        return _check(lessons, arguments.engine, arguments.json, one=bool(named))
    if arguments.form:
        raise CommandError("--as goes with --check.")
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
        raise CommandError("\n".join(map(str, error.each))) from error


def _open(lesson: Lesson, engine: str | None) -> int:
    engine_command(engine)
    try:
        from explorer.app import main as app_main
    except ImportError as error:
        raise CommandError(f"The window can't be opened: {error}.", BAD_USE) from error
    return int(app_main(None, None, engine, lesson))


def _list(as_json: bool) -> int:
    lessons, faults = library.readable()
    if as_json:
        print_json({"lessons": [_listed(one) for one in lessons]})
    else:
        rows = [(one.name, one.title, str(len(one.pages)), one.model) for one in lessons]
        print_table(("lesson", "title", "pages", "model"), rows, left={0, 1, 3})
    if faults:
        raise CommandError("\n".join(map(str, faults)))
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
    measured = list(_measured(lessons, lambda: EngineProcess(command)))
    found = [lesson for lesson, _ in measured]
    passed = all(lesson["passed"] for lesson in found)
    if as_json:
        print_json(found[0] if one else {"passed": passed, "lessons": found})
    else:
        for lesson, faults in measured:
            _print(lesson, faults)
    return DONE if passed else CHECK_FAILED


def in_form(lesson: Lesson, form: Form) -> Lesson:
    """The lesson with its .gguf files opened in this form; "" = as its scenes say.

    A scene that works in one form only keeps that one.
    """
    if not form:
        return lesson
    scenes = [page.scene for page in lesson.pages]
    formed = [
        msgspec.structs.replace(scene, form=scene.needed_form or form)
        if _is_file(scene.model)
        else scene
        for scene in scenes
    ]
    pages = [replace(page, scene=s) for page, s in zip(lesson.pages, formed, strict=True)]
    return replace(lesson, pages=tuple(pages))


def _is_file(model: str) -> bool:
    return model == smollm2.NAME or model.lower().endswith(".gguf")


def checked(lessons: list[Lesson], engine: Callable[[], Any]) -> Iterator[dict[str, Any]]:
    """What each lesson shows when its scenes are put in place one after the other."""
    return (lesson for lesson, _ in _measured(lessons, engine))


def _measured(
    lessons: list[Lesson], engine: Callable[[], Any]
) -> Iterator[tuple[dict[str, Any], list[list[str]]]]:
    """Each lesson as the check shows it, and the faults of each of its pages."""
    posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    session = Session(engine, posted.put)
    player = ScenePlayer(session)
    try:
        session.start_engine()
        for lesson in lessons:
            shown = [_page(session, player, posted, page) for page in lesson.pages]
            faults = [found for _, found in shown]
            pages = [page for page, _ in shown]
            yield {**_listed(lesson), "passed": not any(faults), "pages": pages}, faults
    finally:
        player.close()
        session.close()


def _page(
    session: Session,
    player: ScenePlayer,
    posted: queue.SimpleQueue[Callable[[], None]],
    page: LessonPage,
) -> tuple[dict[str, Any], list[str]]:
    player.play(page.scene)

    def idle() -> None:
        if session.state.plan is not None:
            player.cancel()

    _go_on(posted, lambda: player.playing, idle)
    progress = session.state.scene
    unplaced = "" if progress is None or progress.finished else progress.problem
    no_model = unplaced.startswith("There is no model")
    if no_model and (hint := _other_model(session, posted, page.scene.model)):
        unplaced = hint
    problem = unplaced or not_there(page, session.state)
    facts = facts_of(session.state)
    text, figures = _text(page.text, facts)
    question = None if page.question is None else _question(page.question, facts)
    shown = {
        "title": page.title,
        "line": page.line,
        "text": text,
        "scene_problem": problem,
        "figures": figures,
        "question": question,
    }
    if unplaced:  # nothing else can be told of this page
        return shown, [f"line {page.line}: The scene is not in place: {unplaced}"]
    faults = [f"line {page.line}: {problem}"] if problem else []
    for one in (*figures, *(question["figures"] if question else [])):
        if not one["known"]:
            faults.append(f"line {page.line}: not known: {one['expression']}: {one['reason']}")
    if question and question["reason"] and page.question:
        faults.append(f"line {page.question.line}: the answer: {question['reason']}")
    return shown, faults


def _go_on(
    posted: queue.SimpleQueue[Callable[[], None]],
    going: Callable[[], bool],
    idle: Callable[[], None] = lambda: None,
) -> None:
    """Run what is posted while `going`; `idle` is called whenever nothing came for a while."""
    while going():
        try:
            posted.get(timeout=0.5)()  # without a timeout Ctrl-C would go unheard on Windows
        except queue.Empty:
            idle()


def _other_model(session: Session, posted: queue.SimpleQueue[Callable[[], None]], name: str) -> str:
    """What to say of a model that is not on this computer; "" if it is."""
    session.models.find()
    _go_on(posted, lambda: session.state.finding)
    found = session.state.library
    names = [] if found is None else [model.name for model in found.models]
    return refusal(name, sorted({*names, *_ALWAYS}), "model")


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


def _print(lesson: dict[str, Any], faults: list[list[str]]) -> None:
    print(f"{lesson['title']} ({lesson['name']}, {lesson['model']})")
    for number, page in enumerate(lesson["pages"], 1):
        print(f"\n{number}. {page['title']}\n{printable(page['text'], keep=chr(10)).strip()}")
        for fault in faults[number - 1]:
            print(f"  {fault}")
        question = page["question"]
        if question and not any("not in place" in one for one in faults[number - 1]):
            print(f"  {question['ask']} → {question['measured'] or question['reason']}")
            if question["explanation"]:
                print(f"  {question['explanation'].strip()}")
    print(f"\n{_ending(lesson['pages'], faults)}\n")


def _ending(pages: list[dict[str, Any]], faults: list[list[str]]) -> str:
    """Which pages have problems, in one sentence."""
    bad = [
        f"page {number} (line {page['line']})"
        for number, (page, found) in enumerate(zip(pages, faults, strict=True), 1)
        if found
    ]
    if not bad:
        return "Every figure is known."
    count = "1 page has" if len(bad) == 1 else f"{len(bad)} pages have"
    return f"{count} problems: {', '.join(bad)}."
