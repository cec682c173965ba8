"""An engine in a process of its own, spoken to over its stdin and stdout.

The default child is `python -m explorer engine`; any command that speaks the same frames will do,
such as `ssh gpu-box …/decoder-explorer engine`.  Four threads: one writes requests (so that a full
pipe never blocks the caller), one reads frames, one keeps the child's stderr in the log file, one
waits for the child's end and gives up a child that says nothing while an answer is due.  To a
child on another machine the last one also says every few seconds that the client is there: that
engine ends itself when it hears nothing more, however the line between them was lost.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from explorer import disk, places
from explorer.figures.text.characters import elide
from explorer.session.connection import lost_words
from explorer.session.connection.log import RotatingLog
from explorer.trace.wire import framing
from explorer.trace.wire.messages import (
    ALIVE_SECONDS,
    ENDS,
    HEARS_CLIENT,
    Alive,
    AnyRequest,
    Cancel,
    ClientAlive,
    Event,
    Failed,
    Hello,
    Lost,
    Progress,
    Quit,
    Resample,
)
from explorer.wording import how_ended

HELLO_SECONDS = 60.0  # a cold disk, or a connection to another machine
SILENT_SECONDS = 60.0  # many times what passes between two signs of life
CLOSE_SECONDS = 0.8
UNREADABLE = "The engine's answers could not be read"
_LONGEST = 120  # letters of a fault, in a sentence
_JUST_NOW = 3.0  # seconds: what was said on stderr before an end is its reason
_LOGGING = 0  # place of the logging thread


class EngineProcess:
    """The Engine port over a child process."""

    def __init__(
        self,
        command: Sequence[str] | None = None,
        hello: float = HELLO_SECONDS,
        silence: float = SILENT_SECONDS,
    ) -> None:
        """A child is given up that has not greeted for `hello` seconds.

        Later, one that has sent nothing for `silence` seconds while an answer is due.
        """
        self._command = list(command or (sys.executable, "-P", "-m", "explorer", "engine"))
        self._given = self._command if command else None
        self._environment = None if command else places.child_environment()
        self._hello = hello
        self._silence = silence
        self._pipe: _WatchedPipe | None = None
        self._due: set[int] = set()  # runs that have not been answered to the end
        self._requests: queue.SimpleQueue[AnyRequest | None] = queue.SimpleQueue()
        self._child: subprocess.Popen[bytes] | None = None
        self._threads: list[threading.Thread] = []
        self._on_event: Callable[[Event], None] | None = None
        self._speaking = threading.RLock()  # held while an event is handed over
        self._greeted = threading.Event()
        self._gone = threading.Event()
        self._hears = False  # it ends by itself once it hears nothing more of its client
        self._last_words = b""  # of its stderr: the likely reason of an end
        self._last_words_at = 0.0
        self._over = False

    @property
    def alive(self) -> bool:
        """True from start until it is lost or closed."""
        return self._child is not None and not self._over

    @property
    def elsewhere(self) -> bool:
        """True if it is not this program's own: the line to it may be slow."""
        return self._given is not None

    @property
    def received_bytes(self) -> int:
        """What has come from it so far."""
        return 0 if self._pipe is None else self._pipe.received_bytes

    @property
    def pid(self) -> int | None:
        """The child's process id, once it is started."""
        return None if self._child is None else self._child.pid

    def start(self, on_event: Callable[[Event], None]) -> None:
        """Start the child; `on_event` is called from a reader thread, in order."""
        self._on_event = on_event
        try:
            self._child = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environment,
                **_own_group(),
            )
        except (OSError, ValueError) as error:
            why = disk.why(error)
            self._lose(lost_words.not_found(self._command, why, given=self._given is not None))
            return
        self._job = _tied(self._child)
        for work in (self._log, self._write, self._read, self._watch):
            thread = threading.Thread(target=work, name=f"engine {work.__name__[1:]}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def send(self, request: AnyRequest) -> None:
        """Hand over a request; returns at once."""
        if self._over:
            return
        if not isinstance(request, Cancel | Resample | Quit):
            self._due.add(request.run)
        self._requests.put(request)

    def close(self) -> None:
        """End the child, kindly for a moment and then by force; no event comes after this."""
        with self._speaking:
            self._over = True
            self._on_event = None
        child = self._child
        if child is None:
            return
        self._requests.put(Quit())
        self._requests.put(None)
        self._greeted.set()
        self._gone.set()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(CLOSE_SECONDS)
        self._kill()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(CLOSE_SECONDS)

    # -- threads

    def _write(self) -> None:
        # A broken pipe is the reader's to notice and to tell.
        with contextlib.suppress(OSError), self._running().stdin as pipe:
            while (request := self._requests.get()) is not None:
                try:
                    framing.write_request(pipe, request)
                except UnicodeEncodeError:
                    self._say(Failed(run=request.run, sentence=_not_unicode(request)))
                except framing.WireError as error:
                    words = f"This is too large for the engine ({error}). Shorten the prompt."
                    self._say(Failed(run=request.run, sentence=words))
                except (OverflowError, msgspec.MsgspecError) as error:
                    words = f"The engine can't take this request: {error}. Use smaller values."
                    self._say(Failed(run=request.run, sentence=words))

    def _read(self) -> None:
        with self._running().stdout as pipe:
            watched: Any = _WatchedPipe(pipe)
            self._pipe = watched
            try:
                while (event := framing.read_event(watched)) is not None:
                    if not self._greeted.is_set() and not isinstance(event, Hello):
                        raise framing.WireError("it did not start with a greeting")
                    if isinstance(event, Hello) and self._given and HEARS_CLIENT in event.features:
                        self._hears = True
                        self._requests.put(ClientAlive(seconds=self._silence))
                    self._greeted.set()
                    if not isinstance(event, Alive):
                        self._say(event)
            except Exception as error:  # MemoryError, too: nobody else would tell that it is over
                if isinstance(error, framing.CutShort):
                    self._end()
                    return
                wrong = isinstance(error, framing.WireError) and self._greeted.is_set()
                self._end(self._fault(error, watched), unreadable=wrong)
            else:
                self._end()

    def _fault(self, error: Exception, pipe: Any) -> str:
        """What was wrong with that which was read."""
        if isinstance(error, framing.OtherProtocol):
            return str(error)
        start = getattr(error, "start", b"")
        if start and not self._greeted.is_set():
            return lost_words.printed_first(start + pipe.peek(_LONGEST)).rstrip(".")
        return elide(" ".join(str(error).split()), _LONGEST) or type(error).__name__

    def _watch(self) -> None:
        """Give up a child that says nothing; then wait for its end, so that no zombie is left."""
        words = ""
        if not self._greeted.wait(self._hello):
            words = lost_words.no_greeting(self._given, self._hello)
        elif self._falls_silent():
            words = lost_words.fell_silent(self._given, self._silence)
        if words:
            self._lose(words)  # before the reader finds that its pipe has ended
            self._kill()
        self._running().wait()

    def _falls_silent(self) -> bool:
        """True once nothing has come for too long while an answer is due; False at the end.

        Counted in looks, not by the clock: this process may have been stopped itself (Ctrl-Z).
        """
        every = min(1.0, self._silence / 4)
        silent, received, unsaid = 0.0, -1, 0.0
        while not self._gone.wait(every):
            unsaid += every
            if self._hears and unsaid >= min(ALIVE_SECONDS, self._silence / 3):
                unsaid = 0.0
                if self._requests.empty():  # while the line is stalled, they are not heaped up
                    self._requests.put(ClientAlive(seconds=self._silence))
            pipe = self._pipe
            if pipe is None:
                continue
            idle = pipe.waiting and pipe.received == received
            silent, received = silent + every if idle and self._due else 0.0, pipe.received
            if silent >= self._silence:
                return True
            if silent >= self._silence / 4:
                self._say_silent(silent)
        return False

    def _say_silent(self, seconds: float) -> None:
        for run in sorted(self._due):
            self._say(Progress(run=run, text=lost_words.still_silent(seconds)))

    def _log(self) -> None:
        log = RotatingLog(places.log_file())
        with self._running().stderr as pipe:
            while line := pipe.readline(1 << 16):
                log.write(line)
                if line.strip():
                    self._last_words, self._last_words_at = line, time.monotonic()

    # -- the end

    def _end(self, fault: str = "", unreadable: bool = False) -> None:
        """Say Lost, with what was wrong with its answers or else with how the child ended."""
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._running().wait(CLOSE_SECONDS)
        self._kill()
        self._threads[_LOGGING].join(CLOSE_SECONDS)
        if fault:
            how = "" if code is None or self._greeted.is_set() else how_ended(code)
            words = f"{UNREADABLE}{how}: {fault}."
        elif self._greeted.is_set():
            recent = time.monotonic() - self._last_words_at < _JUST_NOW
            words = lost_words.broke_off(self._given, code, self._last_words if recent else b"")
        else:
            words = lost_words.not_started(self._given, code, self._last_words)
        self._lose(words, unreadable)

    def _lose(self, words: str, unreadable: bool = False) -> None:
        with self._speaking:
            self._say(Lost(sentence=words, unreadable=unreadable))
            self._over = True
        self._greeted.set()
        self._gone.set()
        self._requests.put(None)

    def _say(self, event: Event) -> None:
        if isinstance(event, ENDS):
            self._due.discard(event.run)
        with self._speaking:
            if self._on_event is not None and not self._over:
                self._on_event(event)

    def _kill(self) -> None:
        """End the child and whatever it started, by force."""
        child = self._running()
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                child.kill()
            elif child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
        child.wait()

    def _running(self) -> Any:
        assert self._child is not None
        return self._child


class _WatchedPipe:
    """A pipe that another thread can see to be waited on, and to fill: a large frame comes slowly.

    Read a piece at a time, for a whole array of a frame may take minutes.
    """

    def __init__(self, pipe: Any) -> None:
        self._pipe = pipe
        self.received = 0  # pieces so far
        self.received_bytes = 0
        self.waiting = False

    def readinto(self, view: memoryview) -> int:
        """Bytes that were there to be read; 0 at the end."""
        self.waiting = True
        count: int = self._pipe.readinto1(view)
        self.waiting = False
        self.received += 1
        self.received_bytes += count
        return count

    def peek(self, count: int) -> bytes:
        """What is there to be read next, left where it is."""
        found: bytes = self._pipe.peek(count)
        return found


def _not_unicode(request: AnyRequest) -> str:
    """Why a request can't be sent: names of files may be any bytes, and frames hold UTF-8."""
    model = getattr(request, "model", "")
    try:
        model.encode()
    except UnicodeEncodeError:
        return f"The path {model} is not UTF-8. Rename the file or folder, then open it again."
    return "The text contains half of a character (a lone surrogate). Delete it."


def _own_group() -> dict[str, Any]:
    """Ctrl-C on the terminal is the parent's to handle: it ends the child itself.

    Without a terminal ssh can't wait for a password there, unseen.
    """
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


def _tied(child: subprocess.Popen[bytes]) -> Any:
    """What ends a child with this process on Windows; elsewhere the engine sees to that itself."""
    if sys.platform == "win32":
        from explorer.session.connection import windows_job

        return windows_job.tie(int(child._handle))
    return None
