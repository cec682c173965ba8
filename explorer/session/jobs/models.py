"""The models on the engine's disk, and what is known of the one that is open."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from explorer.session.engine_lease import EngineLease
from explorer.trace.cost.memory_bandwidth import Traffic
from explorer.trace.cost.model_plan import ModelPlan
from explorer.trace.found_models import Library, Recipe
from explorer.trace.wire import messages as m

T = TypeVar("T", Library, ModelPlan, Recipe, Traffic)


class Models:
    """Asks beside whatever has the engine; answers go into the state."""

    def __init__(self, lease: EngineLease) -> None:
        self._store, self._link = lease.store, lease.link
        self._finding = 0  # run number of the open question, 0 = none
        self._describing = 0
        self._measuring = 0
        self._planning = 0
        self._described = ""  # the model that was asked about last

    def forget(self) -> None:
        """The engine is gone: open questions are never answered."""
        self._finding = self._describing = self._measuring = self._planning = 0
        self._described = ""
        state = self._store.state
        if state.finding or state.planning:
            self._store.set(finding=False, planning=False)

    def opened(self) -> dict[str, Any]:
        """Another model is open: the changes that drop what is known of the last one."""
        self._describing = self._measuring = 0
        self._described = ""
        return {"recipe": None, "recipe_problem": "", "traffic": None}

    def find(
        self, add_folder: str = "", remove_folder: str = "", clear_conversions: bool = False
    ) -> None:
        """Look for models on the engine's disk: `state.library`; first do what is wished."""
        if not self._link.alive:
            self._store.set(
                library_problem="The engine is not running. Start it to search for models."
            )
            return
        self._finding = self._link.ask(
            m.FindModels(
                add_folder=add_folder,
                remove_folder=remove_folder,
                clear_conversions=clear_conversions,
            )
        )
        self._store.set(finding=True, library_problem="")

    def describe(self) -> None:
        """Ask how the open model is built, once: `state.recipe`."""
        state = self._store.state
        if state.card is None or not state.opened or self._described == state.opened[0].model:
            return
        self._described = state.opened[0].model
        self._describing = self._link.ask(m.Inspect(model=self._described))

    def plan(self, asked: m.PlanModel) -> None:
        """Ask what a model takes, open or not: `state.model_plan`."""
        if not asked.model:
            self._store.set(model_plan_problem="Name a model, or a config.json, to plan for.")
            return
        if not self._link.alive:
            self._store.set(
                model_plan_problem="The engine is not running. Start it to make a plan."
            )
            return
        self._planning = self._link.ask(asked)
        self._store.set(planning=True, model_plan_problem="")

    def measure(self) -> None:
        """Ask for the memory-traffic bound once for the model that is open."""
        state = self._store.state
        if state.card is not None and state.traffic is None and not self._measuring:
            self._measuring = self._link.ask(m.MeasureTraffic())

    def answered(self, event: m.Facts | m.Failed) -> bool:
        """True if this was asked for here: the facts, or why there are none."""
        problem = event.sentence if isinstance(event, m.Failed) else ""
        if event.run == self._finding:
            self._finding = 0
            library = _convert(event, Library) or self._store.state.library
            self._store.set(finding=False, library=library, library_problem=problem)
        elif event.run == self._describing:
            self._describing = 0
            self._store.set(recipe=_convert(event, Recipe), recipe_problem=problem)
        elif event.run == self._planning:
            self._planning = 0
            plan = _convert(event, ModelPlan) or self._store.state.model_plan
            self._store.set(planning=False, model_plan=plan, model_plan_problem=problem)
        elif event.run == self._measuring:
            if isinstance(event, m.Facts):  # else the floor is not known
                self._measuring = 0
                self._store.set(traffic=_convert(event, Traffic))
        else:
            return False
        return True


def _convert(event: m.Facts | m.Failed, kind: type[T]) -> T | None:
    """Facts as a struct; None from an engine that has none, or speaks of them otherwise."""
    try:
        return msgspec.convert(event.facts, kind) if isinstance(event, m.Facts) else None
    except msgspec.ValidationError:
        return None
