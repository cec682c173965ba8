"""Interventions on the model while a pass runs: what is asked, checked and laid around the modules.

Heads and cells are changed inside the attention function (`capture.attention_edits`).  An MLP is
silenced or patched where it writes to the residual stream, found by the self-test; a silenced layer
runs, so that its cache is filled, and passes its input on; the stream is patched after its layer.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from explorer.engine.capture.attention_edits import AttentionEdits
from explorer.engine.capture.patching import Change, Put, PutMean, Take, rows_of
from explorer.engine.errors import BadInput, EngineError
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.runner import Runner
from explorer.trace.inside.misfit import misfit, policy_misfit
from explorer.trace.interventions.kinds import Cells, OtherRun, Patch, Silence
from explorer.trace.request import RunRequest

Forward = Callable[..., Any]
MOST_ROWS = 2048  # slots of one pass whose mask may differ from head to head: H·T² numbers a layer


def require_fit(runner: Runner, asked: RunRequest) -> None:
    """BadInput where the self-test found that the model can't do what is asked."""
    card = runner.loaded.card
    if not asked.causal_mask and not card.offers("causal_off"):
        raise BadInput(f"The mask can't be switched off here: {card.words('causal_off')}.")
    side = f"{asked.padding}_padding"
    if asked.padding and asked.pad and not card.offers(side):
        raise BadInput(f"Padding is not possible here: {card.words(side)}.")
    if refused := policy_misfit(card, asked):
        raise BadInput(refused)
    if asked.context.moves_sinks and runner.rotation is None:
        words = card.words("sink_distances")
        raise BadInput(f"Distances can't be counted in the cache here: {words}.")
    if asked.position_offset and runner.first_position is None:
        raise BadInput("This model counts its positions itself. Leave out the offset.")
    require_possible(runner, asked)


def require_possible(runner: Runner, request: RunRequest) -> None:
    """BadInput naming the first intervention that this model can't do, and why."""
    proven, layers = runner.capture.proven, len(runner.layers)
    refused = misfit(
        runner.loaded.card,
        request.changes,
        layers,
        [layer for layer, writes in enumerate(runner.mlp_writes) if writes],
        range(layers) if proven is None else proven.layers,
    )
    if refused:
        raise BadInput(refused)
    for one in request.changes:
        if isinstance(one, Patch):
            _require_source(runner, one)


def _require_source(runner: Runner, patch: Patch) -> None:
    """BadInput where this model can't run what a patch is taken from."""
    source, context = patch.source, runner.loaded.card.context
    runner.require_ids(source.tokens)
    if context and len(source.tokens) > context:
        raise BadInput(
            f"The text that a patch is taken from has {len(source.tokens):,} tokens, but this "
            f"model reads at most {context:,}."
        )
    if patch.taken[1] >= len(source.tokens):
        raise BadInput(
            f"The text that a patch is taken from has positions 0 to {len(source.tokens) - 1}, no "
            f"position {patch.taken[1]}."
        )
    if not source.causal_mask and not runner.loaded.card.offers("causal_off"):
        raise BadInput("A patch is taken from a run without the causal mask, which this model "
                       "needs.")  # fmt: skip
    try:
        OtherRun.of(source.tokens, source.causal_mask, source.interventions)
    except ValueError as error:
        raise BadInput(str(error)) from error
    require_possible(runner, RunRequest(interventions=source.interventions))


def prompt_of(runner: Runner, request: RunRequest, layout: Layout) -> OtherRun:
    """What the means of heads are taken over: the prompt, in a run of the model as it is.

    So they are the same in every pass, with a cache and without.  A text that no prompt stands for
    is its own.
    """
    whole = runner.prompt(request).layout if request.has_prompt else layout
    return OtherRun(tokens=tuple(whole.real_ids()), causal_mask=request.causal_mask)


def in_attention(
    runner: Runner, changes: Sequence[Change], slots: int, rows: int
) -> AttentionEdits | None:
    """What changes in attention in a pass that reads the last `rows` of `slots`; None if nothing.

    BadInput where masks of single heads would take too much memory.
    """
    asked = [one for one in changes if not _on_module(one)]
    if not asked:
        return None
    if rows > MOST_ROWS and any(isinstance(one, Cells) and one.head is not None for one in asked):
        raise BadInput(
            f"Cells of a single head can be changed in texts of up to {MOST_ROWS:,} tokens. "
            "Change them in all heads, or shorten the text."
        )
    return AttentionEdits(asked, slots, runner.capture.token_modules)


@contextlib.contextmanager
def on_modules(runner: Runner, changes: Sequence[Change], slots: int, rows: int) -> Iterator[None]:
    """While inside, MLPs and layers give what the changes make of their output."""
    asked = [one for one in changes if _on_module(one)]
    if not asked:
        yield
        return
    with contextlib.ExitStack() as stack:
        for one in asked:
            assert isinstance(one, Silence | Take | Put)
            if one.part == "layer":
                stack.enter_context(forward_of(runner.layers[one.layer], passing_on))
                continue
            layer = (runner.layers[one.layer],)
            modules = runner.mlp_writes[one.layer] if one.part == "mlp" else layer
            calls = itertools.count()  # of all of them together: some layers run more than once
            for module in modules:
                wrap: Callable[[Forward], Forward] = writing_nothing
                if not isinstance(one, Silence):
                    wrap = partial(applying, one, slots, rows, calls)
                stack.enter_context(forward_of(module, wrap))
        yield


def _on_module(one: Change) -> bool:
    """True for what changes the output of an MLP or a layer, and nothing in attention."""
    return isinstance(one, Silence | Take | Put | PutMean) and one.part != "head"


@contextlib.contextmanager
def forward_of(module: Any, wrap: Callable[[Forward], Forward]) -> Iterator[None]:
    """While inside, the module's forward goes through `wrap`."""
    own = module.__dict__
    before = own.get("forward")
    own["forward"] = wrap(module.forward)
    try:
        yield
    finally:
        own.pop("forward")
        if before is not None:
            own["forward"] = before


def writing_nothing(forward: Forward) -> Forward:
    """The forward of a module that runs, and gives zeros in place of its first output."""

    def silent(*args: Any, **kwargs: Any) -> Any:
        output = forward(*args, **kwargs)
        return with_first(output, torch.zeros_like(first_of(output)))

    return silent


def applying(
    one: Take | Put, slots: int, rows: int, calls: Iterator[int], forward: Forward
) -> Forward:
    """The forward of a module that runs, its first output taken down or patched."""

    def patched(*args: Any, **kwargs: Any) -> Any:
        output = forward(*args, **kwargs)
        tensor = first_of(output).clone()
        one.apply(rows_of(tensor, rows), slots - rows, next(calls))
        return with_first(output, tensor)

    return patched


def passing_on(forward: Forward) -> Forward:
    """The forward of a layer that runs, and gives its input in place of its output."""

    def silent(*args: Any, **kwargs: Any) -> Any:
        stream = (args[0] if args else kwargs["hidden_states"]).clone()
        output = forward(*args, **kwargs)
        if first_of(output).shape != stream.shape:
            raise EngineError(
                "This layer does not give what it was given, so it can't be silenced."
            )
        return with_first(output, stream)

    return silent


def first_of(output: Any) -> torch.Tensor:
    """The tensor that a module gives, or the first of several."""
    return output if isinstance(output, torch.Tensor) else output[0]


def with_first(output: Any, tensor: torch.Tensor) -> Any:
    """The same output with another tensor in its first place."""
    if isinstance(output, torch.Tensor):
        return tensor
    return type(output)((tensor, *output[1:]))
