"""Queries and keys that an engine on another machine keeps: fetched for what is looked at.

First the head that is selected, then the small pictures of all heads, then the other heads of that
layer.  One question at a time, so that what is looked at next need not wait for long.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from explorer.figures.attention.arrived_head import needed_passes
from explorer.figures.attention.atlas import Atlas
from explorer.session import capture_budget
from explorer.session.engine_lease import EngineLease
from explorer.session.state import Fetching, State
from explorer.trace.trace import Trace
from explorer.trace.wire import away
from explorer.trace.wire import messages as m
from explorer.trace.wire.validate import require_sound_part

KEEP_BYTES = 1 << 30  # on the engine's machine
_MOST_LEVELS = 1 << 26  # bytes of an atlas


@dataclass(frozen=True, slots=True)
class _Question:
    run: int
    layer: int = -1  # -1: the atlas
    group: int = 0
    kept: tuple[str, ...] = ()


class FarRecords:
    """Asks beside whatever has the engine; what comes goes into the trace on screen."""

    def __init__(self, lease: EngineLease, recompute: Callable[[int], None]) -> None:
        """`recompute` is called with the step on screen when its records can't be had any more."""
        self._store, self._link, self._recompute = lease.store, lease.link, recompute
        self._asked: _Question | None = None
        self._came: list[m.Records] = []
        self._all = False  # the user asked for something that takes every head
        self._no_atlas: tuple[str, ...] = ()  # passes of which there is none
        self._store.subscribe(lambda old, new: self._look(old, new))

    @property
    def keep_bytes(self) -> int:
        """What a run asks the engine to keep; 0 where it sends everything at once."""
        return KEEP_BYTES if self._link.keeps_records else 0

    def forget(self) -> None:
        """The engine is gone."""
        self._asked, self._came = None, []
        self._done()

    def fetch_all(self) -> None:
        """Every layer's records of the step on screen, one after the other."""
        self._all = True
        self.look()

    def _look(self, old: State, new: State) -> None:
        if old.trace is not new.trace or old.selection != new.selection or old.status != new.status:
            self.look()

    def look(self) -> None:
        """Ask for the first thing that is looked at and is not here."""
        state = self._store.state
        shown = state.shown
        if self._asked is not None or not self._link.alive:
            return
        if shown is None or not any(step.kept_as for step in shown.trace.steps):
            self._done()  # as with every engine of this machine
            return
        needed = needed_passes(shown.trace, shown.step)
        passes = [i for i in needed if away.is_away(shown.trace.steps[i])]
        if not passes:
            self._done()
            return
        if not self._link.keeps_records:  # they were kept by another engine
            self._gone({shown.trace.steps[i].kept_as for i in passes})
            return
        for layer, group in self._wanted(state):
            if layer < 0:
                self._ask_atlas(tuple(one.kept_as for one in shown.trace.steps[: shown.step + 1]))
                return
            records = [(shown.trace.steps[i], i) for i in passes]
            kept = tuple(
                step.kept_as
                for step, _ in records
                if step.layers[layer].away and group not in dict(step.layers[layer].parts)
            )
            if kept:
                request = m.SendRecords(kept=kept, layer=layer, group=group)
                self._asked = _Question(self._link.ask(request), layer, group, kept)
                self._tell(layer, group)
                return
        self._done()

    def _done(self) -> None:
        self._all = False
        if self._store.state.fetching is not None:
            self._store.set(fetching=None)

    def _wanted(self, state: State) -> Iterator[tuple[int, int]]:
        """(layer, group) in the order in which they are wanted; layer -1: the atlas."""
        shown = state.shown
        assert shown is not None
        layer = min(shown.layer, len(shown.last_pass.layers) - 1)
        records = [one.layers[layer] for one in shown.passes if one.layers[layer].away]
        if records:
            own = away.group_of(records[0], shown.head)
            yield layer, own
        if state.status.activity == "running":
            return  # each step asks for its own
        kept = tuple(one.kept_as for one in shown.passes)
        known = state.far_atlas
        if kept != self._no_atlas and (known is None or known[0] != kept):
            yield -1, 0
        for group in range(records[0].groups if records else 0):
            yield layer, group
        for other in range(len(shown.last_pass.layers) if self._all else 0):
            groups = [one.layers[other].groups for one in shown.passes if one.layers[other].away]
            for group in range(max(groups, default=0)):
                yield other, group

    def _ask_atlas(self, kept: tuple[str, ...]) -> None:
        self._asked = _Question(self._link.ask(m.SendAtlas(kept=kept)), kept=kept)
        self._store.set(fetching=Fetching())

    def _tell(self, layer: int, group: int) -> None:
        shown = self._store.state.shown
        assert shown is not None
        of_layer = [one.layers[layer] for one in shown.passes if one.layers[layer].away]
        record = of_layer[-1]
        share = max(1, record.away // max(1, record.groups))
        last = min((group + 1) * share, record.heads) - 1
        self._store.set(fetching=Fetching(layer=layer, heads=(group * share, last)))

    # -- answers

    def answered(self, event: m.Event) -> bool:
        """True if this was asked for here."""
        asked = self._asked
        if asked is None or event.run != asked.run:
            return False
        if isinstance(event, m.Records):
            self._came.append(event)
        elif isinstance(event, m.Thumbnails):
            self._asked = None
            self._have_atlas(event, asked)
        elif isinstance(event, m.Finished | m.Failed):
            self._asked = None
            if asked.layer < 0:
                self._no_atlas = asked.kept
            failed = event.sentence if isinstance(event, m.Failed) else ""
            self._take_in(failed)
        return True

    def _have_atlas(self, event: m.Thumbnails, asked: _Question) -> None:
        shape = event.shape
        size = 2 * int(np.prod(shape, dtype=np.float64))
        levels = None
        if size <= _MOST_LEVELS:
            try:
                raw = zlib.decompressobj().decompress(event.levels, size + 1)
                levels = np.frombuffer(raw, np.uint16).reshape(shape)
            except (zlib.error, ValueError):
                levels = None
        fits = levels is not None and len(event.heads) == len(event.reasons) == shape[0]
        if not fits or levels is None:
            self._no_atlas = asked.kept
            self._store.set(error="The engine's pictures of all heads could not be read.")
        else:
            found = Atlas(
                levels, event.heads, event.reasons, event.slots, event.stride, (), complete=True
            )
            self._store.set(far_atlas=(asked.kept, found))
        self.look()

    def _take_in(self, failed: str) -> None:
        came, self._came = self._came, []
        trace = self._store.state.trace
        gone = {one.kept for one in came if one.record is None}
        if trace is not None and len(came) > len(gone):
            try:
                self._store.set(trace=with_parts(trace, came))
            except ValueError as error:
                failed = f"The engine's answer does not fit this run: a layer {error}."
        if failed:  # asking again at once would only fail again
            self._store.set(error=failed, fetching=None)
        elif gone:
            self._gone(gone)
        else:
            self.look()

    def _gone(self, names: set[str]) -> None:
        """The engine keeps these passes no longer: they are recomputed when they are looked at."""
        state = self._store.state
        if state.trace is None:
            return
        steps = tuple(
            capture_budget.without_records(step) if step.kept_as in names else step
            for step in state.trace.steps
        )
        if steps != state.trace.steps:
            self._store.set(trace=replace(state.trace, steps=steps), fetching=None)
        if (index := self._store.state.step_index) is not None:
            self._recompute(index)


def with_parts(trace: Trace, came: list[m.Records]) -> Trace:
    """The trace with these parts of its steps; those of other runs are passed by.

    ValueError if one does not fit the step that it names.
    """
    found = {one.kept: one for one in came if one.record is not None}
    steps = list(trace.steps)
    for i, step in enumerate(steps):
        one = found.get(step.kept_as) if step.kept_as else None
        if one is None or one.record is None or not 0 <= one.layer < len(step.layers):
            continue
        if not step.layers[one.layer].away:
            continue
        require_sound_part(one.record, step.positions_processed)
        whole = away.with_part(step.layers[one.layer], one.group, one.record)
        layers = (*step.layers[: one.layer], whole, *step.layers[one.layer + 1 :])
        steps[i] = replace(step, layers=layers)
    return replace(trace, steps=tuple(steps))
