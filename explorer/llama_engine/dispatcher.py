"""Where the requests of the llama engine land, and what is done about each.

One thread runs the model.  The thread that reads requests does at once what must not wait for a
pass: cancel, new sampling.  What is typed is tokenised in a thread of its own.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from explorer.engine.callbacks import Report, Stop
from explorer.engine.errors import BadInput, Cancelled, FilesChanged
from explorer.engine.faults import failure
from explorer.llama_engine.bench.bench import LlamaBench
from explorer.llama_engine.bench.traffic import traffic
from explorer.llama_engine.experiments import names
from explorer.llama_engine.experiments.workers import WORKERS
from explorer.llama_engine.model.card import model_card
from explorer.llama_engine.model.model import LlamaModel
from explorer.llama_engine.passes.generate import generate, one_step
from explorer.llama_engine.passes.run_cost import plan
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.llama_engine.selftest import selfcheck, store
from explorer.trace.engine_request import Request
from explorer.trace.experiments import Experiment, Result
from explorer.trace.inside.misfit import misfit, policy_misfit
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import Step, Token
from explorer.trace.vocabulary import Vocabulary
from explorer.trace.wire import messages
from explorer.trace.wire.messages import AnyRequest, Event

NOT_OFFERED = "not offered with llama.cpp. Open the file converted to float32 for it"


class LlamaDispatcher:
    """Requests answered at once, or queued for the thread that runs the model."""

    def __init__(self, say: Callable[[Event], None], before: Callable[[], None]) -> None:
        """`before` is called ahead of each piece of work."""
        self._say = say
        self._before = before
        self._waiting: queue.SimpleQueue[AnyRequest] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._cancelled: set[int] = set()
        self._sampling: dict[int, Sampling] = {}
        self._stopping = False
        self._runner: LlamaRunner | None = None

    def accept(self, request: AnyRequest) -> None:
        """Take a request from any thread; never waits for a pass."""
        if isinstance(request, messages.Cancel):
            with self._lock:
                self._cancelled.add(request.run)
        elif isinstance(request, messages.Resample):
            with self._lock:
                self._sampling[request.run] = request.sampling
        elif isinstance(request, messages.Tokenize) and self._runner is not None:
            # A chat template is a program of the file's: it may take long, or never return.
            threading.Thread(target=self._work, args=(request,), daemon=True).start()
        else:
            if isinstance(request, messages.Quit):
                self._stopping = True
            self._waiting.put(request)

    def run(self) -> None:
        """Answer queued requests until Quit; the thread that calls this owns the model."""
        while not isinstance(request := self._waiting.get(), messages.Quit):
            if not self._stopping:
                self._before()
                self._work(request)
        if self._runner is not None:
            self._runner.close()

    def _work(self, request: AnyRequest) -> None:
        try:
            if self._cancel_asked(request.run):
                raise Cancelled
            with self._counting(request):
                reason = self._answer(request)
            if reason is not None:
                self._say(messages.Finished(run=request.run, reason=reason))
        except Cancelled:
            self._say(messages.Finished(run=request.run, reason="cancelled"))
        except Exception as error:
            self._say(failure(request.run, error))
        with self._lock:
            self._cancelled.discard(request.run)
            self._sampling.pop(request.run, None)

    def _counting(self, request: AnyRequest) -> contextlib.AbstractContextManager[None]:
        """Positions are counted as the run of this request has them."""
        asked = getattr(request, "request", None)
        if self._runner is None or not isinstance(asked, RunRequest):
            return contextlib.nullcontext()
        return self._runner.counting_from(asked.position_offset)

    def _answer(self, request: AnyRequest) -> str | None:
        """The reason for which it ended; None if an answer of another kind was given."""
        match request:
            case messages.Advance():
                return self._advance(request)
            case messages.Recapture():
                return self._recapture(request)
            case messages.CheckTrace():
                return self._check(request)
            case messages.Load():
                self._load(request)
            case messages.Tokenize():
                self._tokenize(request)
            case messages.ListVocabulary():
                self._list_vocabulary(request)
            case Experiment():
                self._experiment(request)
            case messages.Bench():
                facts = LlamaBench(self._loaded(), *self._watch(request)).run()
                self._say(messages.Facts(run=request.run, facts=facts))
            case messages.MeasureTraffic():
                if self._loaded().model.gpu_layers:
                    raise BadInput("The limit of memory bandwidth is not known with GPU layers.")
                facts = msgspec.to_builtins(traffic(self._loaded()))
                self._say(messages.Facts(run=request.run, facts=facts))
            case messages.RunBatch():
                raise BadInput(f"Padded batches are {NOT_OFFERED}.")
            case _:
                raise BadInput("This question is not for an open model. Ask the engine itself.")
        return None

    def _load(self, request: messages.Load) -> None:
        progress, stop = self._watch(request)
        threads = request.threads or max(1, (os.cpu_count() or 2) - 1)
        model = LlamaModel(
            Path(request.model),
            progress,
            stop,
            cache_type_k=request.cache_type_k,
            gpu_layers=request.gpu_layers,
        )
        card = model_card(model, request.cache_type_k)
        runner = LlamaRunner(model, card, threads, request.cache_type_k)
        try:
            store.find(runner, stop, request.test_again, progress)
        except BaseException:
            runner.close()
            raise
        before, self._runner = self._runner, runner
        if before is not None:
            before.close()
        self._say(messages.Loaded(run=request.run, card=runner.card))

    def _tokenize(self, request: messages.Tokenize) -> None:
        from explorer.engine.text import asked_prompt

        runner = self._open()
        self._say(asked_prompt.live(runner.model.tokenizer, request, runner.card.context))

    def _advance(self, request: messages.Advance) -> str:
        runner = self._loaded()
        asked, run = request.request, request.run
        self._refuse_unfit(runner, asked)
        prompt = runner.prompt(asked)
        if not request.chosen:
            found = plan(runner, prompt)
            if found.large:
                self._say(messages.Planned(run=run, plan=found))
                if request.ask_first:
                    return "plan"
        self._say(prompt.event(run))

        def sampling() -> Sampling:
            with self._lock:
                return self._sampling.get(run, request.sampling)

        def emit(step: Step, token: Token) -> None:
            self._loaded()  # the pass just done may have read other weights half-way
            self._say(messages.Stepped(run=run, step=step, token=token))

        runner.report, stop = self._watch(request)
        return generate(
            runner,
            prompt,
            request.chosen,
            request.steps,
            sampling,
            emit,
            stop,
            request.stops,
            request.reuse,
        )

    def _recapture(self, request: messages.Recapture) -> str:
        runner = self._loaded()
        layout = runner.layout(request.request, request.chosen)
        runner.report, stop = self._watch(request)
        index = len(request.chosen)
        step = one_step(runner, request.request, layout, index, Sampling(), stop)
        self._loaded()
        token = runner.model.tokenizer.token(step.draw.token_id, "generated")
        self._say(messages.Stepped(run=request.run, step=step, token=token))
        return "steps"

    def _check(self, request: messages.CheckTrace) -> str:
        runner, stop = self._loaded(), self._stop(request)
        for found in selfcheck.check(runner, request.request, request.chosen, stop):
            self._loaded()
            self._say(messages.Checked(run=request.run, check=found))
            if stop():
                return "cancelled"
        return "checked"

    def _list_vocabulary(self, request: messages.ListVocabulary) -> None:
        model = self._open().model
        tokens = [model.tokenizer.token(i, "generated") for i in range(model.vocab_size)]
        self._say(messages.Spelled(run=request.run, vocabulary=Vocabulary.of(tokens)))

    def _experiment(self, request: Experiment) -> None:
        worker = WORKERS.get(type(request))
        if worker is None:
            raise BadInput(f"{names.of(request)} is {NOT_OFFERED}.")

        def part(result: Result) -> None:
            self._say(messages.PartFacts(run=request.run, facts=msgspec.structs.asdict(result)))

        runner = self._loaded()
        self._refuse_unfit(runner, request.request)
        parts = {"part": part} if request.IN_PARTS else {}
        result = worker(runner, request, *self._watch(request), **parts)
        self._loaded()
        self._say(messages.Facts(run=request.run, facts=msgspec.structs.asdict(result)))

    def _refuse_unfit(self, runner: LlamaRunner, asked: RunRequest) -> None:
        """BadInput where the self-test found that the model can't do what is asked."""
        card = runner.card
        if not asked.causal_mask and not card.offers("causal_off"):
            raise BadInput(f"The mask can't be switched off here: {card.words('causal_off')}.")
        if asked.context.moves_sinks:
            words = "Distances counted in the cache are not offered for a file that runs as it is."
            raise BadInput(f"{words} Open it in float32, or count them in the text.")
        if asked.padding and asked.pad:
            side = f"{asked.padding}_padding"
            raise BadInput(f"Padding is not possible here: {card.words(side)}.")
        if refused := policy_misfit(card, asked):
            raise BadInput(refused)
        if asked.changes:
            mlps = runner.with_mlp if card.offers("silence_mlp") else frozenset[int]()
            attending = runner.proven.attending if runner.proven else frozenset[int]()
            refused = misfit(card, asked.changes, card.layers, mlps, attending)
            if refused:
                raise BadInput(refused)

    def _open(self) -> LlamaRunner:
        if self._runner is None:
            raise BadInput("No model is open. Choose one first.")
        return self._runner

    def _loaded(self) -> LlamaRunner:
        """The open model; FilesChanged once its file is no longer the one that was opened.

        It is mapped, not copied: what is written over it is what the next pass computes with.
        """
        runner = self._open()
        changed = runner.model.watched.changed
        if changed is not None:
            raise FilesChanged(
                f"{changed.name} has changed on disk while it was open. Open the model again."
            )
        return runner

    def _progress(self, run: int) -> Report:
        return lambda text, fraction: self._say(
            messages.Progress(run=run, text=text, fraction=fraction)
        )

    def _stop(self, request: Request) -> Stop:
        return lambda: self._cancel_asked(request.run)

    def _watch(self, request: Request) -> tuple[Report, Stop]:
        return self._progress(request.run), self._stop(request)

    def _cancel_asked(self, run: int) -> bool:
        return self._stopping or run in self._cancelled
