"""Changes of state that put another trace or model in place, and what is known of its tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from explorer.session.selection import Selection
from explorer.session.state import State, model_key
from explorer.trace.card import SelfCheck
from explorer.trace.comparison import KEPT
from explorer.trace.files.saved_view import SavedView
from explorer.trace.request import RunRequest
from explorer.trace.step import Token
from explorer.trace.trace import Trace


def view(trace: Trace | None, state: State) -> dict[str, Any]:
    """The changes that put another trace on screen, looking at its latest step."""
    return {
        "trace": trace,
        "selection": replace(state.selection, step=None, query=None, key=None, token_id=None),
    }


def seen(state: State, look: SavedView) -> SavedView:
    """What is selected, added to how it is looked at."""
    chosen = state.selection
    return msgspec.structs.replace(
        look,
        step=chosen.step,
        layer=chosen.layer,
        head=chosen.head,
        query=chosen.query,
        key=chosen.key,
        compare=state.comparing and state.compare_of in KEPT,
        compare_of=state.compare_of if state.compare_of in KEPT else "mask",
    )


def selected(seen: SavedView) -> Selection:
    """What was selected."""
    return Selection(
        step=seen.step, layer=seen.layer, head=seen.head, query=seen.query, key=seen.key
    )


def same_view(trace: Trace, state: State) -> bool:
    """True if the trace on screen already shows these tokens, and a step would go on from it."""
    shown = state.trace
    return (
        shown is not None
        and trace.request == shown.request == state.request
        and trace.chosen_ids == shown.chosen_ids
        and trace.card is shown.card  # of other weights under the same name, it is another run
    )


def unchecked(trace: Trace) -> Trace:
    """What was checked was another trace."""
    return replace(trace, self_check=SelfCheck())


def known_token(token_id: int, state: State) -> Token | None:
    """An id as a token: from the vocabulary of its model, the step's top tokens, or the text."""
    assert state.trace is not None
    assert state.step_index is not None
    if state.names is not None and 0 <= token_id < len(state.names):
        return state.names.token(token_id, "forced")
    for token in (*state.trace.steps[state.step_index].top, *state.trace.tokens):
        if token.id == token_id:
            return msgspec.structs.replace(token, origin="forced")
    return None


def opened(
    before: RunRequest,
    name: str,
    dtype: str | None,
    device: str | None,
    cache_type_k: str | None,
    gpu_layers: int | None,
    form: str | None,
) -> RunRequest:
    """The request with another model; None = as before, the form of another in its usual way."""
    if form is None and name != before.model:
        form = ""
        cache_type_k, gpu_layers = cache_type_k or "f16", gpu_layers or 0
    if form == "float32":
        cache_type_k, gpu_layers = "f16", 0  # choices of llama.cpp's alone
    if device is None and name != before.model and before.device.startswith("auto"):
        device = "cpu"  # that one was too large for memory
    given = {
        "dtype": dtype,
        "device": device,
        "cache_type_k": cache_type_k,
        "gpu_layers": gpu_layers,
        "form": form,
    }
    changes: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    return without_strange(msgspec.structs.replace(before, model=name, **changes), before)


def with_model_of(request: RunRequest, current: RunRequest) -> RunRequest:
    """`request` on the model that is open now: undo does not open models."""
    fitting = msgspec.structs.replace(request, **model_key(current)._asdict())
    return without_strange(fitting, request)


def without_strange(request: RunRequest, before: RunRequest) -> RunRequest:
    """Without interventions if those are of another model, whose layers and heads are others."""
    if request.model == before.model:
        return request
    return msgspec.structs.replace(request, interventions=())
