"""The saved runs that --patch takes activations from."""

from __future__ import annotations

from explorer.cli.errors import CommandError
from explorer.trace.card import ModelCard
from explorer.trace.files import dxt
from explorer.trace.fingerprint import same_weights
from explorer.trace.interventions.kinds import OtherRun, Patch
from explorer.trace.request import RunRequest
from explorer.trace.trace import source_of

_cards: dict[OtherRun, tuple[str, ModelCard]] = {}  # of the files that were opened


def source_in(file: str) -> OtherRun:
    """What a saved run has read; ValueError with the reason if it can't be used."""
    trace = dxt.load(file.strip())
    source = source_of(trace)
    _cards[source] = file.strip(), trace.card
    return source


def require_same_model(request: RunRequest, card: ModelCard) -> None:
    """CommandError if a patch names a file whose run is of another model: ids differ there."""
    for one in request.interventions:
        if not isinstance(one, Patch) or one.source not in _cards:
            continue
        file, made_by = _cards[one.source]
        if not same_weights(made_by.fingerprint, card.fingerprint):
            raise CommandError(
                f"{file} is a run of {made_by.name}, and this model is another ({card.name}). "
                "A patch is taken from a run of the same model."
            )
