"""One engine of several processes: `torchrun --nproc-per-node 2 -m explorer engine`.

Rank 0 speaks with the client.  Before it works on a request that needs the model, it hands that on
to the other ranks, and all do the same; what only it can know (a cancel, a new sampling, the memory
that is free) it tells them at the moment at which all ask for it.
"""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from explorer.engine import ranks
from explorer.engine.dispatcher import Dispatcher
from explorer.engine.errors import BadInput
from explorer.engine.frame_server import serve
from explorer.engine.machine import memory_limit, parent_watch
from explorer.trace.card import ModelCard
from explorer.trace.experiments import Experiment
from explorer.trace.request import Sampling
from explorer.trace.wire import framing, messages
from explorer.trace.wire.messages import AnyRequest, Event

if TYPE_CHECKING:
    from explorer.engine.passes.layout import Prompt
    from explorer.engine.passes.runner import Runner

_log = logging.getLogger(__name__)
_TOGETHER = (  # what runs the model
    messages.Load, messages.Advance, messages.Recapture, messages.CheckTrace, messages.RunBatch,
    Experiment,
)  # fmt: skip
_ALONE = (
    "{0} works only where one process runs the model. Leave torchrun out of the engine's command."
)


class RankDispatcher(Dispatcher):
    """What all ranks do alike."""

    _together: AnyRequest | None = None  # that all ranks work on now

    def _cancel_asked(self, run: int) -> bool:
        """While all work on a run, they learn of it together; nobody ends while a model is read."""
        request = self._together
        if request is None or run != request.run:
            return super()._cancel_asked(run)
        if isinstance(request, messages.Load):
            return False
        return ranks.any_of(super()._cancel_asked(run))

    def _sampling_of(self, request: messages.Advance) -> Sampling:
        mine = msgspec.msgpack.encode(super()._sampling_of(request))
        return msgspec.msgpack.decode(ranks.shared(mine), type=Sampling)

    def _planned(self, runner: Runner, prompt: Prompt, request: messages.Advance) -> bool:
        return ranks.any_of(super()._planned(runner, prompt, request) and ranks.rank() == 0)

    def _load(self, request: messages.Load) -> ModelCard:
        if request.form == "as-is" or request.cache_type_k != "f16" or request.gpu_layers:
            raise BadInput(_ALONE.format("A .gguf file as it is"))
        return super()._load(msgspec.structs.replace(request, form="float32", test_again=True))

    def _bench(self, request: messages.Bench) -> None:
        raise BadInput(_ALONE.format("The bench"))

    def _recapture_in_other_form(self, request: messages.Recapture) -> str | None:
        raise BadInput(_ALONE.format("Comparing a .gguf file with itself as it is"))

    def _work_together(self, request: AnyRequest) -> None:
        self._together = request
        try:
            super()._work(request)
        finally:
            self._together = None


class LeadingDispatcher(RankDispatcher):
    """Rank 0: hands on what it is asked."""

    def _work(self, request: AnyRequest) -> None:
        if not isinstance(request, _TOGETHER) or self._cancel_asked(request.run):
            super()._work(request)
            return
        ranks.shared(_packed(request))
        self._work_together(request)

    def run(self) -> None:
        """Answer until Quit, which the other ranks are told as well."""
        super().run()
        ranks.shared(_packed(messages.Quit()))


class FollowingDispatcher(RankDispatcher):
    """Any other rank: does what rank 0 hands on, and says nothing."""

    def run(self) -> None:
        """Work until rank 0 says Quit."""
        while not isinstance(request := _unpacked(ranks.shared()), messages.Quit):
            self._work_together(request)


def serve_ranks(versions: dict[str, str]) -> NoReturn:
    """Serve the client as rank 0, or rank 0 as any other."""
    if ranks.rank() == 0:

        def leading(say: Any, pass_on: Any) -> Dispatcher:
            return LeadingDispatcher(say, memory_limit.set_here, pass_on)

        serve(versions, leading, ranks.join)
    parent_watch.end_with()
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    os.dup2(2, 1)  # stdout is rank 0's
    ranks.join()
    try:
        FollowingDispatcher(_ignore, memory_limit.set_here).run()
    except Exception:  # rank 0 has gone, or the ranks no longer do the same
        _log.exception("rank %d ends", ranks.rank())
        os._exit(1)
    os._exit(0)


def _packed(request: AnyRequest) -> bytes:
    stream = io.BytesIO()
    framing.write_request(stream, request)
    return stream.getvalue()


def _unpacked(data: bytes) -> AnyRequest:
    request = framing.read_request(io.BytesIO(data))
    assert request is not None
    return request


def _ignore(event: Event) -> None:
    pass
