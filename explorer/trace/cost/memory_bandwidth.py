"""How fast this machine reads memory, and what that means for one decode step."""

from __future__ import annotations

import msgspec


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """The machine's memory-traffic bound, and the weights that one token has to read.

    No decode step of this model can take less than `floor_ms` here: every weight that a token
    needs is read once.  The cache is read on top of that.
    """

    bytes_per_second: float  # float32 matrix-vector product, the best of what was measured here
    step_bytes: int  # of parameters that one token reads, as they lie in memory
    threads: int

    @property
    def floor_ms(self) -> float:
        """Milliseconds to read the weights of one token once."""
        return 1e3 * self.step_bytes / self.bytes_per_second
