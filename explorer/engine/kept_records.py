"""Queries and keys that the engine keeps instead of sending them with their step.

It stands between what answers requests and the line to the client, which may be slow.  The client
asks for the heads that somebody looks at; above the bytes it allowed, the oldest pass goes.
"""

from __future__ import annotations

import queue
import threading
import uuid
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from explorer.trace.card import ModelCard
from explorer.trace.request import RunRequest
from explorer.trace.step import Step
from explorer.trace.trace import Trace
from explorer.trace.wire import messages as m
from explorer.trace.wire.away import part_of, sent_later
from explorer.trace.wire.framing import RawFrame, event_of
from explorer.trace.wire.messages import AnyRequest, Event

_COMPRESSION = 1  # quick; a causal map is half empty
GONE = "gone"


class DrawnAtlas(Protocol):
    """What the pictures of all heads are given as."""

    levels: np.ndarray
    heads: tuple[int, ...]
    reasons: tuple[str, ...]
    slots: int
    stride: int
    complete: bool


DrawAtlas = Callable[[Trace, int], Iterator[Any]]  # answers like DrawnAtlas, ever more complete


class KeptRecords:
    """Takes what is said to the client, and what the client asks of it."""

    def __init__(
        self,
        say: Callable[[Event], None],
        pass_on: Callable[[RawFrame], None],
        draw_atlas: DrawAtlas | None = None,
    ) -> None:
        self._say, self._pass_on, self._draw = say, pass_on, draw_atlas
        self._name = uuid.uuid4().hex[:12]  # of this engine: another one keeps other passes
        self._count = 0
        self._allowed: dict[int, int] = {}  # by run: bytes
        self._kept: OrderedDict[str, tuple[Step, int]] = OrderedDict()  # with their bytes
        self._card: ModelCard | None = None
        self._atlas: tuple[tuple[str, ...], Any] | None = None  # the last one that was drawn
        self._lock = threading.Lock()
        self._cancelled: set[int] = set()
        self._asked: queue.SimpleQueue[m.SendRecords | m.SendAtlas] = queue.SimpleQueue()
        threading.Thread(target=self._answer_all, name="kept records", daemon=True).start()

    # -- what the client asks

    def takes(self, request: AnyRequest) -> bool:
        """True if the request is answered here; it is noted what the others allow."""
        if isinstance(request, m.Advance | m.Recapture) and request.keep_bytes > 0:
            self._allowed[request.run] = request.keep_bytes
        if isinstance(request, m.Cancel):
            self._cancelled.add(request.run)
        if isinstance(request, m.SendRecords | m.SendAtlas):
            self._asked.put(request)
            return True
        return False

    def _answer_all(self) -> None:
        while True:
            request = self._asked.get()
            try:
                if request.run in self._cancelled:
                    self._say(m.Finished(run=request.run, reason="cancelled"))
                elif isinstance(request, m.SendRecords):
                    self._send(request)
                else:
                    self._send_atlas(request)
            except Exception as error:
                words = f"The queries and keys could not be sent ({type(error).__name__})."
                self._say(m.Failed(run=request.run, sentence=words, bad_input=False))
            self._cancelled.discard(request.run)

    def _send(self, request: m.SendRecords) -> None:
        for name in request.kept:
            if request.run in self._cancelled:
                break
            with self._lock:
                step = self._kept.get(name, (None, 0))[0]
            record = None if step is None else step.layers[request.layer]
            part = None if record is None else part_of(record, request.group)
            self._say(
                m.Records(
                    run=request.run,
                    kept=name,
                    layer=request.layer,
                    group=request.group,
                    record=part,
                )
            )
        self._say(m.Finished(run=request.run, reason="steps"))

    def _send_atlas(self, request: m.SendAtlas) -> None:
        with self._lock:
            steps = tuple(self._kept[name][0] for name in request.kept if name in self._kept)
        if not steps or len(steps) != len(request.kept) or not self._card or not self._draw:
            self._say(m.Finished(run=request.run, reason=GONE))
            return
        trace = Trace(request=RunRequest(), card=self._card, prompt=(), steps=steps)
        found: Any = None
        for answer in self._draw(trace, len(steps) - 1):
            found = answer
            if request.run in self._cancelled:
                self._say(m.Finished(run=request.run, reason="cancelled"))
                return
        self._say(
            m.Thumbnails(
                run=request.run,
                shape=found.levels.shape,
                heads=found.heads,
                reasons=found.reasons,
                slots=found.slots,
                stride=found.stride,
                levels=zlib.compress(np.ascontiguousarray(found.levels).data, _COMPRESSION),
            )
        )

    # -- what is said to the client

    def say(self, event: Event) -> None:
        """Pass an event on; a step without its queries and keys, where the client wished that."""
        if isinstance(event, m.Loaded):
            self._card = event.card
            with self._lock:
                self._kept.clear()  # of another model, or an earlier opening
        elif isinstance(event, m.Stepped) and event.run in self._allowed:
            event = m.Stepped(run=event.run, step=self._keep(event), token=event.token)
        elif isinstance(event, m.ENDS):
            self._allowed.pop(event.run, None)
        self._say(event)

    def pass_on(self, frame: RawFrame) -> None:
        """The same for a frame of llama.cpp's process; one that is not kept is not unpacked."""
        kind = frame.header.kind
        if kind == "Loaded" or frame.header.run in self._allowed:
            self.say(event_of(frame))
        else:
            self._pass_on(frame)

    def _keep(self, event: m.Stepped) -> Step:
        self._count += 1
        name, size = f"{self._name}.{self._count}", _bytes(event.step)
        with self._lock:
            self._kept[name] = event.step, size
            held = sum(bytes_ for _, bytes_ in self._kept.values())
            while held > self._allowed[event.run] and len(self._kept) > 1:
                _, (_, gone) = self._kept.popitem(last=False)
                held -= gone
        return sent_later(event.step, name)


def _bytes(step: Step) -> int:
    """What is kept of a step, its logits not counted."""
    arrays = [
        array
        for record in step.layers
        for array in (record.queries, record.keys, record.weights, record.bias)
        if array is not None
    ]
    return sum(array.nbytes for array in arrays) + (
        0 if step.hidden is None else step.hidden.nbytes
    )
