"""The open .gguf file in its other form beside it: as it is beside float32, or the reverse.

It is opened when a pass in that form is first asked for, and kept until another model is opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from explorer.engine.callbacks import Report, Stop
from explorer.engine.library import catalog
from explorer.engine.relay.relay import Relay
from explorer.trace.card import ModelCard
from explorer.trace.request import RunRequest
from explorer.trace.wire import messages
from explorer.trace.wire.framing import RawFrame
from explorer.trace.wire.messages import AnyRequest, Event

if TYPE_CHECKING:
    from explorer.engine.passes.runner import Runner


def is_other(request: RunRequest, card: ModelCard | None) -> bool:
    """True if a run is of the open .gguf file, in the form in which it is not open."""
    return card is not None and bool(request.form and card.form) and request.form != card.form


class OtherForm:
    """At most one model beside the open one; every method belongs to the thread that runs models.

    But for `takes`.
    """

    def __init__(self, say: Callable[[Event], None], forward: Callable[[RawFrame], None]) -> None:
        self._relay = Relay(say, forward)
        self._runner: Runner | None = None

    def takes(self, request: AnyRequest) -> bool:
        """True if this ends what is run here; from any thread."""
        return isinstance(request, messages.Cancel) and self._relay.takes(request)

    def answer_as_is(
        self,
        request: messages.Recapture,
        path: str,
        stop: Stop,
        meanwhile: Callable[[], Iterable[AnyRequest]],
    ) -> None:
        """Have the pass run by llama.cpp; EngineError if it can't open the file."""
        if not self._relay.works:
            load = messages.Load(
                run=request.run,
                model=path,
                cache_type_k=request.request.cache_type_k,
                gpu_layers=request.request.gpu_layers,
                form="as-is",
                anew=True,
            )
            self._relay.open(load, catalog.resolve(path), stop)
        self._relay.answer(request, stop, meanwhile)

    def float32(self, path: str, progress: Report, stop: Stop) -> Runner:
        """The file converted; BadInput if it does not fit beside what is open, Cancelled."""
        import torch

        from explorer.engine.loading import loading
        from explorer.engine.passes.runner import Runner
        from explorer.engine.selftest import store

        runner = self._runner
        if runner is None or runner.loaded.watched.changed is not None:
            torch.set_num_threads(max(1, (os.cpu_count() or 2) - 1))
            runner = Runner(loading.load(path, "float32", "cpu", progress, stop))
            store.find(runner, stop, False, progress)
            self._runner = runner
        return runner

    def close(self) -> None:
        """Free it."""
        self._runner = None
        self._relay.close()
