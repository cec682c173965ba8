"""Stages of a layer: a name, a formula with the model's sizes, and how near the formula comes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from explorer.engine.faults import INPUT_FAULTS
from explorer.engine.inside.calls import ModuleCall
from explorer.engine.inside.held_norm import held_norm
from explorer.trace.inside.arrays import packed
from explorer.trace.inside.walk import LayerStage, Turn

MOST_NUMBERS = 1 << 20
# By the last part of a module's name, whatever the model.
_NAMES = {
    "Q": ("q_proj", "query", "q_lin", "wq", "q"),
    "K": ("k_proj", "key", "k_lin", "wk", "k"),
    "V": ("v_proj", "value", "v_lin", "wv", "v"),
    "Q, K and V in one": ("qkv_proj", "c_attn", "query_key_value", "wqkv", "w_pack", "qkv"),
    "Q norm": ("q_norm", "q_layernorm", "query_layernorm", "q_ln"),
    "K norm": ("k_norm", "k_layernorm", "key_layernorm", "k_ln"),
    "latent Q": ("q_a_proj",),
    "latent Q norm": ("q_a_layernorm",),
    "Q from its latent": ("q_b_proj",),
    "latent K and V": ("kv_a_proj_with_mqa",),
    "latent K and V norm": ("kv_a_layernorm",),
    "K and V from their latent": ("kv_b_proj",),
    "gate": ("gate_proj", "w1", "linear_1"),
    "up": ("up_proj", "w3", "fc1", "c_fc", "dense_h_to_4h", "fc_in"),
    "gate and up in one": ("gate_up_proj",),
    "down": ("down_proj", "w2", "fc2", "dense_4h_to_h", "fc_out"),
    "activation": ("act_fn", "act", "activation_fn", "activation"),
    "router": ("gate", "router"),
    "experts": ("experts",),
}
_KNOWN = {module: name for name, modules in _NAMES.items() for module in modules}


def friendly(path: str) -> str:
    """What a module is called in the field; its own name where that is not known."""
    return _KNOWN.get(path.rsplit(".", 1)[-1].lower(), path)


def stage(
    name: str,
    formula: str,
    numbers: Any,
    module: str = "",
    gap: float | None = None,
    source: str = "",
    turn: Turn | None = None,
    first_key: int | None = None,
) -> LayerStage:
    """A stage with these numbers: (…) a tensor or an array."""
    if isinstance(numbers, torch.Tensor):
        numbers = numbers.detach().float().cpu().numpy()
    array = np.asarray(numbers, np.float32)
    finite = np.where(np.isfinite(array), array, 0).astype(np.float64)
    return LayerStage(
        name=name,
        formula=formula,
        shape=array.shape,
        norm=float(np.sqrt(np.square(finite).sum())),
        module=module,
        data=packed(array) if array.size <= MOST_NUMBERS else b"",
        gap=gap,
        source=source,
        turn=turn,
        first_key=first_key,
    )


@torch.inference_mode()
def module_stage(name: str, module: Any, call: ModuleCall) -> LayerStage:
    """One call of a module at one row: its output, recomputed from its input where that is plain.

    `call` holds one row; its output is (…) and kept in that shape.
    """
    assert call.gave is not None
    gave = call.gave[0]
    path = call.name.partition("/")[2]
    given = None if call.given is None else call.given[0]
    formula, made = _formula(module, given, gave)
    return stage(name, formula, gave, path, None if made is None else difference(made, gave))


def difference(made: Any, measured: Any) -> float:
    """The largest difference, relative to the largest entry measured."""
    a, b = (_array(one) for one in (made, measured))
    if a.size != b.size:
        return float(np.finfo(np.float32).max)
    off = np.abs(a.reshape(-1) - b.reshape(-1)).max(initial=0)
    return float(off / max(1e-30, float(np.abs(b).max(initial=0))))


def _array(value: Any) -> np.ndarray:
    if isinstance(value, torch.Tensor):
        value = value.detach().double().cpu().numpy()
    return np.asarray(value, np.float64)


def _formula(
    module: Any, given: torch.Tensor | None, gave: torch.Tensor
) -> tuple[str, torch.Tensor | None]:
    """What the module does, in a line, and the same done by hand; None where it is more."""
    weight, bias = getattr(module, "weight", None), getattr(module, "bias", None)
    kind = type(module).__name__
    if given is not None and isinstance(weight, torch.Tensor):
        sizes = given.shape[-1], gave.shape[-1]
        for matrix in (weight, weight.T) if weight.ndim == 2 else ():
            if tuple(matrix.shape) == sizes[::-1]:
                made = given.double() @ matrix.double().T
                made = made if bias is None else made + bias.double()
                words = f"W · x{'' if bias is None else ' + b'}, W is {sizes[1]:,} × {sizes[0]:,}"
                if difference(made, gave) < _near(given):
                    return words, made
        if "norm" in kind.lower() and sizes[0] == sizes[1]:
            return _norm_formula(module, given, gave)
    if given is not None and given.shape == gave.shape and not list(module.parameters()):
        try:
            made = module(given)
        except INPUT_FAULTS:  # it takes more than these numbers
            made = None
        if made is not None and difference(made, gave) < _near(given):
            return f"{kind}(x)", made
    return f"inside {kind}: not split into its steps", None


def _norm_formula(
    module: Any, given: torch.Tensor, gave: torch.Tensor
) -> tuple[str, torch.Tensor | None]:
    """RMS norm, or one with the mean taken out; over each head where there are several."""
    rows, out = given.reshape(-1, given.shape[-1]), gave.reshape(-1, gave.shape[-1])
    held = held_norm(module, rows[0], out[0])
    if held is None:
        return f"inside {type(module).__name__}: not split into its steps", None
    made = held.part(rows[0]) + held.bias
    for row, result in zip(rows[1:], out[1:], strict=True):
        other = held_norm(module, row, result)
        if other is None:
            return f"inside {type(module).__name__}: not split into its steps", None
        made = torch.cat([made, other.part(row) + other.bias])
    size = given.shape[-1]
    if held.centred:
        return f"(x - mean(x)) / √(var(x) + ε) · w + b, over {size:,} numbers", made
    return f"x / √(mean(x²) + ε) · w, over {size:,} numbers", made


def _near(tensor: torch.Tensor) -> float:
    return 1e-4 if tensor.dtype == torch.float32 else 5e-2
