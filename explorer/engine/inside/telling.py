"""When what is known so far is worth telling: each telling holds everything once more."""

from __future__ import annotations

import math
import time

_EVERY_S = 0.25  # seconds between two tellings
_MOST = 20  # tellings of one question


class Telling:
    """Counts what is done of a question about so many things."""

    def __init__(self, asked: int) -> None:
        self._asked = asked
        self._told, self._told_at = 0, time.monotonic()

    def due(self, done: int) -> bool:
        """True if there is enough news since the last time, and more to come."""
        fresh = done - self._told >= math.ceil(self._asked / _MOST)
        late = time.monotonic() - self._told_at >= _EVERY_S
        if not (fresh and late and done < self._asked):
            return False
        self._told, self._told_at = done, time.monotonic()
        return True
