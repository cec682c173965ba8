"""`--context-policy`: what a run does about a text that is longer than what it may read at once.

refuse      nothing is run that would not fit
drop-turns  the oldest turns of a conversation are left out; system messages and the last turn stay
window      each token attends to the last N tokens alone
sinks       each token attends to the first S tokens and to the last N - S

The last two cut cells of attention in every layer, in prefill and decode alike.  Positions stay
those of the text: no key is rotated anew and no position is given out twice, so a run still ends
where the model's context does.  The cache keeps the keys that nothing attends to.  Windows that a
model has of its own stay.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import msgspec

from explorer.cli.errors import CommandError
from explorer.trace.card import ModelCard
from explorer.trace.interventions.kinds import MOST, Cells
from explorer.trace.request import RunRequest

_SINKS = 4
_OF_CELLS = ("window", "sinks")


@dataclass(frozen=True, slots=True)
class ContextPolicy:
    """One policy; `window` None: the model's context."""

    name: str
    window: int | None
    sinks: int

    @property
    def cells(self) -> tuple[Cells, ...]:
        """The cells of attention that it changes, those that other interventions change later."""
        if self.name not in _OF_CELLS or self.window is None:
            return ()
        far = Cells(back=(self.window - self.sinks, MOST))
        kept = Cells(keys=(0, self.sinks - 1), restored=True)
        return (far, kept) if self.sinks else (far,)

    def applied(self, request: RunRequest) -> RunRequest:
        """The run that keeps to it, as far as that can be said before a model is open."""
        changed = (*self.cells, *request.interventions)
        return msgspec.structs.replace(request, interventions=changed)

    def fitted(self, request: RunRequest, card: ModelCard, steps: int) -> RunRequest:
        """The same once the model is open: how many tokens a conversation may take."""
        if self.name != "drop-turns":
            return request
        if not request.messages:
            raise CommandError("--context-policy drop-turns needs a conversation: --messages.")
        room = self._limit(card) - steps + 1
        if room < 1:
            raise CommandError(f"--steps {steps} leaves no room for a prompt. Take fewer steps.")
        return msgspec.structs.replace(request, fit_tokens=room)

    def require_room(self, card: ModelCard, slots: int) -> None:
        """CommandError if a run of so many slots is to be refused."""
        if self.name != "refuse":
            return
        limit = self._limit(card)
        if slots > limit:
            raise CommandError(
                f"Prompt and steps take {slots:,} positions, and the limit is {limit:,}. Shorten "
                "them, or choose another --context-policy."
            )

    def document(self) -> dict[str, object]:
        """As JSON."""
        return {"policy": self.name, "window": self.window, "sinks": self.sinks}

    def _limit(self, card: ModelCard) -> int:
        limit = self.window or card.context
        if not limit:
            raise CommandError("This model states no context length. Give the limit by --window.")
        return limit


def policy_of(arguments: argparse.Namespace) -> ContextPolicy | None:
    """What was asked for; CommandError for options that do not fit together."""
    name, window, sinks = arguments.context_policy, arguments.window, arguments.sinks
    if name is None:
        if window is not None or sinks is not None:
            raise CommandError("--window and --sinks are of a --context-policy. Choose one.")
        return None
    if sinks is not None and name != "sinks":
        raise CommandError("--sinks is of --context-policy sinks. Leave it out, or choose that.")
    if name in _OF_CELLS:
        if window is None:
            raise CommandError(f"--context-policy {name} needs --window: the tokens to be kept.")
        if arguments.no_causal_mask:
            raise CommandError(f"--context-policy {name} needs the causal mask.")
    kept = 0 if name != "sinks" else _SINKS if sinks is None else sinks
    if name == "sinks" and arguments.padding:
        raise CommandError("--context-policy sinks can't be combined with --padding.")
    if name in _OF_CELLS and kept >= window:
        raise CommandError(f"--window {window} leaves no room beside {kept} sinks. Make it larger.")
    return ContextPolicy(name, window, kept)
