"""A .gguf that is open as it is: which process runs it, and what becomes of each request."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable

import msgspec

from explorer.engine.callbacks import Stop
from explorer.engine.errors import BadInput, Cancelled, EngineError, FilesChanged, TooLarge
from explorer.engine.library import catalog
from explorer.engine.library.stores import Source
from explorer.engine.model_files.identity import Watched
from explorer.engine.relay import crashed_files
from explorer.engine.relay.llama_process import LlamaProcess
from explorer.trace.card import ModelCard
from explorer.trace.request import usual_form
from explorer.trace.wire import framing, messages
from explorer.trace.wire.framing import RawFrame
from explorer.trace.wire.messages import AnyRequest, Event

PACKAGE = "xllamacpp"  # carries llama.cpp
# What the user asks for, or looks at; the rest may be asked by the program itself.
_ASKED = messages.Advance | messages.Recapture | messages.RunBatch | messages.Bench
OF_LLAMA = (
    "The type of the cached keys and the number of GPU layers can only be chosen for a .gguf file "
    "that is opened as it is. Leave that setting out, or open such a file."
)
_ABOUT_NOW = messages.Cancel | messages.Resample


def to_be_opened(request: messages.Load) -> Source | None:
    """The .gguf file that is to be opened as it is; None if torch opens the model.

    BadInput if a file that can't be opened so is to be.
    """
    elsewhere = (request.dtype, request.device) != ("float32", "cpu")
    if request.form == "float32" or (elsewhere and not request.form):
        return None
    source = catalog.resolve(request.model, request.like)
    is_file = source.kind == "gguf" and not source.build
    installed = importlib.util.find_spec(PACKAGE) is not None
    if not request.form:
        usual = is_file and installed and usual_form(source.path) == "as-is"
        return source if usual and not _avoided(source, request) else None
    if not is_file:
        raise BadInput(
            f"{source.name} is not a .gguf file, so it can't be opened as it is. Open it in "
            "float32, bfloat16 or float16."
        )
    if not installed:
        raise BadInput(
            f"llama.cpp (the package {PACKAGE}) is not installed. Install it, or open "
            f"{source.path.name} as float32."
        )
    if _avoided(source, request):
        raise BadInput(
            f"llama.cpp has crashed on {source.path.name} before, so it was not opened again. "
            "Choose it in the list of models to try again, or open it as float32."
        )
    return source


def _avoided(source: Source, request: messages.Load) -> bool:
    return not request.anew and crashed_files.is_noted(source.path)


class Relay:
    """Hands requests to the process that has the open file; a process that has ended is replaced.

    `open`, `answer` and `close` belong to one thread, the one that runs models.
    """

    def __init__(self, say: Callable[[Event], None], forward: Callable[[RawFrame], None]) -> None:
        self._tell = say
        self._forward = forward
        self._process: LlamaProcess | None = None
        self._incoming: LlamaProcess | None = None  # opens a file; the other one works meanwhile
        self._opened: Event | None = None  # what came of that
        self._load = messages.Load(model="")  # how the open file was asked for
        self._source: Source | None = None
        self._watched = Watched()
        self.card: ModelCard | None = None  # of the open file

    def open(self, request: messages.Load, source: Source, stop: Stop) -> ModelCard:
        """Open `source` in a new process; the one before works until that is done.

        EngineError with a sentence if it can't be opened, Cancelled.
        """
        load = msgspec.structs.replace(request, model=str(source.path), form="as-is", like={})
        return self._start(load, source, stop)

    @property
    def works(self) -> bool:
        """True if a file is open, has not changed since, and its process lives."""
        return self._process is not None and self._process.alive and not self._watched.changed

    def takes(self, request: AnyRequest) -> bool:
        """True if this is handed over at once, from any thread: it must not wait for a pass."""
        if isinstance(request, _ABOUT_NOW):
            both = [one for one in (self._process, self._incoming) if one is not None]
            return any(one.concerns(request) for one in both)
        process = self._process
        if isinstance(request, messages.Tokenize) and process is not None and process.alive:
            process.ask(request)
            return True
        return False

    def answer(
        self, request: AnyRequest, stop: Stop, meanwhile: Callable[[], Iterable[AnyRequest]]
    ) -> None:
        """Hand a request over and return once it is answered.

        `meanwhile`: what was said about it before it got there.
        """
        if self._source is not None and self._watched.changed:
            raise FilesChanged(_changed(self._source))
        if self._process is None or not self._process.alive:
            self._restart(request, stop)
        process = self._process
        assert process is not None
        process.ask(request)
        for one in meanwhile():
            self.takes(one)
        process.wait(request.run)

    def close(self) -> None:
        """Close the file and end its process."""
        process, self._process, self.card = self._process, None, None
        if process is not None:
            process.close()

    def _restart(self, request: AnyRequest, stop: Stop) -> None:
        """Open the file once more, for its process has ended.

        By itself it is not opened again if it crashed: only what the user asks for does that.
        """
        source, crashed = self._source, self._process is not None and self._process.crashed
        assert source is not None
        if crashed and not isinstance(request, _ASKED):
            raise EngineError(
                f"llama.cpp stopped while it ran {source.path.name}. Step again to reopen the file."
            )
        load = msgspec.structs.replace(self._load, run=request.run, anew=True)
        self._start(load, source, stop)

    def _start(self, load: messages.Load, source: Source, stop: Stop) -> ModelCard:
        watched = Watched([source.path])
        self._opened = None

        def lost(how: str) -> Event:
            crashed_files.note(source.path)
            opening = self._incoming is process
            return messages.Failed(sentence=_crashed(source, how, opening), bad_input=False)

        def forward(frame: RawFrame) -> None:
            opens = self._incoming is process and frame.header.run == load.run
            if opens and frame.header.kind in ("Loaded", "Failed", "Finished"):
                self._opened = framing.event_of(frame)
            elif watched.changed is not None:  # the pass may have read other weights half-way
                said = _changed(source)
                process.end(messages.Failed(sentence=said, files_changed=True))
            else:
                self._forward(frame)

        def say(event: Event) -> None:
            if self._incoming is process and event.run == load.run:
                self._opened = event
            else:
                self._tell(event)

        process = LlamaProcess(forward, say, lost)
        try:
            process.start()
        except OSError as error:
            raise EngineError(f"llama.cpp could not be started: {error}.") from error
        self._incoming = process
        try:
            process.ask(load)
            if stop():
                process.concerns(messages.Cancel(run=load.run))
            process.wait(load.run)
            card = _card(self._opened, source)
        except BaseException:
            process.close()
            raise
        finally:
            self._incoming = None
        self.close()
        crashed_files.forget(source.path)
        self._process, self._source, self._load = process, source, load
        self._watched, self.card = watched, card
        return card


def _card(opened: Event | None, source: Source) -> ModelCard:
    """The card of a file that was opened; what is raised says why it was not."""
    match opened:
        case messages.Loaded():
            return msgspec.structs.replace(
                opened.card, name=source.name, path=str(source.path), form="as-is"
            )
        case messages.Failed():
            fault = BadInput if opened.bad_input else EngineError
            raise (TooLarge if opened.no_room else fault)(opened.sentence, opened.details)
        case messages.Finished():
            raise Cancelled
    raise EngineError(f"llama.cpp did not open {source.path.name}. Open it as float32.")


def _changed(source: Source) -> str:
    return f"{source.path.name} has changed on disk while it was open. Open it again."


def _crashed(source: Source, how: str, opening: bool) -> str:
    name = source.path.name
    if opening:
        return (
            f"llama.cpp stopped unexpectedly{how} while it opened {name}. Open the file as float32."
        )
    return (
        f"llama.cpp stopped unexpectedly{how} while it ran {name}. Nothing computed before is "
        "lost. Try again to reopen the file, or open it as float32."
    )
