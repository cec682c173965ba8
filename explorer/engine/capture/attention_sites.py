"""Where a pass attended to tokens, and the layer number that each place gets.

In nearly every model a layer attends once, and the number is the layer's.  Where a layer attends
more than once, or runs more than once, the places are numbered in the order in which they ran.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from explorer.engine.capture.probe import Call, Recorder

NO_ATTENTION = "This layer has no attention map: it keeps a recurrent or convolutional state."
LEFT_OUT = "Not recorded: this run records the attention of one layer in {0}, as you chose."
NOT_RUN = "This layer did not run: its input is not text."
NO_OWN_MAP = "This layer has no attention map: the model provides none."


@dataclass(frozen=True, slots=True)
class Site:
    """One place where a pass attended to tokens, or a layer that did not."""

    layer: int
    call: Call | None = None
    own: torch.Tensor | None = None  # (B, H, Q, K), the model's own map
    reason: str = ""  # why neither


def sites(recorder: Recorder) -> list[Site]:
    """Every site of one pass, in order."""
    if recorder.own is not None:
        return _own_sites(recorder)
    calls = _distinct([call for call in recorder.calls if _reads_tokens(call, recorder)])
    by_layer: dict[int, list[Call]] = {}
    for call in calls:
        by_layer.setdefault(call.layer, []).append(call)
    once = len(set(recorder.visited)) == len(recorder.visited)
    if once and all(len(found) == 1 for found in by_layer.values()):
        return [_site(layer, by_layer.get(layer), recorder) for layer in range(recorder.layers)]
    return [Site(number, call) for number, call in enumerate(calls)]


def _site(layer: int, calls: list[Call] | None, recorder: Recorder) -> Site:
    if calls:
        return Site(layer, calls[0])
    if layer % recorder.every:
        return Site(layer, reason=LEFT_OUT.format(recorder.every))
    return Site(layer, reason=NO_ATTENTION if layer in recorder.visited else NOT_RUN)


def _reads_tokens(call: Call, recorder: Recorder) -> bool:
    """False for attention over anything else, such as over a layer's earlier outputs."""
    if call.layer < 0 or call.query.ndim != 4 or call.query.shape[2] != recorder.rows:
        return False
    return recorder.token_modules is None or call.module in recorder.token_modules


def _distinct(calls: list[Call]) -> list[Call]:
    """Without calls that repeat the one before on the same queries, keys and mask."""
    kept: list[Call] = []
    for call in calls:
        if not (kept and kept[-1].layer == call.layer and _same_map(kept[-1], call)):
            kept.append(call)
    return kept


def _same_map(a: Call, b: Call) -> bool:
    return a.query is b.query and a.key is b.key and a.mask is b.mask and a.scaling == b.scaling


def _own_sites(recorder: Recorder) -> list[Site]:
    """The model's own maps, one a layer; no map at all where they can't be told apart."""
    own = recorder.own or ()
    if len(own) != recorder.layers:
        return [Site(layer, reason=NO_OWN_MAP) for layer in range(recorder.layers)]
    return [_own_site(layer, given, recorder) for layer, given in enumerate(own)]


def _own_site(layer: int, given: object, recorder: Recorder) -> Site:
    if layer % recorder.every:
        return Site(layer, reason=LEFT_OUT.format(recorder.every))
    if isinstance(given, torch.Tensor) and given.ndim == 4 and given.shape[2] == recorder.rows:
        return Site(layer, own=given)
    return Site(layer, reason=NO_OWN_MAP)
