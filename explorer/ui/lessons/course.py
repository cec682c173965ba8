"""The lesson that is open: its page, its scene, the student's answers, and what is remembered."""

from __future__ import annotations

import hashlib
import json

from PySide6.QtCore import QObject, Signal

from explorer.lessons.figure_text import joined
from explorer.lessons.given_answers import GivenAnswer
from explorer.lessons.lesson import Lesson, LessonPage
from explorer.session.changes import changed
from explorer.session.scenes import ScenePlayer
from explorer.session.session import Session
from explorer.session.state import LessonPlace, SceneProgress, State
from explorer.ui.lessons.filled_page import FilledPage, fill
from explorer.ui.settings.settings import Settings
from explorer.ui.threads.worker import Worker

_READ_FROM = (
    "trace", "step_index", "selection.layer", "selection.head", "sampling", "card", "vocabulary",
    "comparison", "measured", "batch", "recipe", "request",
)  # fmt: skip


class Course(QObject):
    """Goes through a lesson's pages; each page's scene is played when it is opened."""

    turned = Signal()  # another page is open, or none
    moved = Signal()  # its scene is further on, in place, or has failed
    filled = Signal(object)  # FilledPage: the figures of what is on screen now
    asked = Signal(object)  # FilledPage: those of the page's own scene
    revealed = Signal()  # the question of the page was answered, skipped or opened again

    def __init__(
        self, session: Session, memory: Settings, player: ScenePlayer, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._session = session
        self._memory = memory
        self._player = player
        self._worker = Worker(self)
        self._lesson: Lesson | None = None
        self._index = 0
        self._asked: FilledPage | None = None

    @property
    def lesson(self) -> Lesson | None:
        """The lesson that is open."""
        return self._lesson

    @property
    def index(self) -> int:
        """The page that is open, from 0."""
        return self._index

    @property
    def page(self) -> LessonPage | None:
        """The page that is open."""
        return None if self._lesson is None else self._lesson.pages[self._index]

    @property
    def progress(self) -> SceneProgress | None:
        """How far the page's scene is; None before it begins."""
        page, scene = self.page, self._session.state.scene
        return scene if page is not None and scene and scene.scene is page.scene else None

    @property
    def playing(self) -> bool:
        """True while the scene is being put in place."""
        return self._player.playing

    @property
    def answer(self) -> GivenAnswer | None:
        """The answer to the question of this page, if it was given or skipped."""
        if self._lesson is None:
            return None
        return self._session.answers.of(key_of(self._lesson), self._index)

    @property
    def hidden(self) -> tuple[str, ...]:
        """IDs of the panels that would give the answer away."""
        page = self.page
        open_ = page is not None and page.question is not None and self.answer is None
        return page.question.hides if open_ and page is not None and page.question else ()

    @property
    def measured(self) -> bool:
        """True once the figures of the page's own scene are worked out."""
        return self._asked is not None

    # -- going through it

    def begin(self, lesson: Lesson, index: int | None = None) -> None:
        """Open a lesson; without an `index` on the page where it was left."""
        self._lesson = lesson
        kept = _kept(self._memory, lesson).get("answers")
        self._session.answers.restore(key_of(lesson), kept)
        at = remembered_page(self._memory, lesson) if index is None else index
        self.go(min(max(at, 0), len(lesson.pages) - 1))

    def end(self) -> None:
        """Close the lesson; the run stays."""
        self._player.cancel()
        self._lesson = None
        self._asked = None
        self._worker.drop("text")
        self._worker.drop("question")
        self._session.show_lesson(None)
        self.turned.emit()

    def close(self) -> None:
        """Work nothing out any more."""
        self._worker.close()

    def go(self, index: int) -> None:
        """Open a page and play its scene."""
        lesson = self._lesson
        if lesson is None or not 0 <= index < len(lesson.pages):
            return
        self._index = index
        self._asked = None
        _remember(self._memory, lesson, index)
        place = LessonPlace(lesson.name, lesson.title, index, len(lesson.pages))
        self._session.show_lesson(place)
        self.turned.emit()
        self.restore()

    def turn(self, by: int) -> None:
        """To the next page (+1) or the one before (-1)."""
        self.go(self._index + by)

    def restore(self) -> None:
        """Put the page's scene in place (again)."""
        page = self.page
        if page is not None:
            self._worker.drop("text")
            self._player.play(page.scene)

    def cancel(self) -> None:
        """Stop the scene where it is."""
        self._player.cancel()

    def show_state(self, old: State | None, new: State) -> None:
        """Follow the scene, and work out the figures again when what is on screen changes."""
        if self._lesson is None:
            return
        if changed(old, new, "scene"):
            progress = self.progress
            if progress is not None and (progress.finished or progress.problem):
                self._fill(new, own=True)
            self.moved.emit()
        elif not self.playing and changed(old, new, *_READ_FROM):
            self._fill(new, own=False)

    def _fill(self, state: State, own: bool) -> None:
        page = self.page
        if page is None:
            return

        def done(found: FilledPage) -> None:
            if page is not self.page:
                return
            if own:
                self._asked = found
                self.asked.emit(found)
                self._judge_again()
            self.filled.emit(found)

        # The question's figures are those of the page's own scene: what follows does not drop them.
        self._worker.ask("question" if own else "text", lambda: fill(page, state), done)

    # -- its questions

    def predict(self, predicted: str) -> None:
        """Answer the question of this page; an empty prediction skips it."""
        lesson, page, asked = self._lesson, self.page, self._asked
        if lesson is None or page is None or page.question is None or asked is None:
            return
        found = asked.judged(predicted)
        self._session.answers.put(
            GivenAnswer(
                lesson=key_of(lesson),
                page=self._index,
                question=joined(asked.ask),
                predicted=predicted,
                measured=found.measured or found.reason,
                right=found.right,
            )
        )
        self._keep_answers(lesson)
        self.revealed.emit()

    def ask_again(self) -> None:
        """Hide the answer and ask once more."""
        if self._lesson is not None:
            self._session.answers.drop(key_of(self._lesson), self._index)
            self._keep_answers(self._lesson)
            self.revealed.emit()

    def start_over(self) -> None:
        """Forget all answers and which pages were read, and open the first page."""
        lesson = self._lesson
        if lesson is not None:
            for index in range(len(lesson.pages)):
                self._session.answers.drop(key_of(lesson), index)
            self._memory.put(f"lessons/{key_of(lesson)}", "{}")
            self.go(0)

    def _judge_again(self) -> None:
        """Beside a prediction of earlier stands what is measured now."""
        answer, asked = self.answer, self._asked
        if answer is None or asked is None:
            return
        words = asked.choice_words
        if words and answer.predicted and answer.predicted not in words:
            self.ask_again()  # the lesson's file has other choices now
        else:
            self.predict(answer.predicted)

    def _keep_answers(self, lesson: Lesson) -> None:
        _keep(self._memory, lesson, answers=self._session.answers.kept(key_of(lesson)))


def key_of(lesson: Lesson) -> str:
    """Under which a lesson is remembered: two files of one name are two lessons."""
    place = hashlib.sha256(lesson.file.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{lesson.name[:60]}-{place}"


def _remember(memory: Settings, lesson: Lesson, index: int) -> None:
    seen = sorted({*pages_seen(memory, lesson), index})
    _keep(memory, lesson, page=index, seen=seen)


def _keep(memory: Settings, lesson: Lesson, **changes: object) -> None:
    memory.put(f"lessons/{key_of(lesson)}", json.dumps({**_kept(memory, lesson), **changes}))


def pages_seen(memory: Settings, lesson: Lesson) -> frozenset[int]:
    """The pages that were opened at some time, from 0."""
    seen = _kept(memory, lesson).get("seen")
    known = range(len(lesson.pages))
    found = seen if isinstance(seen, list) else []
    return frozenset(one for one in found if type(one) is int and one in known)


def remembered_page(memory: Settings, lesson: Lesson) -> int:
    """The page on which a lesson was left, from 0."""
    page = _kept(memory, lesson).get("page")
    return page if type(page) is int and 0 <= page < len(lesson.pages) else 0


def _kept(memory: Settings, lesson: Lesson) -> dict[str, object]:
    try:
        found = json.loads(memory.text(f"lessons/{key_of(lesson)}", "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
