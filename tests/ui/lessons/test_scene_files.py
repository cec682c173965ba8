"""Scenes in files: what is saved comes back the same, and a bad file is refused in a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from explorer.lessons.scene import Scene, SceneView
from explorer.session.saving.scene_capture import captured
from explorer.trace.request import Sampling
from explorer.ui.frame import saved_view
from tests.ui.lessons.classroom import Classroom
from tests.ui.waiting import settle, wait_until


@pytest.fixture
def room(qapp: QApplication, tmp_path: Path) -> Iterator[Classroom]:
    room = Classroom(qapp, tmp_path)
    yield room
    room.look.set_theme("light")
    room.close()


def now(room: Classroom) -> Scene:
    view = saved_view.look_at(room.window.docks, room.look)
    return captured(room.session.state, view, room.look.scale)


def opened(room: Classroom, path: Path) -> None:
    room.lessons.open_scene(str(path))

    def over() -> bool:
        scene = room.session.state.scene
        return scene is not None and bool(scene.finished or scene.problem)

    wait_until(over, 60)
    settle()


def test_a_scene_that_was_saved_lays_out_the_same_screen(room: Classroom, tmp_path: Path) -> None:
    room.look.set_theme("light")
    first = Scene(
        model="copycat",
        prompt=" red fish blue bird red fish",
        sampling=Sampling(greedy=False, temperature=1.5, seed=7),
        run=3,
        step=1,
        layer=1,
        head=2,
        query=3,
        view=SceneView(shown=("attention", "next-token", "padding"), theme="dark", zoom=1.0),
    )
    file = tmp_path / "first.toml"
    room.lessons.save_scene(first, file)
    opened(room, file)
    laid_out = now(room)
    assert (laid_out.model, laid_out.prompt, laid_out.run) == ("copycat", first.prompt, 3)
    assert (laid_out.step, laid_out.layer, laid_out.head, laid_out.query) == (1, 1, 2, 3)
    assert laid_out.sampling == first.sampling
    assert set(laid_out.view.shown) == {"attention", "next-token", "padding"}
    assert room.look.theme.name == "dark"

    room.lessons.save_scene(laid_out, tmp_path / "again.toml")
    room.look.set_theme("light")
    room.window.reset_layout()
    room.session.set_prompt(" blue bird")
    room.session.step()
    wait_until(lambda: not room.session.state.busy)
    room.session.select(layer=0, head=0)
    assert now(room) != laid_out
    room.session.reset()
    opened(room, tmp_path / "again.toml")
    assert now(room) == laid_out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("run = -1", "line 1"),
        ('prompt = "a"\nmodel = "../../etc"', "line 2"),
        ('engine = "rm -rf"', "engine"),
        ("[[[", "line 1"),
    ],
)
def test_a_bad_scene_is_refused_in_one_sentence(
    room: Classroom, tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text, encoding="utf-8")
    room.lessons.open_scene(str(file))
    assert words in room.session.state.error
    assert "bad.toml" in room.session.state.error
    assert room.session.state.scene is None


def test_a_scene_that_cannot_be_written_says_so(room: Classroom, tmp_path: Path) -> None:
    room.lessons.save_scene(Scene(), tmp_path / "none" / "scene.toml")
    assert room.session.state.error.startswith("The scene was not saved")
