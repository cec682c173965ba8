"""The engine's process: reads requests, writes frames.

One thread runs the model; the thread that reads requests answers at once what must not wait for
a pass: cancel, new sampling, tokenising what is being typed.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from explorer.engine.aside import Aside, Question
from explorer.engine.errors import BadInput, Cancelled, EngineError
from explorer.trace import messages, wire
from explorer.trace.messages import AnyRequest, Event
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import Step, Token
from explorer.trace.vocabulary import Vocabulary

if TYPE_CHECKING:
    from explorer.engine.runner import Runner

_log = logging.getLogger(__name__)
_VERSIONED = ("torch", "transformers", "tokenizers", "tiktoken", "safetensors", "numpy")


def versions() -> dict[str, str]:
    """Versions of the libraries that decide numbers, read without importing them."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in (*_VERSIONED, "decoder-explorer"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


class Desk:
    """Where requests land: answered at once, or queued for the thread that runs the model."""

    def __init__(self, say: Callable[[Event], None]) -> None:
        self._say = say
        self._waiting: queue.SimpleQueue[AnyRequest] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._cancelled: set[int] = set()
        self._sampling: dict[int, Sampling] = {}
        self._stopping = False
        self._runner: Runner | None = None
        self._aside = Aside(self._answer)

    def accept(self, request: AnyRequest) -> None:
        """Take a request from any thread; never waits for a pass."""
        if isinstance(request, messages.Cancel):
            with self._lock:
                self._cancelled.add(request.run)
        elif isinstance(request, messages.Resample):
            with self._lock:
                self._sampling[request.run] = request.sampling
        elif isinstance(request, messages.Tokenize) and self._runner is not None:
            self._answer(request)
        elif not self._aside.takes(request):
            if isinstance(request, messages.Quit):
                self._stopping = True
            self._waiting.put(request)

    def run(self) -> None:
        """Answer queued requests until Quit; the thread that calls this owns the model."""
        self._aside.ready.set()
        while not isinstance(request := self._waiting.get(), messages.Quit):
            if self._stopping:
                continue
            self._answer(request)
            with self._lock:
                self._cancelled.discard(request.run)
                self._sampling.pop(request.run, None)

    def _answer(self, request: AnyRequest) -> None:
        run = request.run
        try:
            if self._cancel_asked(run):
                raise Cancelled
            reason = self._handle(request)
            if reason is not None:
                self._say(messages.Finished(run=run, reason=reason))
        except Cancelled:
            self._say(messages.Finished(run=run, reason="cancelled"))
        except EngineError as error:
            bad = isinstance(error, BadInput)
            _log.warning("%s %s", error.sentence, error.details)
            self._say(
                messages.Failed(
                    run=run, sentence=error.sentence, bad_input=bad, details=error.details
                )
            )
        except MemoryError:
            sentence = "Not enough memory: shorten the prompt or choose a smaller model or dtype."
            self._say(messages.Failed(run=run, sentence=sentence, bad_input=True))
        except Exception as error:
            _log.exception("a request failed")
            sentence = f"The engine hit a fault it did not expect ({type(error).__name__}): {error}"
            self._say(
                messages.Failed(
                    run=run,
                    sentence=" ".join(sentence.split())[:300] + ". The log has the details.",
                    bad_input=False,
                    details=traceback.format_exc(),
                )
            )

    def _handle(self, request: AnyRequest) -> str | None:
        """Do it; the reason to finish with, or None if an answer of another kind was given."""
        match request:
            case messages.Load():
                self._load(request)
            case messages.Tokenize():
                self._tokenize(request)
            case messages.Advance():
                return self._advance(request)
            case messages.Recapture():
                return self._recapture(request)
            case messages.CheckTrace():
                return self._check(request)
            case messages.PrefixExperiment():
                self._prefix(request)
            case messages.ListVocabulary():
                self._list_vocabulary(request.run)
            case messages.DrawMany():
                self._draw_many(request)
            case messages.SearchSequences():
                self._search(request)
            case messages.RunBatch():
                self._batch(request)
            case messages.Bench():
                self._bench(request)
            case _ if isinstance(request, Question):
                watch = self._progress(request.run), self._stop(request)
                facts = self._aside.facts(request, *watch)
                self._say(messages.Facts(run=request.run, facts=facts))
        return None

    def _load(self, request: messages.Load) -> None:
        import torch

        from explorer.engine import loading, selftest
        from explorer.engine.runner import Runner

        threads = request.threads or max(1, (os.cpu_count() or 2) - 1)
        torch.set_num_threads(threads)
        self._runner = None  # free the old model before the new one takes memory

        def progress(text: str, fraction: float | None = None) -> None:
            self._say(messages.Progress(run=request.run, text=text, fraction=fraction))

        def stop() -> bool:
            return self._cancel_asked(request.run)

        with self._aside.building:
            loaded = loading.load(request.model, request.dtype, request.device, progress, stop)
        runner = Runner(loaded)
        progress("Testing what works on this model", None)
        selftest.run(runner, stop)
        self._runner = runner
        self._say(messages.Loaded(run=request.run, card=runner.loaded.card))

    def _tokenize(self, request: messages.Tokenize) -> None:
        tokenizer = self._loaded().loaded.tokenizer
        answer = messages.Tokens(run=request.run, text=request.text, tokens=())
        try:
            found = tokenizer.live(request.text, request.chat, request.special_as_text)
            fields = {"tokens": found.tokens, "problem": found.problem, "parts": found.parts}
        except BadInput as error:
            fields = {"problem": error.sentence}
        self._say(msgspec.structs.replace(answer, **fields))

    def _advance(self, request: messages.Advance) -> str:
        runner = self._loaded()
        asked = request.request
        self._refuse_unfit(runner, asked)
        self._say(messages.Prompted(run=request.run, tokens=runner.padded_prompt(asked)))

        def sampling() -> Sampling:
            with self._lock:
                return self._sampling.get(request.run, request.sampling)

        def emit(step: Step, token: Token) -> None:
            self._say(messages.Stepped(run=request.run, step=step, token=token))

        return runner.advance(
            asked,
            request.chosen,
            request.steps,
            sampling,
            emit,
            lambda: self._cancel_asked(request.run),
            request.stops,
        )

    def _list_vocabulary(self, run: int) -> None:
        loaded = self._loaded().loaded
        tokens = [loaded.tokenizer.token(i, "generated") for i in range(loaded.card.vocab_size)]
        self._say(messages.Spelled(run=run, vocabulary=Vocabulary.of(tokens)))

    def _draw_many(self, request: messages.DrawMany) -> None:
        from explorer.engine import draws

        runner = self._loaded()
        self._refuse_unfit(runner, request.request)
        facts = draws.draw_many(runner, request, self._progress(request.run), self._stop(request))
        self._say(messages.Facts(run=request.run, facts=facts))

    def _search(self, request: messages.SearchSequences) -> None:
        from explorer.engine import search

        runner = self._loaded()
        self._refuse_unfit(runner, request.request)
        facts = search.search(runner, request, self._progress(request.run), self._stop(request))
        self._say(messages.Facts(run=request.run, facts=facts))

    def _progress(self, run: int) -> Callable[[str, float | None], None]:
        return lambda text, fraction: self._say(
            messages.Progress(run=run, text=text, fraction=fraction)
        )

    def _stop(self, request: AnyRequest) -> Callable[[], bool]:
        return lambda: self._cancel_asked(request.run)

    def _refuse_unfit(self, runner: Runner, asked: RunRequest) -> None:
        """BadInput where the self-test found that the model can't do what is asked."""
        card = runner.loaded.card
        if not asked.causal_mask and not card.offers("causal_off"):
            raise BadInput(f"The mask can't be switched off here: {card.words('causal_off')}.")
        side = f"{asked.padding}_padding"
        if asked.padding and asked.pad and not card.offers(side):
            raise BadInput(f"Padding is not possible here: {card.words(side)}.")

    def _recapture(self, request: messages.Recapture) -> str:
        runner = self._loaded()
        layout = runner.layout(request.request, request.chosen)
        step = runner.step(
            request.request,
            layout,
            len(request.chosen),
            Sampling(),
            lambda: self._cancel_asked(request.run),
        )
        token = runner.loaded.tokenizer.token(step.draw.token_id, "generated")
        self._say(messages.Stepped(run=request.run, step=step, token=token))
        return "steps"

    def _check(self, request: messages.CheckTrace) -> str:
        from explorer.engine import checks

        runner = self._loaded()

        def stop() -> bool:
            return self._cancel_asked(request.run)

        for found in checks.check(runner, request.request, request.chosen, stop):
            self._say(messages.Checked(run=request.run, check=found))
            if stop():
                return "cancelled"
        return "checked"

    def _bench(self, request: messages.Bench) -> None:
        from explorer.engine.bench import Bench

        bench = Bench(self._loaded(), self._progress(request.run), self._stop(request))
        self._say(messages.Facts(run=request.run, facts=bench.run()))

    def _batch(self, request: messages.RunBatch) -> None:
        from explorer.engine import batch

        result = batch.run(
            self._loaded(), request.batch, self._progress(request.run), self._stop(request)
        )
        self._say(messages.Batched(run=request.run, result=result))

    def _prefix(self, request: messages.PrefixExperiment) -> None:
        from explorer.engine import prefix

        facts = prefix.experiment(
            self._loaded(),
            request.request,
            request.chosen,
            lambda: self._cancel_asked(request.run),
        )
        self._say(messages.Facts(run=request.run, facts=facts))

    def _loaded(self) -> Runner:
        if self._runner is None:
            raise BadInput("No model is loaded: choose one first.")
        return self._runner

    def join(self) -> None:
        """Wait for what is answered beside the queue."""
        self._aside.join()

    def _cancel_asked(self, run: int) -> bool:
        return self._stopping or run in self._cancelled


