"""What a named mode was measured to gain and to change."""

from __future__ import annotations

import msgspec

from explorer.trace.modes import Mode


class ModeFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One mode beside exact mode, measured on one model and one machine.

    Over the same tokens: a prompt, and then `steps` cached steps of one token each.
    """

    mode: Mode
    measured: str  # the day
    exact_ms: float  # median of a step
    mode_ms: float
    max_logit_difference: float
    same_winner_steps: int
    steps: int
    warm_up_s: float  # to build the kernels, and to round the weights where the mode does

    @property
    def gain(self) -> float:
        """Time of a step over that in exact mode; below 1 is faster."""
        return self.mode_ms / self.exact_ms


def sentence(figures: ModeFigures) -> str:
    """What was measured, in one line."""
    slower = "" if figures.gain < 1 else " (no gain here)"
    return (
        f"time per token {figures.gain:.2f} × exact mode{slower}; logits differ by at most "
        f"{figures.max_logit_difference:.2g}; same top token in {figures.same_winner_steps} of "
        f"{figures.steps} passes; ready after {figures.warm_up_s:.1f} s "
        f"(measured {figures.measured})"
    )
