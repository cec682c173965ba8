"""One engine process, spoken to in turn: ask, read the answers, end."""

from __future__ import annotations

import queue
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any

import msgspec

from explorer.cli import terminal
from explorer.cli.errors import BAD_USE, ENGINE_FAILED, CommandError
from explorer.figures.text import warnings
from explorer.figures.text.characters import printable
from explorer.session.connection import other_versions
from explorer.session.connection.remote import EngineProcess
from explorer.trace.batch import BatchRequest
from explorer.trace.card import ModelCard
from explorer.trace.request import CacheType, Form, RunRequest, Sampling
from explorer.trace.wire import messages as m
from explorer.trace.wire.bounds import require_bounded
from explorer.wording import progress_percent

_LAST = (m.Loaded, m.Facts, m.Batched, m.Tokens, m.Finished)


class Client:
    """A context manager around an EngineProcess; the engine ends with it, whatever happens."""

    def __init__(self, command: Sequence[str] | None = None) -> None:
        self._engine = EngineProcess(command)
        self._events: queue.SimpleQueue[m.Event] = queue.SimpleQueue()
        self._run = 0
        self._progress = ProgressLine()
        self._said: set[str] = set()

    def __enter__(self) -> Client:
        self._engine.start(self._events.put)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.clear()
        self._engine.close()

    def answers(self, request: m.AnyRequest) -> Iterator[m.Event]:
        """Every answer to one request but progress, to the last; CommandError if it fails."""
        self._run += 1
        yield from self.further(request)

    def further(self, request: m.AnyRequest) -> Iterator[m.Event]:
        """What still comes of the request before, once this has been added to it."""
        self._engine.send(msgspec.structs.replace(request, run=self._run))
        while True:
            event = self._next()
            if isinstance(event, m.Lost):
                raise CommandError(event.sentence, BAD_USE if event.unreadable else ENGINE_FAILED)
            if isinstance(event, m.Hello) and self._engine.elsewhere:
                self.note(other_versions.difference(event.versions))
            if event.run != self._run:
                continue
            if isinstance(event, m.Progress):
                self._progress.show(event.text, event.fraction)
            elif isinstance(event, m.Failed):
                raise CommandError(event.sentence, BAD_USE if event.bad_input else ENGINE_FAILED)
            else:
                yield event
                if isinstance(event, _LAST):
                    self._progress.clear()
                    return

    def load(
        self,
        model: str,
        dtype: str = "float32",
        device: str = "cpu",
        form: Form = "",
        cache_type_k: CacheType = "f16",
        gpu_layers: int = 0,
        test_again: bool = False,
    ) -> ModelCard:
        """Open a model, and tell what is to be known of it.

        `test_again`: also if what works on it is known from an earlier time.
        """
        request = m.Load(
            model=model,
            dtype=dtype,
            device=device,
            cache_type_k=cache_type_k,
            gpu_layers=gpu_layers,
            form=form,
            test_again=test_again,
            anew=True,
        )
        for event in self.answers(request):
            if isinstance(event, m.Loaded):
                self.warn(warnings.of_card(event.card))
                return event.card
        raise CommandError("The engine gave no model.", ENGINE_FAILED)

    def load_for(self, request: RunRequest) -> ModelCard:
        """Open the model of a run as the run asks for it."""
        return self.load(
            request.model,
            request.dtype,
            request.device,
            request.form,
            request.cache_type_k,
            request.gpu_layers,
        )

    def facts(self, request: m.AnyRequest, kind: type | None = None) -> dict[str, Any]:
        """The answer to a question; CommandError if it has not the fields of `kind`."""
        for event in self.answers(request):
            if isinstance(event, m.Facts):
                try:
                    if kind is not None:
                        msgspec.convert(event.facts, kind)
                except msgspec.ValidationError as error:
                    raise CommandError(f"The engine's answer is invalid: {error}.") from error
                return event.facts
        raise CommandError("The engine gave no answer.", ENGINE_FAILED)

    @property
    def received_bytes(self) -> int:
        """What has come from the engine so far."""
        return self._engine.received_bytes

    def warn(self, sentences: Iterable[str]) -> None:
        """Sentences on stderr about what is going to be shown."""
        for sentence in sentences:
            self.note(sentence)

    def note(self, sentence: str) -> None:
        """A sentence on stderr that is no error, once; nothing if it is empty."""
        self._progress.clear()
        if sentence and sentence not in self._said:
            self._said.add(sentence)
            terminal.complain(sentence)

    def progress(self, text: str, fraction: float | None = None) -> None:
        """Show what is going on, on a terminal only."""
        self._progress.show(text, fraction)

    def _next(self) -> m.Event:
        while True:
            try:
                # Without a timeout Ctrl-C would go unheard on Windows.
                return self._events.get(timeout=0.5)
            except queue.Empty:
                continue


def require_possible(asked: BatchRequest | RunRequest | Sampling) -> None:
    """CommandError if a number is larger than any frame or file may hold."""
    try:
        require_bounded(asked)
    except ValueError as error:
        raise CommandError(f"This value is not allowed: {error}.") from error


class ProgressLine:
    """One line on stderr that overwrites itself; silent unless stderr is a terminal."""

    def __init__(self) -> None:
        self._shown = 0
        self._on = sys.stderr is not None and sys.stderr.isatty()

    def show(self, text: str, fraction: float | None = None) -> None:
        if self._on:
            line = text if fraction is None else f"{text} {progress_percent(fraction)}"
            line = printable(line)[:78]
            terminal.overwrite(line.ljust(self._shown))
            self._shown = len(line)

    def clear(self) -> None:
        if self._on and self._shown:
            terminal.overwrite(" " * self._shown)
            terminal.overwrite("")
            self._shown = 0
