"""When each node of a graph was computed, told by the callback that asks whether to give up.

llama.cpp calls it after every node.  The moments are noted by Python's own parts written in C,
without a line of Python: a pass of six hundred nodes takes a third of a millisecond longer.
"""

from __future__ import annotations

import ctypes as c
import time

from explorer.llama_engine.binding.structs import TICK


class NodeClock:
    """The moments of one pass."""

    def __init__(self) -> None:
        self.moments: list[float] = []
        self._ending: dict[None, bool] = {None: False}
        noted = map(self.moments.append, iter(time.perf_counter, None))
        self._tick = TICK(map(self._ending.__getitem__, noted).__next__)
        self.callback = c.cast(self._tick, c.c_void_p)

    def begin(self) -> None:
        """Before each pass."""
        self.moments.clear()
        self._ending[None] = False

    @property
    def ending(self) -> bool:
        """True once the pass is to be given up."""
        return self._ending[None]

    def end_pass(self) -> None:
        """llama.cpp gives up after the node that it computes now."""
        self._ending[None] = True
