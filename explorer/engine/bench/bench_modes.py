"""The named modes under the bench's clocks: each beside the plain loop and the floor."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from explorer.engine import modes
from explorer.engine.errors import BadInput
from explorer.engine.passes.runner import Runner
from explorer.trace.mode_figures import ModeFigures
from explorer.trace.modes import MODES

ROUNDS = 9
Clock = Callable[[], list[float]]  # seconds per token, of several


def measure(
    runner: Runner,
    clocks: tuple[Clock, Clock, Clock],
    note: Callable[[str, float | None], None],
    stop: Callable[[], bool],
) -> dict[str, Any]:
    """{named_modes, fastest_mode}; `clocks`: the plain loop, the watched one, the floor.

    The runner is in exact mode afterwards, as before.
    """
    if runner.loaded.card.mode != "exact":
        words = (
            f"measured only from exact mode, but this bench ran in mode {runner.loaded.card.mode}"
        )
        return {"named_modes": [], "named_modes_note": words}
    found: list[dict[str, Any]] = []
    for mode in list(MODES)[1:]:
        try:
            entered, figures = modes.try_out(runner, mode, note, stop)
        except BadInput as error:
            found.append({"name": mode, "not_offered": error.sentence})
            continue
        try:
            seconds: list[list[float]] = [[], [], []]
            for round_ in range(ROUNDS):
                note(f"Decoding in mode {mode}, round {round_ + 1} of {ROUNDS}", None)
                for kept, clock in zip(seconds, clocks, strict=True):
                    kept.append(statistics.median(clock()))
        finally:
            entered.leave()
        found.append(_row(figures, *seconds))
    offered = [one for one in found if "decode_over_plain" in one]
    fastest = min(offered, key=lambda one: one["decode_over_plain"], default=None)
    return {"named_modes": found, "fastest_mode": None if fastest is None else fastest["name"]}


def paired(above: Sequence[float], below: Sequence[float]) -> tuple[float, list[float]]:
    """The median of the ratios of each pair, and [lowest, highest] of them."""
    ratios = [a / b for a, b in zip(above, below, strict=True)]
    return statistics.median(ratios), [min(ratios), max(ratios)]


def _row(
    figures: ModeFigures, plain: Sequence[float], ours: Sequence[float], floor: Sequence[float]
) -> dict[str, Any]:
    """`plain`, `ours`, `floor`: seconds a token in each round."""
    over_plain, plain_spread = paired(ours, plain)
    over_floor, floor_spread = paired(ours, floor)
    return {
        "name": figures.mode,
        "decode_ms": statistics.median(ours) * 1e3,
        "decode_over_plain": over_plain,
        "decode_over_plain_spread": plain_spread,
        "decode_over_floor": over_floor,
        "decode_over_floor_spread": floor_spread,
        "max_logit_difference": figures.max_logit_difference,
        "same_winner_steps": figures.same_winner_steps,
        "steps": figures.steps,
        "warm_up_s": figures.warm_up_s,
    }
