"""Work off the window's thread: the newest request of a lane wins, answers come back in Qt's.

All panels share one thread, for two would only wait for each other (and for the window) to hold
the interpreter's lock.  Long work is a generator: between its answers other lanes get their turn,
and work that is no longer wanted ends there.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache, partial
from types import GeneratorType
from typing import Any

from PySide6.QtCore import QObject

from explorer.ui.threads.bridge import Bridge

__all__ = ["TURN", "Worker"]

TURN = object()  # what long work yields to let others have their turn, with nothing to show
_NOTHING = object()


class _Job:
    """One request: a function, and once it has begun to answer in parts, its generator."""

    def __init__(
        self,
        work: Callable[[], Any],
        done: Callable[[Any], None],
        failed: Callable[[Exception], None] | None,
        ended: Callable[[_Job], None],
    ) -> None:
        self.wanted = True
        self.work, self.done, self.failed, self.ended = work, done, failed, ended
        self.parts: Iterator[Any] | None = None
        self.answer: Any = _NOTHING  # on its way; a newer part takes its place

    def advance(self) -> bool:
        """Do one portion, in the thread; True if there is more to do."""
        try:
            if self.parts is None:
                result = self.work()
                if not isinstance(result, GeneratorType):
                    self._hand_over(result, last=True)
                    return False
                self.parts = result
            part = next(self.parts, _NOTHING)
        except Exception as error:  # it belongs to whoever asked, whatever it is
            _bridge().post(partial(self._give_up, error))
            return False
        if part is not TURN:
            self._hand_over(part, last=part is _NOTHING)
        return part is not _NOTHING

    def stop(self) -> None:
        """End a generator that nobody waits for, in the thread that ran it, and free its answer."""
        if isinstance(self.parts, GeneratorType):
            self.parts.close()
        self.parts, self.answer = None, _NOTHING  # freeing large arrays takes milliseconds

    def _hand_over(self, answer: Any, last: bool) -> None:
        waiting = self.answer is not _NOTHING
        if answer is not _NOTHING:
            self.answer = answer
        if last or not waiting:
            _bridge().post(lambda: self._deliver(last))

    def _deliver(self, last: bool) -> None:
        """In Qt's thread: give the newest answer to whoever asked, if it is still wanted."""
        answer, self.answer = self.answer, _NOTHING
        if not self.wanted:
            return
        if last:
            self.ended(self)
        if answer is not _NOTHING:
            self.done(answer)

    def _give_up(self, error: Exception) -> None:
        if not self.wanted:
            return
        self.ended(self)
        if self.failed is None:
            raise error
        self.failed(error)


class Worker:
    """A panel's door to the shared thread.

    `ask` replaces what the same lane was doing.  After `close`, or once `owner` is gone, nothing
    is delivered any more.
    """

    def __init__(self, owner: QObject) -> None:
        _bridge()  # made here, so that it delivers in this thread
        self._jobs: dict[str, _Job] = {}
        self._next: dict[str, Callable[[], None]] = {}
        self._closed = False
        _thread.join_in()
        owner.destroyed.connect(self.close)

    def ask(
        self,
        lane: str,
        work: Callable[[], Any],
        done: Callable[[Any], None],
        failed: Callable[[Exception], None] | None = None,
        urgent: bool = False,
    ) -> None:
        """Run `work`; `done` gets its result in this thread, `failed` what it raised.

        `urgent` work comes before all that waits.
        If `work` returns a generator, `done` gets each of its answers, except those that a newer
        one overtook.  Without `failed` an exception is raised in this thread.
        """
        if self._closed:
            return
        self.drop(lane)
        job = _Job(work, done, failed, lambda job: self._ended(lane, job))
        self._jobs[lane] = job
        _thread.add(job, urgent)

    def follow(
        self,
        lane: str,
        work: Callable[[], Any],
        done: Callable[[Any], None],
        failed: Callable[[Exception], None],
        at_once: bool = False,
    ) -> None:
        """As `ask`, but what the lane is at is let finish; of what waits the newest is kept.

        For what follows a slider: replaced at each move, no answer would ever be shown.  Work that
        is too little to be felt is done here, `at_once`.
        """
        if at_once:
            self.drop(lane)
            try:
                answer = work()
            except Exception as error:
                failed(error)
                return
            done(answer)
        elif lane in self._jobs:
            self._next[lane] = lambda: self.ask(lane, work, done, failed, urgent=True)
        else:
            self.ask(lane, work, done, failed, urgent=True)

    def drop(self, lane: str) -> None:
        """The lane's answer is no longer wanted."""
        self._next.pop(lane, None)
        job = self._jobs.pop(lane, None)
        if job is not None:
            job.wanted = False

    @property
    def busy(self) -> bool:
        """True while an answer is still to come."""
        return bool(self._jobs)

    def close(self) -> None:
        """End everything; safe at any time and more than once."""
        if self._closed:
            return
        self._closed = True
        for lane in list(self._jobs):
            self.drop(lane)
        _thread.leave()

    def _ended(self, lane: str, job: _Job) -> None:
        if self._jobs.get(lane) is job:
            del self._jobs[lane]
            if lane in self._next:
                self._next.pop(lane)()


class _Thread:
    """The one thread, alive while there is a Worker; jobs take turns."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._jobs: deque[_Job] = deque()
        self._workers = 0
        self._thread: threading.Thread | None = None

    def join_in(self) -> None:
        with self._changed:
            self._workers += 1

    def leave(self) -> None:
        with self._changed:
            self._workers -= 1
            self._changed.notify_all()

    def add(self, job: _Job, urgent: bool) -> None:
        with self._changed:
            if urgent:
                self._jobs.appendleft(job)
            else:
                self._jobs.append(job)
            if self._thread is None:
                # A daemon: a long row of numpy work must not hold up the end of the program.
                self._thread = threading.Thread(target=self._run, name="figures", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            if job.wanted and job.advance():
                with self._changed:
                    self._jobs.append(job)  # behind the others: they get their turn
                continue
            if not job.wanted:
                job.stop()
            # Its functions may hold the last reference to a widget, which must die in Qt's thread.
            over, job = [job], None
            _bridge().post(over.clear)

    def _next(self) -> _Job | None:
        with self._changed:
            while not self._jobs and self._workers:
                self._changed.wait()
            if self._jobs:
                return self._jobs.popleft()
            self._thread = None
            return None


@cache
def _bridge() -> Bridge:
    """Never closed and never deleted, so that the thread can always post to it."""
    return Bridge()


_thread = _Thread()
