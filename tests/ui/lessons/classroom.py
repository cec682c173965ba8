"""The real window over the real engine in this process, and a lesson of three pages."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QSize
from PySide6.QtWidgets import QApplication

from explorer.lessons.lesson import Lesson, load
from explorer.session.session import Session
from explorer.ui.access.shortcut_guard import ShortcutGuard
from explorer.ui.lessons.card import LessonCard
from explorer.ui.lessons.lessons import Lessons
from explorer.ui.look.appearance import Appearance
from explorer.ui.settings.settings import Settings
from explorer.ui.threads.bridge import Bridge
from explorer.ui.window import Window
from tests.engine.local_engine import LocalEngine
from tests.ui.waiting import activate, settle, show, wait_until

LESSON = '''\
title = "Copying"
summary = "How a list goes on."
model = "copycat"

[[page]]
title = "A list"
text = """
The prompt has {prompt_tokens} tokens. There is no {token(99)} here."""
look_at = "token:1"
scene = { prompt = " red fish blue bird red fish", run = 1 }

[[page]]
title = "What comes next?"
text = "The list begins again."
look_at = "control:temperature"
[page.question]
ask = "Which token is the most likely?"
answer = "chosen(1)"
hides = ["next-token", "attention"]
explanation = "Its probability is {p(' blue')}."

[[page]]
title = "Two layers"
text = "Layer {layers}."
look_at = "head:1,0"
change = { layer = 1 }
[page.question]
ask = "How many layers does it have?"
choices = ["Two", "Twelve"]
answer = "when(layers == 2, 1, 2)"
hides = "model"
'''


class Classroom:
    """A window in which a lesson is gone through."""

    def __init__(self, app: QApplication, folder: Path) -> None:
        self.app = app
        self.folder = folder
        self._bridge = Bridge()
        self.session = Session(LocalEngine, self._bridge.post)
        self.memory = Settings(folder / "settings.ini")
        self.look = Appearance(app, self.memory, room=QSize(3840, 2160), dressed=False)
        self._guard = ShortcutGuard(app)
        self.window = Window(self.session, self.look, self.memory)
        self.look.dress()  # when all is there, as in the program: each widget is styled once
        show(self.window)
        activate(self.window)
        self.session.start_engine()

    @property
    def lessons(self) -> Lessons:
        return self.window.lessons

    @property
    def card(self) -> LessonCard:
        return self.window.lessons.card

    def file(self, text: str = LESSON, name: str = "copying") -> Path:
        """A lesson file in a folder of its own."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "lesson.toml").write_text(text, encoding="utf-8")
        return folder / "lesson.toml"

    def lesson(self, text: str = LESSON) -> Lesson:
        return load(self.file(text))

    def begin(self, text: str = LESSON) -> None:
        """Open the lesson, until its first page is in place."""
        self.lessons.begin(self.lesson(text))
        self.until_in_place()

    def go(self, page: int) -> None:
        self.lessons.course.go(page)
        self.until_in_place()

    def until_in_place(self) -> None:
        """Until the page's scene is there and its figures are worked out."""
        course = self.lessons.course

        def there() -> bool:
            progress = course.progress
            ended = progress is not None and bool(progress.finished or progress.problem)
            return ended and course.measured

        wait_until(there, 60)
        settle()

    def close(self) -> None:
        self.window.close_at_once()
        self.session.close()
        self._bridge.close()
        self._guard.deleteLater()
        self.window.deleteLater()
        self.app.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        self.app.setStyleSheet("")
