"""Opens and saves traces away from the owner's thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from explorer.session.link import Post

Work = Callable[[], Callable[[], None]]


class Files:
    """One thread that does file work in the order it was asked for."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._queue: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def do(self, work: Work) -> None:
        """Run `work` in the thread; what it returns is posted to the owner's thread."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name="files", daemon=True)
            self._thread.start()
        self._queue.put(work)

    def close(self) -> None:
        """Finish what was asked for, so that no save is cut short, then end the thread."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _loop(self) -> None:
        while (work := self._queue.get()) is not None:
            self._post(work())
