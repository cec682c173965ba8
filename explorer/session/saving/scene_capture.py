"""The scene that brings back what is on screen, to be saved as a file."""

from __future__ import annotations

from typing import Literal

from explorer.lessons.scene import (
    EXPERIMENTS,
    MOST_PADDING,
    MOST_TOKENS,
    ExperimentWish,
    ForcedToken,
    Scene,
    SceneView,
    is_model_name,
)
from explorer.lessons.screen_names import LEAST_ZOOM, MOST_ZOOM
from explorer.session.state import State
from explorer.trace.files.saved_view import SavedView
from explorer.trace.interventions.kinds import written
from explorer.trace.trace import Trace, bare_name


def captured(state: State, view: SavedView | None = None, zoom: float = 0.0) -> Scene:
    """What is on screen as a scene; no figure, no result and no path of this computer is in it.

    A model that has no name in the library is left out: the scene is for the open model then.
    `view` is what the window shows, `zoom` of everything, 0 = as it is.
    """
    trace = state.trace
    request = state.request if trace is None else trace.request
    steps = 0 if trace is None else min(len(trace.steps), MOST_TOKENS)
    model = bare_name(request.model) if trace is None else trace.model_name
    chosen = state.selection
    padding = request.padding if request.pad and request.padding else "none"
    return Scene(
        model=model if is_model_name(model) else "",
        form=request.form,
        prompt=request.prompt,
        chat=request.chat,
        special_as_text=request.special_as_text,
        causal_mask=request.causal_mask,
        cache=request.cache,
        interventions=tuple(written(request.interventions)),
        context=request.context,
        padding=padding,
        pad=min(request.pad, MOST_PADDING) if padding != "none" else 0,
        sampling=state.sampling,
        stops=state.stops,
        run=steps,
        force=() if trace is None else _forced(trace.truncated(steps)),
        step=_step(state, steps),
        layer=chosen.layer,
        head=chosen.head,
        query=chosen.query,
        key=chosen.key,
        compare=_compare(state),
        experiments=tuple(_experiments(state)),
        batch=None if state.batch is None else state.batch.request,
        view=_view(view, zoom),
    )


def _compare(state: State) -> Literal["interventions"] | bool:
    of_interventions = state.comparing and state.compare_of == "interventions"
    return "interventions" if of_interventions else state.comparing and state.compare_of == "mask"


def _step(state: State, steps: int) -> int | None:
    """The step looked at; None = the latest."""
    index = None if state.selection.step is None else state.step_index
    return None if index is None or index >= steps else index


def _forced(trace: Trace) -> tuple[ForcedToken, ...]:
    """By their numbers: two tokens may be spelled alike."""
    return tuple(
        ForcedToken(step=index, token=step.draw.token_id)
        for index, step in enumerate(trace.steps)
        if step.draw.how == "forced"
    )


def _experiments(state: State) -> list[ExperimentWish]:
    """Those whose results are of what is on screen."""
    found = []
    for name, kind in EXPERIMENTS.items():
        read = state.result_of_prompt if kind.OF_PROMPT else state.result
        result = read(kind.RESULT)
        if result is not None:
            sizes = {"length": "length", "width": "width", "tokens": "tokens", "slot": "slot"}
            own = set(kind.__struct_fields__)
            values = {
                size: getattr(result, field)
                for size, field in sizes.items()
                if size in own and hasattr(result, field)
            }
            if "count" in own:
                values["count"] = result.asked if hasattr(result, "asked") else 0
            found.append(ExperimentWish(name=name, **values))  # type: ignore[arg-type]
    return found


def _view(view: SavedView | None, zoom: float) -> SceneView:
    zoom = min(max(zoom, LEAST_ZOOM), MOST_ZOOM) if zoom else 0.0
    if view is None:
        return SceneView(zoom=zoom)
    return SceneView(
        shown=view.shown,
        in_front=view.in_front,
        enlarged=view.enlarged,
        theme=view.theme,
        zoom=zoom,
        choices=view.choices,
    )
