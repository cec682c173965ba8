"""Records what attention did, from inside transformers' own attention registry.

While a pass is watched, the entry of the stock sdpa function, or that of the model's own eager
function (for models with soft caps or sinks, which sdpa cannot do), leads through a function that
takes notes.  Their names stay: some models look at the name to decide how to make their masks.
Both see the queries and keys after RoPE and QK-norm, and the mask exactly as the kernel receives
it.  Nothing is copied while the pass runs: the tensors are noted, and read after the clock has
stopped.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from explorer.engine import ranks
from explorer.engine.callbacks import Stop, never
from explorer.engine.capture import all_heads
from explorer.engine.capture.attention_edits import AttentionEdits, LayerEdit
from explorer.engine.capture.part_clocks import PartClocks, Times
from explorer.engine.errors import Cancelled

SDPA = "sdpa"
EAGER = "eager"
OWN = "own"  # no function of ours: eager attention, asked for its own weights


@dataclass(slots=True)
class Call:
    """One call of an attention kernel, as references to live tensors."""

    layer: int
    module: int  # id() of the module that called
    query: torch.Tensor  # (B, H, Q, d_h)
    key: torch.Tensor  # (B, H_kv, K, d_h)
    mask: torch.Tensor | None
    causal: bool
    scaling: float
    options: dict[str, Any]
    value: torch.Tensor | None = None  # (B, H_kv, K, d_v), only when watching outputs
    output: torch.Tensor | None = None  # (B, Q, H, d_v), likewise; before heads are silenced
    bias: torch.Tensor | None = None  # (B, H, Q, n) added to the scores of the first n keys
    weights: torch.Tensor | None = None  # (B, H, Q, K), given by the model's own eager function
    cut: bool = False  # the heads are those of one rank


@dataclass(slots=True)
class Recorder:
    """What one forward pass did: attention calls, layer by layer, and the clocks' readings."""

    cancelled: Stop = never
    keep_outputs: bool = False
    rows: int = 0  # slots this pass reads
    layers: int = 0  # decoder layers that are watched
    every: int = 1  # attention of every n-th layer is recorded
    entered: Callable[[int], None] | None = None  # told of each layer that begins
    token_modules: frozenset[int] | None = None  # ids of those that attend to tokens; None = all
    map_modules: frozenset[int] = frozenset()  # ids of those whose weights are kept
    spans: frozenset[tuple[int, int]] = frozenset()  # (keys, first slot) that caches may give
    key_slots: np.ndarray | None = None  # (K,) of a cache that has evicted; None = the last K
    own: tuple[Any, ...] | None = None  # the model's own (B, H, Q, K) maps, where asked for
    edits: AttentionEdits | None = None  # None = attention is the model's own
    calls: list[Call] = field(default_factory=list)
    visited: list[int] = field(default_factory=list)  # decoder layers in the order they ran
    times: Times | None = None
    hidden: torch.Tensor | None = None  # (B, Q, d) after the final norm
    layer: int = -1
    doubtful: bool = False  # weights or logits are not all numbers: every map is looked at

    def enter(self, layer: int) -> None:
        """A decoder layer begins; Cancelled if the pass is to end."""
        if self.cancelled():
            raise Cancelled
        if self.entered is not None:
            self.entered(layer)
        self.layer = layer
        self.visited.append(layer)


_active: Recorder | None = None  # set exactly while our functions are in the registry


def _note(module: Any, args: tuple[Any, ...], scaling: Any, causal: bool, options: Any) -> Call:
    assert _active is not None
    query, key, value, mask = args
    call = Call(
        layer=_active.layer,
        module=id(module),
        query=query,
        key=key,
        mask=mask,
        causal=causal and mask is None,
        scaling=float(scaling) if scaling is not None else 1 / math.sqrt(query.shape[-1]),
        options=options,
    )
    call.cut = (
        ranks.count() > 1 and _active.edits is None and all_heads.is_cut(module, query.shape[1])
    )
    call.value = value if _active.keep_outputs else None
    if _active.every == 1 or _active.layer % _active.every == 0:
        _active.calls.append(call)
    return call


def _edit(module: Any, query: torch.Tensor) -> LayerEdit | None:
    """What is to be changed of this call; None almost always."""
    assert _active is not None
    edits = _active.edits
    if edits is None or query.ndim != 4 or query.shape[2] != _active.rows:
        return None
    return edits.at(_active.layer, id(module), query)


