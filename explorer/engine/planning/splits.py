"""How a model is shared out among GPUs: each layer by its heads, or layer after layer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from explorer.engine.loading.tensor_parallel import shares_of
from explorer.engine.machine.memory_bandwidth import read_parts
from explorer.engine.model_files.find_layers import decoder_layers
from explorer.engine.model_files.model_shape import Shape

_WHOLE = (
    "replicate", "replicated_with_grad_allreduce", "sequence_parallel", "mla_kv_a_proj",
    "all_reduce", "moe_tp_experts", "moe_identity_expert", "local_params",
)  # fmt: skip
_KEYS = ("k_proj", "qkv_proj", "query_key_value")  # what makes the keys, fused or not


@dataclass(frozen=True, slots=True)
class Weights:
    """Bytes of parameters by where they lie, and what one decode step reads of them.  L: layers."""

    layers: tuple[int, ...]  # (L,)
    first: int  # token table and what else comes before the layers
    last: int  # final norm and head; with the table, where that is the head
    total: int  # a tied table once
    read_layers: tuple[int, ...]  # (L,)
    read_last: int


def weights_of(model: Any) -> Weights:
    """Read off a model on any device, in its own dtype."""
    layers = decoder_layers(model)
    place = {id(p): i for i, layer in enumerate(layers) for p in layer.parameters()}
    table: Any = getattr(model.get_input_embeddings(), "weight", None)
    head = model.get_output_embeddings()
    heads = {id(p) for p in (() if head is None else head.parameters())}
    inside, read = [0] * len(layers), [0.0] * len(layers)
    first = last = 0
    read_last = 0.0
    for name, parameter, needed in read_parts(model):
        number, size = place.get(id(parameter)), int(parameter.nbytes)
        if number is not None:
            inside[number] += size
            read[number] += needed
        elif id(parameter) in heads or (parameter is not table and _is_final(name)):
            last += size
            first += size * (parameter is table)
            read_last += needed
        else:
            first += size
    total = sum(inside) + last + first - (int(table.nbytes) if id(table) in heads else 0)
    return Weights(
        tuple(inside), first, last, total, tuple(int(size) for size in read), int(read_last)
    )


def _is_final(name: str) -> bool:
    """True of what runs after the layers: the last norm, by the names that models give it."""
    return bool(re.search(r"(final|ln_f|norm_f|(^|\.)norm\.)", name))


# -- by heads


def plan_of(model: Any) -> dict[str, str]:
    """transformers' tensor-parallel plan of a model; empty where it has none."""
    return dict(getattr(model, "_tp_plan", None) or {})


def tensor_refusal(model: Any, shape: Shape, gpus: int) -> str:
    """Why the heads can't be shared out among so many GPUs; "" if they can."""
    plan = plan_of(model)
    if not plan:
        return (
            f"transformers has no tensor-parallel plan for {model.config.model_type}. "
            "Use the pipeline split."
        )
    if not shares_heads(plan):
        return ""
    heads, shared = shape.heads, shape.kv_heads or shape.heads
    if heads % gpus == 0 and shared % gpus == 0:
        return ""
    possible = shares_of(heads, shared)
    advice = f"Choose {' or '.join(possible)} GPUs, or the" if possible else "Use the"
    return (
        f"{heads} query heads and {shared} key/value heads can't be divided evenly among "
        f"{gpus} GPUs. {advice} pipeline split."
    )


def shares_heads(plan: dict[str, str]) -> bool:
    """True if each device keeps the keys and values of its own heads only."""
    return any(k.rsplit(".", 1)[-1] in _KEYS and style == "colwise" for k, style in plan.items())


def shard_bytes(model: Any, gpus: int) -> tuple[int, int]:
    """(bytes of parameters, bytes that a decode step reads) on the device that holds most.

    Under the model's own plan.
    """
    plan = plan_of(model)
    held, read = 0, 0.0
    for name, parameter, needed in read_parts(model):
        part = _shard(name, parameter, plan, gpus)
        held += part
        read += needed * part / parameter.nbytes if parameter.nbytes else 0
    return held, int(read)


def _shard(name: str, parameter: Any, plan: dict[str, str], gpus: int) -> int:
    generic = re.sub(r"(?<=\.)\d+(?=\.|$)", "*", name)
    style = plan.get(generic) or plan.get(generic.rpartition(".")[0], "replicate")
    bias = name.endswith("bias")
    if style in _WHOLE or (bias and "rowwise" in style and not style.startswith("embedding")):
        return int(parameter.nbytes)
    length = parameter.shape[_axis(style, parameter)]
    return int(parameter.nbytes // length * ceil(length / gpus))


def _axis(style: str, parameter: Any) -> int:
    """The axis that a style cuts: the rows of what comes out, or what goes in."""
    if style == "embedding_rowwise":
        return 0
    if "rowwise" in style or style == "embedding_colwise":
        return -1
    return -2 if parameter.ndim > 1 else -1


# -- layer after layer


def pipeline_refusal(layers: int, gpus: int) -> str:
    """Why there are not enough layers; "" if there are."""
    if layers >= gpus:
        return ""
    return f"There are {layers} layers, fewer than {gpus} GPUs. Choose at most {layers} GPUs."


def stages(costs: Sequence[int], first: int, last: int, gpus: int) -> list[tuple[int, int]]:
    """(from, up to) of the layers on each GPU: the fullest one holds as little as possible.

    `costs`: bytes of each layer; `first` and `last`: of what comes before and after them.
    """
    items = list(costs)
    items[0] += first
    items[-1] += last
    low, high = max(items), sum(items)
    while low < high:
        middle = (low + high) // 2
        if len(_filled(items, middle)) <= gpus:
            high = middle
        else:
            low = middle + 1
    return _spread(_filled(items, low), gpus)


def _filled(items: Sequence[int], room: int) -> list[tuple[int, int]]:
    found, begin, held = [], 0, 0
    for place, size in enumerate(items):
        if held + size > room and place > begin:
            found.append((begin, place))
            begin, held = place, 0
        held += size
    return [*found, (begin, len(items))]


def _spread(found: list[tuple[int, int]], gpus: int) -> list[tuple[int, int]]:
    """No GPU is left without a layer: the longest stages are cut in two."""
    while len(found) < gpus:
        place = max(range(len(found)), key=lambda i: found[i][1] - found[i][0])
        begin, end = found[place]
        middle = (begin + end) // 2
        found[place : place + 1] = [(begin, middle), (middle, end)]
    return found
