"""Whatever holds arrays is compared by identity: numpy's == gives an array, which is no answer."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

import explorer.figures
import explorer.sampling
import explorer.trace
from tests.trace.runs import made_trace


def frozen_with_arrays(room: ModuleType) -> Iterator[type]:
    for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
        for thing in vars(importlib.import_module(found.name)).values():
            if isinstance(thing, type) and dataclasses.is_dataclass(thing):
                arrays = any("ndarray" in str(field.type) for field in dataclasses.fields(thing))
                if arrays and thing.__dataclass_params__.frozen:  # type: ignore[attr-defined]
                    yield thing


def test_no_comparison_reaches_an_array() -> None:
    rooms = (explorer.trace, explorer.figures, explorer.sampling)
    kinds = {kind for room in rooms for kind in frozen_with_arrays(room)}
    assert len(kinds) > 10
    assert [kind for kind in kinds if kind.__eq__ is not object.__eq__] == []


def test_two_runs_of_the_same_prompt_can_be_compared() -> None:
    one, other = made_trace(), made_trace()
    assert one != other
    assert one == dataclasses.replace(one)
