"""The actions that change what the model computes: parts silenced, cells drawn, scores scaled."""

from __future__ import annotations

from explorer.session.state import State
from explorer.trace.interventions.kinds import Intervention, Silence
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.menus.action import Action
from explorer.ui.panel.patch_menu import sources


def _head(state: State) -> Silence:
    return Silence(layer=state.selection.layer, head=state.selection.head)


def _mean(state: State) -> Silence:
    return Silence(layer=state.selection.layer, head=state.selection.head, by="mean")


def _mlp(state: State) -> Silence:
    return Silence(layer=state.selection.layer, part="mlp")


def _layer(state: State) -> Silence:
    return Silence(layer=state.selection.layer, part="layer")


def _is_on(state: State, one: Intervention) -> bool:
    return one in state.request.interventions


def _can(state: State, one: Intervention, capability: str) -> bool:
    """True if it can be switched: on, where the model allows it, or off."""
    return _is_on(state, one) or _offers(state, capability)


def _offers(state: State, capability: str) -> bool:
    card = state.next_card
    return card is not None and card.offers(capability)


def _can_sweep(state: State) -> bool:
    card = state.card
    return state.step_index is not None and card is not None and card.offers("silence_heads")


def _can_patch(state: State) -> bool:
    """True if there is another run of this model, and a part that can be patched."""
    card = state.card
    able = card is not None and any(map(card.offers, ("patch_heads", "patch_mlp", "patch_stream")))
    return able and state.step_index is not None and bool(sources(state))


def _can_compare(state: State) -> bool:
    """True once there is a run, made with interventions or about to be."""
    if state.trace is None or not state.trace.steps:
        return False
    return bool(state.request.interventions or state.trace.request.interventions)


INTERVENTION_ACTIONS: tuple[Action, ...] = (
    Action(
        id="silence-head",
        menu="interventions",
        text=QT_TRANSLATE_NOOP("actions", "Silence this head"),
        tip=QT_TRANSLATE_NOOP("actions", "Set the output of the selected head to zero"),
        keys=("H",),
        act=lambda w: w.acting.session.switch_intervention(_head(w.acting.session.state)),
        enabled=lambda s: _can(s, _head(s), "silence_heads"),
        checked=lambda s: _is_on(s, _head(s)),
    ),
    Action(
        id="mean-head",
        menu="interventions",
        text=QT_TRANSLATE_NOOP("actions", "Set this head to its mean"),
        tip=QT_TRANSLATE_NOOP(
            "actions", "The selected head gives its mean over the prompt at every token"
        ),
        act=lambda w: w.acting.session.switch_intervention(_mean(w.acting.session.state)),
        enabled=lambda s: _can(s, _mean(s), "patch_heads"),
        checked=lambda s: _is_on(s, _mean(s)),
    ),
    Action(
        id="silence-mlp",
        menu="interventions",
        text=QT_TRANSLATE_NOOP("actions", "Silence this layer's MLP"),
        tip=QT_TRANSLATE_NOOP("actions", "The MLP of the selected layer writes nothing"),
        act=lambda w: w.acting.session.switch_intervention(_mlp(w.acting.session.state)),
        enabled=lambda s: _can(s, _mlp(s), "silence_mlp"),
        checked=lambda s: _is_on(s, _mlp(s)),
    ),
    Action(
        id="silence-layer",
        menu="interventions",
        text=QT_TRANSLATE_NOOP("actions", "Silence this layer"),
        tip=QT_TRANSLATE_NOOP("actions", "The selected layer passes its input on unchanged"),
        act=lambda w: w.acting.session.switch_intervention(_layer(w.acting.session.state)),
        enabled=lambda s: _can(s, _layer(s), "silence_layers"),
        checked=lambda s: _is_on(s, _layer(s)),
    ),
    Action(
        id="patch",
        menu="interventions",
        text=QT_TRANSLATE_NOOP("actions", "Patch from another run…"),
        tip=QT_TRANSLATE_NOOP(
            "actions",
            "Put the output of a head, an MLP or the residual stream of another run into this one",
        ),
        act=lambda w: w.patch(),
        enabled=_can_patch,
    ),
    Action(
        id="draw-mask",
        menu="interventions",
        text=QT_TRANSLATE_NOOP("actions", "Draw a mask on the map"),
        tip=QT_TRANSLATE_NOOP(
            "actions", "Cut or allow cells of attention by drawing; again: stop drawing"
        ),
        keys=("D",),
        icon="pencil",
        act=lambda w: w.draw_mask(),
        enabled=lambda s: s.step_index is not None and _offers(s, "cut_cells"),
    ),
    Action(
        id="scale-scores",
        menu="interventions",
        text=QT_TRANSLATE_NOOP("actions", "Scale attention scores…"),
        tip=QT_TRANSLATE_NOOP(
            "actions", "Make attention sharper or flatter in a head, a layer or everywhere"
        ),
        act=lambda w: w.scale_scores(),
        enabled=lambda s: _offers(s, "scale_scores"),
    ),
    Action(
        id="clear-interventions",
        menu="interventions",
        text=QT_TRANSLATE_NOOP("actions", "Clear all interventions"),
        tip=QT_TRANSLATE_NOOP("actions", "Run the model as it is again"),
        act=lambda w: w.acting.session.set_interventions(()),
        enabled=lambda s: bool(s.request.interventions),
    ),
    Action(
        id="compare-interventions",
        menu="interventions",
        text=QT_TRANSLATE_NOOP("actions", "Compare without interventions"),
        tip=QT_TRANSLATE_NOOP(
            "actions", "Run the same tokens without interventions, and show both and the difference"
        ),
        act=lambda w: w.compare_interventions(),
        enabled=_can_compare,
        checked=lambda s: s.comparing and s.compare_of == "interventions",
    ),
    Action(
        id="sweep-heads",
        menu="interventions",
        text=QT_TRANSLATE_NOOP("actions", "Which head matters here?"),
        tip=QT_TRANSLATE_NOOP(
            "actions",
            "Silence each head in turn, and sort the heads by what that does to the chosen token",
        ),
        act=lambda w: w.sweep_heads(),
        enabled=_can_sweep,
    ),
)
