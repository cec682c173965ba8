"""`--context-policy`: what a run does about a text that is longer than what it may read at once."""

from __future__ import annotations

import argparse

from explorer.cli.errors import CommandError
from explorer.trace.card import ModelCard
from explorer.trace.inside.misfit import policy_misfit
from explorer.trace.interventions.context_policy import SINKS, USUAL, ContextPolicy
from explorer.trace.request import RunRequest

_KEEP_LAST = ("window", "sinks")


def policy_of(arguments: argparse.Namespace) -> ContextPolicy:
    """What was asked for; CommandError for options that do not fit together."""
    name, window, sinks = arguments.context_policy, arguments.window, arguments.sinks
    distances = arguments.sink_distances
    if name is None:
        if any(one is not None for one in (window, sinks, distances)):
            raise CommandError(
                "--window, --sinks and --sink-distances are of a --context-policy. Choose one."
            )
        return USUAL
    if distances is not None and name != "sinks":
        raise CommandError(
            "--sink-distances is of --context-policy sinks. Leave it out, or choose that."
        )
    if sinks is not None and name != "sinks":
        raise CommandError("--sinks is of --context-policy sinks. Leave it out, or choose that.")
    if name in _KEEP_LAST and window is None:
        raise CommandError(f"--context-policy {name} needs --window: the tokens to be kept.")
    kept = 0 if name != "sinks" else SINKS if sinks is None else sinks
    if name in _KEEP_LAST and kept >= window:
        raise CommandError(f"--window {window} leaves no room beside {kept} sinks. Make it larger.")
    return ContextPolicy(name=name, tokens=window or 0, sinks=kept, distances=distances or "text")


def require_fitting(request: RunRequest, card: ModelCard) -> None:
    """CommandError where its policy does not go with the rest, or with the model.

    Turns can't be dropped where there are none, or no limit.
    """
    if refused := policy_misfit(card, request):
        raise CommandError(refused)
    if request.context.name != "drop-turns":
        return
    if not request.messages:
        raise CommandError("--context-policy drop-turns needs a conversation: --messages.")
    _limit(request, card)


def _limit(request: RunRequest, card: ModelCard) -> int:
    """Tokens from the first position of the run on."""
    limit = request.context.limit(card.context and card.context - request.position_offset)
    if not limit:
        raise CommandError("This model states no context length. Give the limit by --window.")
    return limit


def require_room(request: RunRequest, card: ModelCard, slots: int) -> None:
    """CommandError for a run of more slots than its limit."""
    room = _limit(request, card)
    if slots > room:
        raise CommandError(
            f"Prompt and steps take {slots:,} positions, and the limit is {room:,}. Shorten "
            "them, or choose another --context-policy."
        )