def _sdpa(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **options: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    flag = is_causal if is_causal is not None else getattr(module, "is_causal", True)
    causal = bool(query.shape[2] > 1 and flag)
    edit = _edit(module, query)
    if edit is not None:
        query, attention_mask = edit.scores(query, key, attention_mask, causal, additive=False)
    call = _note(module, (query, key, value, attention_mask), scaling, causal, options)
    attention_mask = _moved(call, edit)
    output, weights = sdpa_attention_forward(
        module, query, key, value, attention_mask, scaling=scaling, is_causal=is_causal, **options
    )
    return _done(call, output, weights, edit)


def _eager(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **options: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    edit = _edit(module, query)
    if edit is not None:
        query, attention_mask = edit.scores(query, key, attention_mask, False, additive=True)
    call = _note(module, (query, key, value, attention_mask), scaling, False, options)
    attention_mask = _moved(call, edit)
    if scaling is not None:
        options = {**options, "scaling": scaling}
    # By name: a few models put other parameters before the mask.
    output, weights = own_eager(module)(
        module, query, key, value, attention_mask=attention_mask, **options
    )
    if "sinks" not in options and options.get("s_aux") is None and hasattr(module, "sinks"):
        call.options = {**call.options, "s_aux": module.sinks}
    return _done(call, output, weights, edit)


def _moved(call: Call, edit: LayerEdit | None) -> torch.Tensor | None:
    """The kernel's mask, with what moved keys add to their scores."""
    if edit is None or edit.pass_.moved is None:
        return call.mask
    call.bias = edit.pass_.moved.bias(call.query, call.key, edit.pass_.slots, call.scaling)
    if call.bias is None:
        return call.mask
    rows, keys = call.query.shape[2], call.key.shape[2]
    added = call.query.new_zeros((*call.bias.shape[:3], keys))
    added[..., : call.bias.shape[3]] = call.bias
    mask = call.mask
    if mask is None:
        if call.causal:
            later = torch.ones((rows, keys), dtype=torch.bool, device=added.device).triu(1)
            added = added.masked_fill(later, -torch.inf)
        return added
    mask = mask[..., :keys]
    if mask.dtype == torch.bool:
        return added.masked_fill(~mask, -torch.inf)
    return added + mask


def _done(
    call: Call, output: torch.Tensor, weights: torch.Tensor | None, edit: LayerEdit | None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """What the kernel gave, noted, and what the model gets of it."""
    assert _active is not None
    if edit is not None:
        output, weights = edit.outputs(output, weights, call.query.shape[1])
    if weights is not None and (_active.keep_outputs or call.module in _active.map_modules):
        call.weights = weights
    call.output = output if _active.keep_outputs else None
    if edit is not None:
        output = edit.given(output, call.query.shape[1])
    return output, weights


def own_eager(module: Any) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
    """`eager_attention_forward` beside the module's class, or the nearest base that has one."""
    if "eager_attention_forward" in vars(module):  # handed to the module itself
        return module.eager_attention_forward
    for base in type(module).__mro__:
        function = getattr(sys.modules.get(base.__module__), "eager_attention_forward", None)
        if function is not None:
            return function
    raise LookupError(f"{type(module).__name__} has no eager attention function of its own")


@contextlib.contextmanager
def recording(model: Any, layers: int, watch: PartClocks, recorder: Recorder) -> Iterator[Recorder]:
    """While inside, passes of `model` are written to `recorder`; nothing stays behind."""
    global _active
    recorder.layers = layers
    handles = []
    decoder = getattr(model, "get_decoder", lambda: None)()
    if decoder is not None and decoder is not model:
        handles.append(decoder.register_forward_hook(_finishing(recorder)))
    registry = AttentionInterface._global_mapping
    stock = dict(registry)
    before, _active = _active, recorder
    ours: dict[str, all_heads.Attend] = {SDPA: _sdpa, EAGER: _eager}
    if ranks.count() > 1 and recorder.edits is not None:
        ours = {name: all_heads.on_all_heads(attend) for name, attend in ours.items()}
    registry.update(ours)
    try:
        with watch.running(recorder) as recorder.times:
            yield recorder
    finally:
        _active = before
        registry.clear()
        registry.update(stock)
        for handle in handles:
            handle.remove()


def _finishing(recorder: Recorder) -> Callable[..., None]:
    def hook(module: Any, args: Any, output: Any) -> None:
        hidden = getattr(output, "last_hidden_state", None)
        recorder.hidden = hidden if hidden is not None else output[0]

    return hook
