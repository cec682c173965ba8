"""A plan in words."""

from __future__ import annotations

from explorer.trace.cost.run_cost import Plan
from explorer.wording import seconds_text, short_bytes


def sentence(plan: Plan) -> str:
    """What it will take, in one or two sentences."""
    text = (
        f"Reading {plan.tokens:,} tokens takes up to {short_bytes(plan.total_bytes)} of memory "
        f"beside the {short_bytes(plan.weights_bytes)} of weights (cache "
        f"{short_bytes(plan.cache_bytes)}, recorded attention {plan.copies} × "
        f"{short_bytes(plan.capture_bytes)})"
    )
    if plan.estimated_seconds is not None:
        text += f" and about {seconds_text(plan.estimated_seconds)} (an estimate)"
    if not plan.fits and plan.available_bytes is not None:
        text += f"; only {short_bytes(plan.available_bytes)} are free"
    return text + "."
