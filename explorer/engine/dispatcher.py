"""Where the engine's requests land, and what is done about each.

One thread runs the model.  The thread that reads requests does at once what must not wait for a
pass: cancel, new sampling.  What is typed is tokenised in a thread of its own, for a tokenizer or a
chat template is the model's: it may take long, or never return.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from explorer.engine import ranks
from explorer.engine.callbacks import Report, Stop, nothing
from explorer.engine.errors import BadInput, Cancelled, FilesChanged
from explorer.engine.faults import failure
from explorer.engine.library import opened_models
from explorer.engine.library.catalog import plain_name
from explorer.engine.machine.peak_memory import give_back
from explorer.engine.machine.priority import give_way
from explorer.engine.other_form import OtherForm, is_other
from explorer.engine.relay.relay import OF_LLAMA, Relay, to_be_opened
from explorer.engine.side_requests import Question, SideRequests
from explorer.engine.training import kept_training
from explorer.trace.card import ModelCard
from explorer.trace.engine_request import Request
from explorer.trace.experiments import Experiment, Result
from explorer.trace.inside.heads import SweepHeads
from explorer.trace.inside.questions import AnyInside
from explorer.trace.inside.structure import ReadStructure
from explorer.trace.request import Sampling
from explorer.trace.step import Step, Token
from explorer.trace.training.job import FindTrainings, SaveTrained, SteerTraining, Train
from explorer.trace.vocabulary import Vocabulary
from explorer.trace.wire import messages
from explorer.trace.wire.framing import RawFrame, event_of
from explorer.trace.wire.messages import AnyRequest, Event

if TYPE_CHECKING:
    from explorer.engine.experiments.padded.batch_cache import ResultCache
    from explorer.engine.passes.layout import Prompt
    from explorer.engine.passes.runner import Runner
    from explorer.engine.training.job import Order

_log = logging.getLogger(__name__)
FIRST_SECONDS = 1.0  # until the first request; who runs a command asks at once
SPREAD = (
    "This reads the model's weights directly, and a part of them lies on the disk or on another "
    "device. Open the model on one device (without --device auto) to see it."
)
_BY_PASSES = (SweepHeads, ReadStructure)  # of the questions about the inside, those without weights
LONG_SECONDS = 0.5  # work that took longer may have freed hundreds of megabytes


class Dispatcher:
    """Where requests land: answered at once, or queued for the thread that runs the model."""

    def __init__(
        self,
        say: Callable[[Event], None],
        before: Callable[[], None] = nothing,
        forward: Callable[[RawFrame], None] | None = None,
    ) -> None:
        """`before` is called ahead of each piece of work.

        `forward` takes what the process of a file that is open as it is says; None: `say` does.
        """
        self._say = say
        self._before = before
        self._waiting: queue.SimpleQueue[AnyRequest] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._cancelled: set[int] = set()
        self._sampling: dict[int, Sampling] = {}
        self._stopping = False
        self._runner: Runner | None = None
        self._held: tuple[str, ...] = ()  # model, dtype and device of the runner
        self._batches: ResultCache | None = None  # of the loaded model
        forward = forward or (lambda frame: say(event_of(frame)))
        self._relay = Relay(say, forward)
        self._other = OtherForm(say, forward)
        self._aside = SideRequests(self._answer)
        self._training = False  # a training has the model's thread, or will have it
        self._orders: queue.SimpleQueue[Order] = queue.SimpleQueue()  # to that training

    def accept(self, request: AnyRequest) -> None:
        """Take a request from any thread; never waits for a pass."""
        if self._relay.takes(request) or self._other.takes(request):
            return
        if isinstance(request, messages.Cancel):
            with self._lock:
                self._cancelled.add(request.run)
        elif isinstance(request, messages.Resample):
            with self._lock:
                self._sampling[request.run] = request.sampling
        elif isinstance(request, messages.Tokenize) and self._runner is not None:
            self._aside.start(self._tokenized, request)
        elif isinstance(request, FindTrainings):
            self._aside.start(self._answer, request)
        elif not self._ordered(request) and not self._aside.takes(request):
            if isinstance(request, messages.Quit):
                self._stopping = True
            self._waiting.put(request)

    def _ordered(self, request: AnyRequest) -> bool:
        """True if this is for the training that has the model's thread, or soon will."""
        with self._lock:
            if isinstance(request, Train):
                self._training = True
            elif isinstance(request, SteerTraining | SaveTrained) and self._training:
                self._orders.put(request)
                return True
        return False

    def _tokenized(self, request: AnyRequest) -> None:
        self._answer(request)
        with self._lock:
            self._cancelled.discard(request.run)

    def run(self) -> None:
        """Answer queued requests until Quit; the thread that calls this owns the model."""
        request = self._first()
        while not isinstance(request, messages.Quit):
            if not self._stopping:
                self._work(request)
            request = self._waiting.get()
        self._other.close()
        self._relay.close()
        if self._runner is not None and self._runner.loaded.card.device.startswith("auto"):
            from explorer.engine.loading import offload

            offload.remove()

    def _first(self) -> AnyRequest:
        """The first request; torch is imported now, unless that is not for torch.

        While nobody asks for anything, it is imported all the same: the user may still be typing.
        """
        try:
            request = self._waiting.get(timeout=FIRST_SECONDS)
        except queue.Empty:
            self._aside.libraries()
            return self._waiting.get()
        if not isinstance(request, messages.Load | messages.Quit | Train):
            self._aside.libraries()
        return request

    def _work(self, request: AnyRequest) -> None:
        began = time.monotonic()
        self._before()
        self._answer(request)
        if time.monotonic() - began > LONG_SECONDS:
            give_back()
        with self._lock:
            self._cancelled.discard(request.run)
            self._sampling.pop(request.run, None)

    def _answer(self, request: AnyRequest) -> None:
        run = request.run
        try:
            if self._cancel_asked(run):
                raise Cancelled
            reason = None  # for which it ended; None: an answer of another kind was given
            match request:
                case messages.Load():
                    self._say(messages.Loaded(run=run, card=self._load(request)))
                case _ if isinstance(request, Question):
                    facts = self._aside.facts(request, *self._watch(request))
                    self._say(messages.Facts(run=run, facts=facts))
                case FindTrainings():
                    found = msgspec.structs.asdict(kept_training.find())
                    self._say(messages.Facts(run=run, facts=found))
                case Train():
                    reason = self._train(request)
                case SaveTrained():
                    self._save_trained(request)
                case SteerTraining():
                    raise BadInput("This training has ended. Train again.")
                case messages.Recapture() if is_other(request.request, self._card):
                    reason = self._recapture_in_other_form(request)
                case _ if self._relay.card is not None:
                    self._relay.answer(request, self._stop(request), self._early(request))
                case messages.Tokenize():
                    self._tokenize(request)
                case messages.Advance():
                    reason = self._advance(request)
                case messages.Recapture():
                    reason = self._recapture(request, self._loaded())
                case messages.CheckTrace():
                    reason = self._check(request)
                case messages.ListVocabulary():
                    self._list_vocabulary(run)
                case Experiment():
                    self._experiment(request)
                case messages.RunBatch():
                    self._batch(request)
                case messages.MeasureTraffic():
                    self._traffic(run)
                case messages.Bench():
                    self._bench(request)
            if reason is not None:
                self._say(messages.Finished(run=run, reason=reason))
        except Cancelled:
            self._say(messages.Finished(run=run, reason="cancelled"))
        except Exception as error:
            self._say(failure(run, error))

    def _early(self, request: AnyRequest) -> Callable[[], list[AnyRequest]]:
        """What was said about a request before it was handed over."""

        def said() -> list[AnyRequest]:
            with self._lock:
                sampling = self._sampling.get(request.run)
            new = [messages.Resample(run=request.run, sampling=sampling)] if sampling else []
            cancel = messages.Cancel(run=request.run)
            return [*new, *[cancel] * self._cancel_asked(request.run)]

        return said

    def _load(self, request: messages.Load) -> ModelCard:
        source = to_be_opened(request)
        of_llama = request.cache_type_k != "f16" or request.gpu_layers > 0
        if not request.keep:
            self._other.close()
        if source is None:
            if of_llama:
                raise BadInput(OF_LLAMA)
            return self._load_by_torch(request)
        what = str(source.path), "as-is", request.cache_type_k, str(request.gpu_layers)
        if request.keep and self._held == what and self._relay.works:
            assert self._relay.card is not None
            return self._relay.card
        try:
            card = self._relay.open(request, source, self._stop(request))
        except BadInput as refused:
            if request.form or of_llama:
                raise
            _log.warning("%s", refused.sentence)  # in the usual form, whatever works is used
            return self._load_by_torch(request)
        self._runner = self._batches = None
        self._held = what
        opened_models.remember(card)
        return card

    def _load_by_torch(self, request: messages.Load) -> ModelCard:
        self._aside.libraries(self._stop(request))
        import torch

        from explorer.engine.loading import loading, offload
        from explorer.engine.passes.runner import Runner
        from explorer.engine.selftest import store

        threads = request.threads or max(1, (os.cpu_count() or 2) // ranks.here() - 1)
        torch.set_num_threads(threads)
        what = request.model, request.dtype, request.device
        held = self._runner if self._held == what else None
        if request.keep and held is not None and held.loaded.watched.changed is None:
            return held.loaded.card

        progress, stop = self._watch(request)

        def make_room() -> None:
            """Free the old model, which works, no sooner than the new one takes its memory."""
            self._runner = self._batches = None
            self._relay.close()
            offload.remove()
            offload.sweep()

        with self._aside.building:
            loaded = loading.load(
                *what,
                progress,
                stop,
                request.allow_code,
                make_room,
                self._held_bytes(request),
                request.like,
            )
        runner = Runner(loaded)
        store.find(runner, stop, request.test_again, progress)
        self._runner, self._held = runner, what
        card = runner.loaded.card
        plain = plain_name(card.name)  # the place is that of the weights, whatever runs them
        opened_models.remember(msgspec.structs.replace(card, name=plain))
        return runner.loaded.card

    def _held_bytes(self, request: messages.Load) -> int:
        """What the model that is open gives back on the device of the one to be opened."""
        from explorer.engine.machine.free_memory import BYTES_OF

        card = None if self._runner is None else self._runner.loaded.card
        if card is None or card.device != request.device:
            return 0
        return card.parameters * BYTES_OF.get(card.dtype, 0)

    def _tokenize(self, request: messages.Tokenize) -> None:
        from explorer.engine.text import asked_prompt

        loaded = self._open().loaded
        self._say(asked_prompt.live(loaded.tokenizer, request, loaded.card.context))

    def _advance(self, request: messages.Advance) -> str:
        from explorer.engine.passes.generate import generate
        from explorer.engine.passes.interventions import require_fit

        runner = self._loaded()
        asked = request.request
        require_fit(runner, asked)
        prompt = runner.prompt(asked)  # laid out here, and handed down
        if not request.chosen and self._planned(runner, prompt, request) and request.ask_first:
            return "plan"
        self._say(prompt.event(request.run))

        def emit(step: Step, token: Token) -> None:
            self._loaded()  # the pass just done may have read other weights half-way
            self._say(messages.Stepped(run=request.run, step=step, token=token))

        with self._reporting(runner, request.run):
            return generate(
                runner,
                prompt,
                request.chosen,
                request.steps,
                partial(self._sampling_of, request),
                emit,
                self._stop(request),
                request.stops,
                request.reuse,
            )

    def _sampling_of(self, request: messages.Advance) -> Sampling:
        """The newest: it may change from step to step."""
        with self._lock:
            return self._sampling.get(request.run, request.sampling)

    def _planned(self, runner: Runner, prompt: Prompt, request: messages.Advance) -> bool:
        """Says what a large run will take; False if it is not large."""
        from explorer.engine.passes.run_cost import plan

        found = plan(runner, prompt)
        if found.large:
            self._say(messages.Planned(run=request.run, plan=found))
        return found.large

    @contextlib.contextmanager
    def _reporting(self, runner: Runner, run: int) -> Iterator[None]:
        """While inside, long passes tell how far they are."""
        before, runner.report = runner.report, self._progress(run)
        try:
            yield
        finally:
            runner.report = before

    def _train(self, request: Train) -> str:
        """Train until that is ended; what was still to be saved is."""
        import torch

        from explorer.engine.training.job import TrainingJob

        give_way()
        torch.set_num_threads(max(1, ((os.cpu_count() or 2) - 1) // request.share))
        try:
            TrainingJob(request, self._orders, self._say, self._stop(request)).run()
        finally:
            with self._lock:
                self._training = False
                while not self._orders.empty():
                    self._waiting.put(self._orders.get())
        return "cancelled"

    def _save_trained(self, request: SaveTrained) -> None:
        from explorer.engine.training.job import saved

        self._say(saved(request))

    def _list_vocabulary(self, run: int) -> None:
        loaded = self._open().loaded
        tokens = [loaded.tokenizer.token(i, "generated") for i in range(loaded.card.vocab_size)]
        self._say(messages.Spelled(run=run, vocabulary=Vocabulary.of(tokens)))

    def _experiment(self, request: Experiment) -> None:
        from explorer.engine.experiments.workers import WORKERS
        from explorer.engine.loading.offload import is_spread
        from explorer.engine.passes.interventions import require_fit

        def part(result: Result) -> None:
            self._say(messages.PartFacts(run=request.run, facts=msgspec.structs.asdict(result)))

        runner = self._loaded()
        looks_inside = isinstance(request, AnyInside)
        if looks_inside and not isinstance(request, _BY_PASSES) and is_spread(runner.model):
            raise BadInput(SPREAD)
        require_fit(runner, request.request)
        chosen = getattr(request, "chosen", ())
        if chosen and runner.layout(request.request, chosen).places:
            raise BadInput(
                "The oldest turns were left out while this answer was written, so this can't be "
                "asked of it. Ask it of an earlier token, or of the next turn."
            )
        parts = {"part": part} if request.IN_PARTS else {}
        result = WORKERS[type(request)](runner, request, *self._watch(request), **parts)
        self._loaded()
        self._say(messages.Facts(run=request.run, facts=msgspec.structs.asdict(result)))

    def _traffic(self, run: int) -> None:
        from explorer.engine.machine.memory_bandwidth import traffic

        found = traffic(self._loaded().model)
        self._say(messages.Facts(run=run, facts=msgspec.to_builtins(found)))

    def _progress(self, run: int) -> Report:
        return lambda text, fraction: self._say(
            messages.Progress(run=run, text=text, fraction=fraction)
        )

    def _stop(self, request: Request) -> Stop:
        return lambda: self._cancel_asked(request.run)

    def _watch(self, request: Request) -> tuple[Report, Stop]:
        """How work tells how far it is, and how it learns that it is cancelled."""
        return self._progress(request.run), self._stop(request)

    @property
    def _card(self) -> ModelCard | None:
        """Of the open model, whoever runs it."""
        return self._relay.card or (self._runner.loaded.card if self._runner else None)

    def _recapture_in_other_form(self, request: messages.Recapture) -> str | None:
        """The reason for which it ended; None if llama.cpp's process said it."""
        assert self._card is not None
        path, stop = self._card.path, self._stop(request)
        if request.request.form == "as-is":
            self._other.answer_as_is(request, path, stop, self._early(request))
            return None
        self._aside.libraries(stop)
        with self._aside.building:
            runner = self._other.float32(path, self._progress(request.run), stop)
        return self._recapture(request, runner)

    def _recapture(self, request: messages.Recapture, runner: Runner) -> str:
        from explorer.engine.passes.generate import one_step

        layout = runner.layout(request.request, request.chosen)
        with self._reporting(runner, request.run):
            step = one_step(
                runner,
                request.request,
                layout,
                len(request.chosen),
                Sampling(),
                self._stop(request),
            )
        if runner is self._runner:
            self._loaded()
        token = runner.loaded.tokenizer.token(step.draw.token_id, "generated")
        self._say(messages.Stepped(run=request.run, step=step, token=token))
        return "steps"

    def _check(self, request: messages.CheckTrace) -> str:
        from explorer.engine.selftest import selfcheck

        runner, stop = self._loaded(), self._stop(request)
        for found in selfcheck.check(runner, request.request, request.chosen, stop):
            self._loaded()
            self._say(messages.Checked(run=request.run, check=found))
            if stop():
                return "cancelled"
        return "checked"

    def _bench(self, request: messages.Bench) -> None:
        from explorer.engine.bench.bench import ModelBench

        bench = ModelBench(self._loaded(), *self._watch(request))
        self._say(messages.Facts(run=request.run, facts=bench.run()))

    def _batch(self, request: messages.RunBatch) -> None:
        from explorer.engine.experiments import batch
        from explorer.engine.experiments.padded.batch_cache import ResultCache

        self._batches = self._batches or ResultCache()
        result = batch.run(self._loaded(), request.batch, *self._watch(request), self._batches)
        self._loaded()
        self._say(messages.Batched(run=request.run, result=result))

    def _open(self) -> Runner:
        if self._runner is None:
            raise BadInput("No model is open. Choose one first.")
        return self._runner

    def _loaded(self) -> Runner:
        """The open model; FilesChanged once its weights on disk are no longer those opened.

        Weights that need no conversion are never copied: what is written over their file is what
        the next pass computes with.
        """
        runner = self._open()
        changed = runner.loaded.watched.changed
        if changed is not None:
            raise FilesChanged(
                f"{changed.name} has changed on disk while {runner.loaded.card.name} was "
                "open. Open the model again."
            )
        return runner

    def join(self) -> None:
        """Wait for what is answered beside the queue."""
        self._aside.join()

    def _cancel_asked(self, run: int) -> bool:
        return self._stopping or run in self._cancelled
