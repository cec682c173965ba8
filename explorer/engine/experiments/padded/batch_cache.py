"""What was computed for the last batches on one model: a switch that is moved asks for little new.

A row by itself is the same whatever side it was padded on, and a prefill is the same whichever of
its slots is read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

LIMIT_BYTES = 256 << 20
T = TypeVar("T")


class ResultCache:
    """Belongs to one loaded model; the results asked for longest ago are forgotten first."""

    def __init__(self, limit: int = LIMIT_BYTES) -> None:
        self._limit = limit
        self._kept: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """The result under `key`, made if it is not there; `size` gives its bytes."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][0]  # type: ignore[return-value]
        made = make()
        self._kept[key] = made, size(made)
        while len(self._kept) > 1 and self.bytes > self._limit:
            self._kept.popitem(last=False)
        return made

    @property
    def bytes(self) -> int:
        """What the results hold."""
        return sum(size for _, size in self._kept.values())
