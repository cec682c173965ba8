"""The window on the real teaching model, its engine in a process of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication, QPushButton

from explorer.session.connection.remote import EngineProcess
from explorer.session.session import Session
from explorer.session.state import State
from explorer.ui.look.appearance import Appearance
from explorer.ui.settings.settings import Settings
from explorer.ui.threads.bridge import Bridge
from explorer.ui.window import Window
from tests.ui.waiting import show, wait_until

PATIENCE_MS = 120_000


class Program:
    """Session, bridge and window as `app` puts them together."""

    def __init__(self, app: QApplication, folder: Path) -> None:
        self.engines: list[EngineProcess] = []
        self.bridge = Bridge()
        self.session = Session(self._engine, self.bridge.post)
        memory = Settings(folder / "settings.ini")
        look = Appearance(app, memory, dressed=False)
        self.window = Window(self.session, look, memory)
        look.dress()
        show(self.window)

    def _engine(self) -> EngineProcess:
        self.engines.append(EngineProcess())
        return self.engines[-1]

    def until(self, reached: Callable[[State], bool]) -> State:
        """Run Qt's loop until a state is there that `reached` accepts."""
        loop, timer = QEventLoop(), QTimer()
        timer.setSingleShot(True)
        timer.timeout.connect(loop.quit)
        stop = self.session.subscribe(lambda _, new: reached(new) and loop.quit())
        if not reached(self.session.state):
            timer.start(PATIENCE_MS)
            loop.exec()
        stop()
        assert reached(self.session.state), self.session.state.status
        return self.session.state

    def read(self, model: str, prompt: str) -> None:
        """Open a model and make the first step of this prompt."""
        self.session.start_engine()
        self.session.open_model(model)
        self.session.set_prompt(prompt)
        self.until(lambda s: s.card is not None and bool(s.prompt_tokens))
        self.session.step()
        self.until(lambda s: steps(s) == 1 and idle(s))

    def close(self) -> None:
        self.window.close()
        self.session.close()
        self.bridge.close()
        self.window.deleteLater()


@pytest.fixture
def program(qapp: QApplication, tmp_path: Path) -> Iterator[Program]:
    program = Program(qapp, tmp_path)
    yield program
    program.close()


def steps(state: State) -> int:
    return 0 if state.trace is None else len(state.trace.steps)


def idle(state: State) -> bool:
    """Nothing that the user asked for is under way; the self-check may be."""
    return state.status.activity in ("idle", "checking")


def shown(program: Program, name: str) -> bool:
    panels = {panel.ID: panel for panel in program.window.docks.panels}
    return not panels[name].empty


@pytest.mark.timeout(300)
def test_open_step_back_and_go_on_after_the_engine_was_killed(program: Program) -> None:
    program.session.start_engine()
    program.session.open_model("copycat")
    program.window.prompt.edit.setPlainText("one two three one two")
    state = program.until(lambda s: s.card is not None and bool(s.prompt_tokens))
    assert program.window.prompt.count_text.startswith(f"{len(state.prompt_tokens)} of ")

    actions = program.window.actions_table.by_id
    actions["step"].trigger()
    program.until(lambda s: steps(s) == 1 and idle(s))
    actions["step"].trigger()
    state = program.until(lambda s: steps(s) == 2 and idle(s))
    wait_until(lambda: program.window.docks.settled)  # the lower panels come a little later
    for panel in ("attention", "next-token", "kv-cache", "timings"):
        assert shown(program, panel), panel
    assert state.trace is not None
    first = state.trace.chosen_ids

    actions["back"].trigger()
    actions["cut"].trigger()
    program.until(lambda s: steps(s) == 1)
    actions["step"].trigger()
    state = program.until(lambda s: steps(s) == 2 and idle(s))
    assert state.trace is not None
    assert state.trace.chosen_ids == first

    pid = program.engines[-1].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    program.until(lambda s: s.status.activity == "lost")
    lost = program.window.notices.lost
    assert lost.isVisible()
    kept = program.session.state.trace  # the self-check may have ended meanwhile
    assert kept is not None
    assert kept.steps == state.trace.steps
    lost.findChildren(QPushButton)[0].click()
    program.until(lambda s: s.card is not None and idle(s))
    assert not lost.isVisible()
    actions["step"].trigger()
    state = program.until(lambda s: steps(s) == 3 and idle(s))
    assert state.trace is not None
    assert state.trace.chosen_ids[:2] == first


def test_closing_while_the_model_loads_is_clean(program: Program) -> None:
    program.session.start_engine()
    program.session.open_model("copycat")
    program.until(lambda s: s.status.activity == "loading")
    program.close()
    assert not program.engines[-1].alive
