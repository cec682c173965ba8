"""Opens and saves traces away from the owner's thread."""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Callable
from functools import partial

from explorer import disk
from explorer import sampling as chain
from explorer.session.connection.engine_link import Post
from explorer.session.state import Saved
from explorer.trace.files import dxt
from explorer.trace.files.saved_extras import SavedExtras
from explorer.trace.trace import Trace

Work = Callable[[], Callable[[], None]]
Failed = Callable[[str], None]  # given one sentence
_log = logging.getLogger(__name__)


class FileThread:
    """One thread that does file work in the order it was asked for."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._queue: queue.SimpleQueue[tuple[Work, Failed, str] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def do(self, work: Work, failed: Failed, what: str) -> None:
        """Run `work` in the thread; what it returns is posted to the owner's thread.

        If it raises, `failed` is posted instead, and its sentence begins with `what` failed:
        "x.dxt could not be opened".
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name="files", daemon=True)
            self._thread.start()
        self._queue.put((work, failed, what))

    def open(
        self,
        path: str | os.PathLike[str],
        opened: Callable[[Trace, SavedExtras], None],
        failed: Failed,
    ) -> None:
        """Read a .dxt file."""

        def work() -> Callable[[], None]:
            try:
                trace, beside = dxt.load_whole(path)
                for one in (trace, *(sibling.trace for sibling in beside.branches)):
                    for step in one.steps:
                        chain.check(step.sampling)
            except dxt.DxtError as error:
                return partial(failed, str(error))
            except chain.SamplingError as error:
                return partial(failed, f"{os.fspath(path)} is damaged: {error} {dxt.AFTER_DAMAGE}")
            return partial(opened, trace, beside)

        self.do(work, failed, f"{os.fspath(path)} could not be opened")

    def save(
        self,
        trace: Trace,
        beside: SavedExtras,
        path: str | os.PathLike[str],
        saved: Callable[[Saved], None],
        failed: Failed,
    ) -> None:
        """Write a .dxt file."""

        def work() -> Callable[[], None]:
            try:
                dxt.save(trace, path, beside)
            except dxt.DxtError as error:
                return partial(failed, str(error))
            return partial(saved, Saved(trace, os.path.abspath(path), beside))

        self.do(work, failed, f"{os.fspath(path)} could not be written")

    def close(self) -> None:
        """Finish what was asked for, so that no save is cut short, then end the thread."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _loop(self) -> None:
        while (asked := self._queue.get()) is not None:
            work, failed, what = asked
            try:
                answer = work()
            except Exception as error:  # whatever it is, what is asked for next is done
                _log.exception("%s", what)
                reason = disk.why(error).rstrip(".")
                answer = partial(failed, f"{what}: {reason}. See the log for details.")
            self._post(answer)
