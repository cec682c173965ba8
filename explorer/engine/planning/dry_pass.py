"""A pass over shapes alone: what its cache, its queries and keys and its activations would take.

torch's meta device carries out every operation of a model but the arithmetic.  So transformers' own
code says what each layer keeps, whatever its kind.
"""

from __future__ import annotations

import contextlib
import inspect
import weakref
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AttentionInterface, DynamicCache
from transformers.masking_utils import AttentionMaskInterface, eager_mask, sdpa_mask

from explorer.engine.capture.probe import own_eager
from explorer.engine.model_files.find_layers import decoder_layers
from explorer.engine.passes.cache import layer_bytes
from explorer.engine.passes.chunked_prefill import spans
from explorer.engine.passes.preallocated_cache import reserve, with_room

_FUSED, _EAGER = "planned_sdpa", "planned_eager"
_NOTED = "planned_width"  # attribute of a module that attends


@dataclass(frozen=True, slots=True)
class DryPass:
    """Sizes of reading `tokens` tokens, `batch` sequences at a time.  L: layers."""

    cache_bytes: tuple[int, ...]  # (L,) kept after the pass
    widths: tuple[int, ...]  # (L,) numbers of queries and keys that a token has, 0 = none
    activation_bytes: int  # most that is held beside weights and cache


def dry_pass(model: Any, tokens: int, batch: int) -> DryPass | None:
    """Sizes of a model on the meta device, in its own dtype.

    None where it looks at numbers, which a tensor of this kind lacks.
    """
    layers = decoder_layers(model)
    with contextlib.suppress(Exception):  # some configs insist on a number
        model.config.pad_token_id = None  # else ids are searched for padding
    fused = getattr(model, "_supports_sdpa", False)
    model.config._attn_implementation = _FUSED if fused else _EAGER
    try:
        cache = with_room(DynamicCache(config=model.config))
        begin, end = spans(0, tokens)[-1]
        with torch.inference_mode():
            if begin:
                reserve(cache, tokens)
                _read(model, cache, begin, batch)
            held = _kept(cache)
            for module in model.modules():
                vars(module).pop(_NOTED, None)
            with _Held([*model.parameters(), *model.buffers(), *held]) as peak:
                _read(model, cache, end - begin, batch)
            grown = sum(t.nbytes for t in _kept(cache)) - sum(t.nbytes for t in held)
    except Exception:  # transformers' models look at numbers in many ways
        return None
    if len(layers) < len(cache.layers) and any(
        layer_bytes(cache, len(cache.layers))[len(layers) :]
    ):
        return None  # layers that run several times keep more than one cache each
    return DryPass(
        cache_bytes=layer_bytes(cache, len(layers)),
        widths=tuple(sum(getattr(m, _NOTED, 0) for m in one.modules()) for one in layers),
        activation_bytes=max(0, peak.most - (0 if begin else grown)),
    )


def _read(model: Any, cache: Any, tokens: int, batch: int) -> None:
    named = inspect.signature(model.forward).parameters
    ids = torch.zeros(batch, tokens, dtype=torch.long, device="meta")
    last = {"logits_to_keep": 1} if "logits_to_keep" in named else {}
    model(input_ids=ids, cache=cache, use_cache=True, **last)


def _kept(cache: Any) -> list[torch.Tensor]:
    found = (value for layer in cache.layers for value in vars(layer).values())
    parts = (v.values() if isinstance(v, dict) else [v] for v in found)
    return [one for part in parts for one in part if isinstance(one, torch.Tensor)]


def _note(module: Any, query: torch.Tensor, key: torch.Tensor) -> None:
    """Add the width of queries and keys to what the module has noted in this pass."""
    seen = sum(part.shape[1] * part.shape[3] for part in (query, key))
    setattr(module, _NOTED, getattr(module, _NOTED, 0) + seen)


def _fused(module: Any, query: Any, key: Any, value: Any, mask: Any, **_: Any) -> Any:
    """In place of torch's fused kernel, its result.

    That keeps no scores, but on this device it would be taken apart into steps that do.
    """
    _note(module, query, key)
    sequences, heads, rows, _width = query.shape
    return query.new_empty((sequences, rows, heads, value.shape[-1])), None


def _eager(module: Any, query: Any, key: Any, value: Any, mask: Any, **options: Any) -> Any:
    """A model's own eager attention, which keeps what it keeps."""
    _note(module, query, key)
    return own_eager(module)(module, query, key, value, attention_mask=mask, **options)


# Under names of their own, once and for all: while a plan is made, another model may be running.
AttentionInterface.register(_FUSED, _fused)
AttentionInterface.register(_EAGER, _eager)
AttentionMaskInterface.register(_FUSED, sdpa_mask)
AttentionMaskInterface.register(_EAGER, eager_mask)


class _Held(TorchDispatchMode):
    """While inside, counts the bytes of new tensors that are alive; `most` is their peak."""

    def __init__(self, known: list[torch.Tensor]) -> None:
        super().__init__()
        self._alive = {tensor.untyped_storage()._cdata: 0 for tensor in known}
        self._known = known  # whose storages must not be freed and their places taken
        self._now = self.most = 0

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if operation is torch.ops.aten._grouped_mm.default:  # its shapes are bfloat16's alone here
            result = args[0].new_empty((args[0].shape[0], args[1].shape[-1]))
        else:
            result = operation(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self._count(tensor.untyped_storage())
        return result

    def _count(self, storage: Any) -> None:
        place = storage._cdata
        if place not in self._alive:
            self._alive[place] = storage.nbytes()
            self._now += self._alive[place]
            self.most = max(self.most, self._now)
            weakref.finalize(storage, self._freed, place)

    def _freed(self, place: int) -> None:
        self._now -= self._alive.pop(place, 0)
