"""A process that runs one .gguf file by llama.cpp and speaks the engine's frames.

Two threads: one reads frames and passes them on, one ends a process that obeys no cancel or has
fallen silent.  However it ends, each request that is still due gets an answer.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from explorer import places
from explorer.trace.wire import framing, messages
from explorer.trace.wire.framing import RawFrame
from explorer.trace.wire.messages import AnyRequest, Event
from explorer.wording import how_ended

COMMAND = (sys.executable, "-P", "-m", "explorer", "llama-engine")
PATIENCE_SECONDS = 7.0  # after a cancel; less than the window's own, which ends this process, too
SILENT_SECONDS = 60.0  # while an answer is due; it says every few seconds that it is there
CLOSE_SECONDS = 0.8
_LOOK_SECONDS = 0.25
_ENDS = {kind.__name__ for kind in messages.ENDS}
_UNSAID = ("Hello", "Alive")  # the engine in between says these itself
STUCK = "llama.cpp did not stop on request, so it was ended. Try again: the file is opened again."
SILENT = f"llama.cpp was ended because it had sent nothing for {SILENT_SECONDS:.0f} s. Try again."


class LlamaProcess:
    """One child, from its start to its end."""

    def __init__(
        self,
        forward: Callable[[RawFrame], None],
        say: Callable[[Event], None],
        lost: Callable[[str], Event],
        command: Sequence[str] | None = None,
    ) -> None:
        """`forward` takes each frame, from another thread.

        `lost` words the answer to what is due when it ends by itself, from how it did; `say` is
        handed these answers.
        """
        self._forward = forward
        self._say = say
        self._lost = lost
        self._changed = threading.Condition()
        # Runs not answered to the end, and for how many more looks those cancelled may go on.
        self._due: dict[int, int | None] = {}
        self._over = False
        self._why: Event | None = None  # why it was ended, as the answer to what is due
        self.crashed = False  # it ended by itself
        self._silent = 0  # looks since it was heard
        self._writing = threading.Lock()
        self._command = command or COMMAND
        self._child: Any = None

    def start(self) -> None:
        """OSError if it can't be.

        On Linux the thread that calls this must live as long as the process (`parent_watch`).
        """
        self._child = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=places.child_environment(),
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        for work in (self._read, self._watch):
            threading.Thread(target=work, name=f"llama.cpp {work.__name__}", daemon=True).start()

    @property
    def alive(self) -> bool:
        """False once it has ended or is being ended."""
        return not self._over and self._why is None

    def ask(self, request: AnyRequest) -> None:
        """Hand over a request that will be answered."""
        with self._changed:
            self._due[request.run] = None
            self._silent = 0
            over = self._over
        if over:
            self._answer([request.run])
        else:
            self._write(request)

    def concerns(self, request: messages.Cancel | messages.Resample) -> bool:
        """True if it is about a request that is due; then it is handed over."""
        with self._changed:
            if request.run not in self._due:
                return False
            if isinstance(request, messages.Cancel):
                self._due[request.run] = round(PATIENCE_SECONDS / _LOOK_SECONDS)
        self._write(request)
        return True

    def wait(self, run: int) -> None:
        """Return once the request of this number is answered, however it was."""
        with self._changed:
            self._changed.wait_for(lambda: run not in self._due)

    def end(self, why: Event | None = None) -> None:
        """End it by force; what is due gets `why` for an answer, with its own number."""
        self._why = self._why or why or messages.Finished(reason="cancelled")
        with contextlib.suppress(OSError):
            self._child.kill()

    def close(self) -> None:
        """End it, kindly for a moment and then by force, and wait until nothing more is said."""
        self._why = self._why or messages.Finished(reason="cancelled")
        self._write(messages.Quit())
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(CLOSE_SECONDS)
        with contextlib.suppress(OSError):
            self._child.kill()
        with self._changed:
            self._changed.wait_for(lambda: self._over, SILENT_SECONDS)

    def _write(self, request: AnyRequest) -> None:
        # A broken pipe is the reader's to notice and to tell; a closed one is a ValueError.
        with contextlib.suppress(OSError, ValueError), self._writing:
            framing.write_request(self._child.stdin, request)

    # -- threads

    def _read(self) -> None:
        with contextlib.suppress(framing.WireError, MemoryError), self._child.stdout as pipe:
            while (frame := framing.read_raw(pipe)) is not None:
                self._silent = 0
                if frame.header.kind in _UNSAID or self._why is not None:
                    continue
                self._forward(frame)
                if frame.header.kind in _ENDS:
                    with self._changed:
                        self._due.pop(frame.header.run, None)
                        self._changed.notify_all()
        self._child.kill()  # if it lives still, it said what is no frame
        code = self._child.wait()
        with contextlib.suppress(OSError):
            self._child.stdin.close()
        with self._changed:
            self.crashed = self._why is None
            self._why = self._why or self._lost(how_ended(code))
            self._over = True
            due = [*self._due]
        self._answer(due)

    def _watch(self) -> None:
        """End it when it does not obey, or says nothing though an answer is due.

        Counted in looks, not by the clock: this process may have been stopped itself (Ctrl-Z).
        """
        while not self._over:
            with self._changed:
                self._changed.wait_for(lambda: self._over, _LOOK_SECONDS)
                cancelled = {run: left - 1 for run, left in self._due.items() if left is not None}
                self._due |= cancelled
                self._silent = self._silent + 1 if self._due else 0
            if any(left <= 0 for left in cancelled.values()):
                self.end(messages.Failed(sentence=STUCK, bad_input=False))
            elif self._silent * _LOOK_SECONDS > SILENT_SECONDS:
                self.end(messages.Failed(sentence=SILENT, bad_input=False))

    def _answer(self, runs: list[int]) -> None:
        """End requests that nobody else answers any more; those cancelled as if it had obeyed."""
        for run in runs:
            cancelled = self._due.get(run) is not None
            why = messages.Finished(reason="cancelled") if cancelled else self._why
            assert why is not None
            self._say(msgspec.structs.replace(why, run=run))
        with self._changed:
            for run in runs:
                self._due.pop(run, None)
            self._changed.notify_all()
