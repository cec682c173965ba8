"""Why a run can't be had on a model: an intervention or a policy that it does not allow."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from explorer.trace.card import ModelCard
from explorer.trace.interventions.kinds import Intervention, Silence, brief, capability
from explorer.trace.request import RunRequest

_IN_ATTENTION = ("silence_heads", "patch_heads", "cut_cells", "scale_scores")


def misfit(
    card: ModelCard,
    interventions: Iterable[Intervention],
    layers: int,
    with_mlp: Collection[int],
    attending: Collection[int],
) -> str:
    """The first intervention that this model can't do, and why; empty if there is none.

    `with_mlp`: layers whose MLP can be silenced; `attending`: layers that attend.
    """
    for one in interventions:
        name, layer = capability(one), one.layer
        if isinstance(one, Silence) and one.by == "mean" and one.part != "head":
            return f"'{one}' is not possible: only a head can be set to its mean."
        if not card.offers(name):
            return f"'{brief(one)}' is not possible here: {card.words(name)}."
        if layer is None:
            continue
        if layer >= layers:
            return f"There is no layer {layer}: this model has layers 0 to {layers - 1}."
        if name in ("silence_mlp", "patch_mlp") and layer not in with_mlp:
            return f"Layer {layer} has no MLP that can be changed by itself."
        if name in _IN_ATTENTION and layer not in attending:
            return f"Layer {layer} has no attention map, so its heads can't be changed."
    return ""


def policy_misfit(card: ModelCard, request: RunRequest) -> str:
    """Why a request can't be run under its context policy; empty if it can."""
    policy = request.context
    if policy.keeps_last and not card.offers("cut_cells"):
        name = "A window with sinks" if policy.sinks else "A sliding window"
        return f"{name} is not possible here: {card.words('cut_cells')}."
    return request.policy_clash
