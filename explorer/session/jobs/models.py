"""The models on the engine's disk, and what is known of the one that is open."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from explorer.session.engine_lease import Desk
from explorer.trace.found_models import Library, Recipe
from explorer.trace.memory_bandwidth import Traffic
from explorer.trace.wire import messages as m

T = TypeVar("T", Library, Recipe, Traffic)


class Models:
    """Asks beside whatever has the engine; answers go into the state."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._finding = 0  # run number of the open question, 0 = none
        self._describing = 0
        self._measuring = 0
        self._described = ""  # the model that was asked about last

    def forget(self) -> None:
        """The engine is gone: open questions are never answered."""
        self._finding = self._describing = self._measuring = 0
        self._described = ""
        if self._desk.store.state.finding:
            self._desk.store.set(finding=False)

    def opened(self) -> dict[str, Any]:
        """Another model is open: the changes that drop what is known of the last one."""
        self._describing = self._measuring = 0
        self._described = ""
        return {"recipe": None, "recipe_problem": "", "traffic": None}

    def find(self, **wishes: Any) -> None:
        """Look for models; `wishes` are fields of `messages.FindModels`."""
        if not self._desk.link.alive:
            self._desk.store.set(
                library_problem="The engine is not running: start it to look for models."
            )
            return
        self._finding = self._desk.link.ask(m.FindModels(**wishes))
        self._desk.store.set(finding=True, library_problem="")

    def describe(self) -> None:
        """Ask for the recipe of the model that is open, unless it is known or asked for."""
        state = self._desk.store.state
        if state.card is None or not state.opened or self._described == state.opened[0][0]:
            return
        self._described = state.opened[0][0]
        self._describing = self._desk.link.ask(m.Inspect(model=self._described))

    def measure(self) -> None:
        """Ask for the memory-traffic bound once for the model that is open."""
        state = self._desk.store.state
        if state.card is not None and state.traffic is None and not self._measuring:
            self._measuring = self._desk.link.ask(m.MeasureTraffic())

    def answered(self, event: m.Facts) -> bool:
        """True if these are facts that were asked for here."""
        if event.run == self._finding:
            self._finding = 0
            library = _convert(event.facts, Library)
            self._desk.store.set(finding=False, library=library or self._desk.store.state.library)
        elif event.run == self._describing:
            self._describing = 0
            self._desk.store.set(recipe=_convert(event.facts, Recipe))
        elif event.run == self._measuring:
            self._measuring = 0
            self._desk.store.set(traffic=_convert(event.facts, Traffic))
        else:
            return False
        return True

    def failed(self, event: m.Failed) -> bool:
        """True if the failure is of a question asked here."""
        if event.run == self._finding:
            self._finding = 0
            self._desk.store.set(finding=False, library_problem=event.sentence)
        elif event.run == self._describing:
            self._describing = 0
            self._desk.store.set(recipe_problem=event.sentence)
        elif event.run == self._measuring:
            pass  # asked again after the next run; until then the floor is not known
        else:
            return False
        return True


def _convert(facts: dict[str, Any], kind: type[T]) -> T | None:
    """Facts as a struct; None from an engine that speaks of them otherwise."""
    try:
        return msgspec.convert(facts, kind)
    except msgspec.ValidationError:
        return None
