"""What a run will take, told before it begins."""

from __future__ import annotations

import msgspec

LARGE_BYTES = 1_000_000_000
LARGE_SECONDS = 30.0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes of the first pass by formula, its time as an estimate."""

    tokens: int  # slots that the first pass reads
    weights_bytes: int  # in memory already
    cache_bytes: int  # keys and values at most; layers with windows keep less
    capture_bytes: int  # queries, keys and hidden states, once
    copies: int = 2  # of the capture while it travels: in the engine and in the window
    available_bytes: int | None = None  # beside the model; None = not known
    estimated_seconds: float | None = None  # from speeds measured on this machine; not a promise
    in_chunks: bool = False
    capture_every: int = 1

    @property
    def total_bytes(self) -> int:
        """What it takes beside the weights."""
        return self.cache_bytes + self.copies * self.capture_bytes

    @property
    def fits(self) -> bool:
        """False if there is less memory than it takes."""
        return self.available_bytes is None or self.total_bytes <= self.available_bytes

    @property
    def large(self) -> bool:
        """True if the run needs confirmation first."""
        slow = self.estimated_seconds is not None and self.estimated_seconds > LARGE_SECONDS
        return self.total_bytes > LARGE_BYTES or slow or not self.fits
