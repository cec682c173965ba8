"""A session with a real engine, or any, that plays scenes in the test's own thread."""

from __future__ import annotations

import queue
from collections.abc import Callable

from explorer.lessons.scene import Scene
from explorer.session.connection.ports import Engine
from explorer.session.scenes import ScenePlayer
from explorer.session.session import Session
from explorer.session.state import SceneProgress, State


class Playing:
    """Runs what is posted until a scene is in place or has failed."""

    def __init__(self, engine: Callable[[], Engine]) -> None:
        self._posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.session = Session(engine, self._posted.put)
        self.player = ScenePlayer(self.session)
        self.session.start_engine()

    @property
    def state(self) -> State:
        return self.session.state

    def until(self, condition: Callable[[State], bool]) -> None:
        while not condition(self.state):
            self._posted.get(timeout=60)()

    def play(self, scene: Scene) -> SceneProgress:
        """How it ended."""
        self.player.play(scene)
        self.until(lambda state: not self.player.playing)
        assert self.state.scene is not None
        return self.state.scene