class LocalEngine:
    """The same engine in this process, on a thread of its own: for tests and scripts."""

    def __init__(self) -> None:
        self._desk: Desk | None = None
        self._thread: threading.Thread | None = None

    def start(self, on_event: Callable[[Event], None]) -> None:
        """Begin; the first event is Hello."""
        desk = self._desk = Desk(on_event)
        on_event(messages.Hello(versions=versions()))
        self._thread = threading.Thread(target=desk.run, name="engine", daemon=True)
        self._thread.start()

    def send(self, request: AnyRequest) -> None:
        """Hand over a request without waiting."""
        if self._desk is not None:
            self._desk.accept(request)

    def close(self) -> None:
        """Stop what runs and wait for the thread."""
        if self._desk is not None and self._thread is not None:
            self._desk.accept(messages.Quit())
            self._thread.join()
            self._desk.join()
        self._desk = self._thread = None

    @property
    def alive(self) -> bool:
        """True between start and close."""
        return self._thread is not None and self._thread.is_alive()


def main() -> NoReturn:
    """Serve one client over stdin and stdout until it says Quit or goes away."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    # Set before torch is imported: idle worker threads must not spin while sharing cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ["HF_HUB_OFFLINE"] = "1"
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    frames_in, frames_out = sys.stdin.buffer, _keep_stdout()
    lock = threading.Lock()

    def say(event: Event) -> None:
        with lock:
            try:
                wire.write_event(frames_out, event)
            except (BrokenPipeError, ValueError, OSError):
                os._exit(0)  # the client is gone, and nothing here is worth keeping

    say(messages.Hello(versions=versions()))
    desk = Desk(say)
    threading.Thread(target=_read, args=(frames_in, desk), name="requests", daemon=True).start()
    _preload()
    desk.run()
    with lock:
        frames_out.flush()
    # Leave at once: the thread that waits on stdin would abort an orderly shutdown.
    os._exit(0)


def _preload() -> None:
    """Import the heavy libraries while the user is still typing."""
    with contextlib.suppress(ImportError):
        from explorer.engine import loading, runner  # noqa: F401


def _keep_stdout() -> Any:
    """The real stdout for frames; whatever prints goes to stderr, so no print breaks the stream."""
    kept = os.fdopen(os.dup(1), "wb", buffering=1 << 20)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return kept


def _read(frames: Any, desk: Desk) -> None:
    try:
        while (request := wire.read_request(frames)) is not None:
            desk.accept(request)
    except wire.WireError as error:
        _log.error("%s", error)
    except Exception:
        _log.exception("the request stream broke")
    desk.accept(messages.Quit())
    # A pass ends within one layer's time; anything slower (a load) is not waited for.
    timer = threading.Timer(2.0, os._exit, (0,))
    timer.daemon = True
    timer.start()
