"""With a second screen, the class has the window there and the notes stay on the first."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCREENS = [
    {"name": "laptop", "x": 0, "y": 0, "width": 1366, "height": 768},
    {"name": "projector", "x": 1366, "y": 0, "width": 1280, "height": 720},
]
REST = {"logicalDpi": 96, "logicalBaseDpi": 96, "dpr": 1}

LESSON = """
title = "Sums"
summary = "Adding numbers."
model = "tiny"
[[page]]
title = "One and one"
text = "Three is {1 + 2}."
scene = { run = 0 }
[page.question]
ask = "And one and one?"
answer = "1 + 1"
[[page]]
title = "More"
text = "The end."
"""

# In a process of its own: a platform's screens can't be changed later.
SCRIPT = """
import json, os, sys
from pathlib import Path
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMessageBox
app = QApplication(["x"])
from explorer.lessons.lesson import load
from explorer.ui.lessons.notes import LessonNotes
from tests.ui.stage import WindowStage
from tests.ui.waiting import settle, wait_until
stage = WindowStage(app, Path(sys.argv[1]))
window, found = stage.window, {}
stage.loaded().ran(2)
window.move(40, 40)
settle()
before = window.geometry().getRect()
window.presenter.toggle()
settle()
notes = window.presenter.notes
found["class"] = window.geometry().getRect()
found["px"] = window.fontInfo().pixelSize()
found["notes"] = None
if notes is not None:
    found["notes"] = notes.screen().name()
    found["inside"] = notes.screen().geometry().contains(notes.geometry())
    found["words"] = [notes.words]
    found["time"] = notes.time_words
    QTest.keyClick(notes, Qt.Key.Key_Right)
    settle()
    found["words"].append(notes.words)
    steps = len(stage.state.trace.steps)
    QTest.keyClick(notes, Qt.Key.Key_Space)
    stage.steps(1)
    stage.finish()
    settle()
    found["stepped"] = len(stage.state.trace.steps) - steps
    found["words"].append(notes.words)
    course = window.lessons.course
    window.lessons.begin(load(Path(sys.argv[1]) / "lesson.toml"))
    box = window.findChild(QMessageBox, "unsaved")
    box.button(QMessageBox.StandardButton.Discard).click()
    wait_until(lambda: course.measured or course.progress and course.progress.problem, 60)
    settle()
    (page,) = notes.findChildren(LessonNotes)
    told = lambda: (page.heading.text(), page.text.words, page.state.text(), page.following.text())
    wait_until(lambda: page.text.words == "Three is 3.")
    found["lesson"] = [told()]
    course.predict("")
    found["lesson"].append(told())
    page.next_button.click()
    found["lesson"].append(told())
    if len(sys.argv) > 2:
        notes.grab().save(sys.argv[2])
    QTest.keyClick(notes, Qt.Key.Key_Escape)
else:
    window.presenter.toggle()
first = app.primaryScreen()
wait_until(lambda: window.screen() is first and window.geometry().getRect() == before)
settle()
found["after"] = window.presenter.notes is None and not any(
    w.isVisible() for w in app.topLevelWidgets() if w.windowTitle().startswith("Notes"))
found["back"] = window.screen().name()
found["before"] = before
stage.close()
print(json.dumps(found), flush=True)
os._exit(0)
"""


def present(folder: Path, count: int) -> dict[str, object]:
    """What is seen in presenter mode where there are so many screens."""
    (folder / "lesson.toml").write_text(LESSON)
    config = folder / "screens.json"
    config.write_text(json.dumps({"screens": [{**one, **REST} for one in SCREENS[:count]]}))
    env = {**os.environ, "QT_QPA_PLATFORM": f"offscreen:configfile={config}"}
    picture = os.environ.get("NOTES_PICTURE")
    said = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), *([picture] if picture else [])],
        env=env, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    found: dict[str, object] = json.loads(said.stdout.splitlines()[-1])
    return found


@pytest.mark.timeout(240)
def test_the_class_has_the_second_screen_and_the_notes_stay_on_the_first(tmp_path: Path) -> None:
    found = present(tmp_path, 2)
    assert found["class"] == [1366, 0, 1280, 720]
    assert found["px"] == 24
    assert (found["notes"], found["inside"]) == ("laptop", True)
    first, second, third = found["words"]  # type: ignore[misc]
    assert first[:2] == ["On screen: Attention", "Next: Next token"]
    assert second[:2] == ["On screen: Next token", "Next: KV cache"]  # the arrow, in the notes
    assert first[2].startswith("Token 2 of 2")
    assert third[2].startswith("Token 3 of 3")
    assert found["stepped"] == 1  # Space, in the notes
    assert re.fullmatch(r"0 min \d\d s", found["time"][1])  # type: ignore[index]
    assert found["after"] is True
    assert found["back"] == "laptop"
    asked, skipped, last = found["lesson"]  # type: ignore[misc]
    assert asked[:2] == ["One and one", "Three is 3."]
    assert asked[2].startswith("Not answered yet")
    assert asked[3] == "Next page: More"
    assert skipped[2] == "Skipped. Measured: 2"
    assert [last[0], last[3]] == ["More", "This is the last page."]


@pytest.mark.timeout(240)
def test_with_one_screen_there_are_no_notes(tmp_path: Path) -> None:
    found = present(tmp_path, 1)
    assert found["notes"] is None
    assert found["class"] == [0, 0, 1366, 768]
