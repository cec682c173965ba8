"""Attention of a model that is cut over several processes: each has some of the heads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch

from explorer.engine import ranks

Attend = Callable[..., tuple[torch.Tensor, torch.Tensor | None]]
_BY_HEAD = ("s_aux", "sinks")  # options with a number for each head
_cut: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def join(calls: list[Any], own: Any) -> Any:
    """Complete what was noted in a pass with the heads of the other ranks; `own` maps as well."""
    for call in calls:
        if not call.cut:
            continue
        heads = call.query.shape[1]
        call.query, call.key = ranks.joined(call.query, 1), ranks.joined(call.key, 1)
        for name, dim in (("value", 1), ("output", 2), ("weights", 1), ("bias", 1)):
            part = getattr(call, name)
            if part is not None:
                setattr(call, name, ranks.joined(part, dim))
        call.options = _options(call.options, heads)
        call.mask = _mask(call.mask, heads)
        call.cut = False
    if own is None or (_cut and not any(_cut.values())):
        return own
    return tuple(_map(one) for one in own)


def on_all_heads(attend: Attend) -> Attend:
    """With an intervention, which names heads of the whole model: attend with all, give our own."""

    def whole(
        module: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None,
        **options: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        if not is_cut(module, query.shape[1]):
            return attend(module, query, key, value, mask, **options)
        heads = query.shape[1]
        parts = (ranks.joined(part, 1) for part in (query, key, value))
        options = _options(options, heads)
        output, weights = attend(module, *parts, _mask(mask, heads), **options)
        weights = weights if weights is None else ranks.own_part(weights, 1)
        return ranks.own_part(output, 2).contiguous(), weights

    return whole


def is_cut(module: Any, heads: int) -> bool:
    """True if this module attends with the heads of one rank only, of which it has so many.

    Some plans cut its weights and put the heads together again before it attends.
    """
    if module not in _cut:
        whole = getattr(getattr(module, "config", None), "num_attention_heads", None)
        _cut[module] = ranks.is_cut(module) and heads != whole
    return _cut[module]


def shares_cache(model: Any) -> bool:
    """True if each rank's cache is a part of the whole one; asked after a pass."""
    return any(_cut.get(module, False) for module in model.modules())


def _options(options: dict[str, Any], heads: int) -> dict[str, Any]:
    """Those that have a part for each head, with the parts of all."""
    found = dict(options)
    for name in _BY_HEAD:
        part = found.get(name)
        if part is not None and part.ndim == 1 and len(part) == heads:
            found[name] = ranks.joined(part, 0)
    bias = found.get("position_bias")
    if bias is not None and bias.shape[1] == heads:
        found["position_bias"] = ranks.joined(bias, 1)
    return found


def _mask(mask: torch.Tensor | None, heads: int) -> torch.Tensor | None:
    per_head = mask is not None and mask.ndim == 4 and 1 < mask.shape[1] == heads
    return ranks.joined(mask, 1) if per_head and mask is not None else mask


def _map(weights: Any) -> Any:
    return weights if weights is None else ranks.joined(weights, 1)
