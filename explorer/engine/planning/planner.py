"""The plan of a model: memory by part, by device and by layer, and what bandwidth allows."""

from __future__ import annotations

import inspect
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig

from explorer.engine.errors import BadInput
from explorer.engine.gguf import model_folder
from explorer.engine.library import catalog, recipe
from explorer.engine.machine import free_memory, memory_bandwidth
from explorer.engine.model_files.configs import read_config
from explorer.engine.model_files.find_layers import decoder_layers
from explorer.engine.model_files.meta_model import count, kept_per_token, latent_width, skeleton
from explorer.engine.model_files.model_shape import Shape, shape_of, text_config, value_of
from explorer.engine.planning import splits
from explorer.engine.planning.dry_pass import DryPass, dry_pass
from explorer.engine.planning.splits import Weights
from explorer.trace.cost.model_plan import (
    CAPTURED,
    MOST_BATCH,
    MOST_GPUS,
    MOST_TOKENS,
    DevicePlan,
    LayerCache,
    ModelPlan,
    Split,
    SplitPlan,
    StepBound,
)
from explorer.trace.wire.messages import PlanModel

KNOWN: dict[str, tuple[str, dict[str, int]]] = {
    "GPT-1": ("openai-gpt", {}),
    "GPT-2": ("gpt2", {"n_layer": 48, "n_embd": 1600, "n_head": 25}),
    "GPT-3": ("gpt2", {"n_layer": 96, "n_embd": 12288, "n_head": 96, "n_positions": 2048}),
}
"""Shapes that can be planned without any file: those of `recipe.GPT_TABLE`."""
NO_PASS = (
    "How much memory the activations of a pass take is not known for this type of model, so they "
    "are left out of the total."
)
NO_CACHE = (
    "How much this type of model keeps in its cache is not known without running it, so the total "
    "is not known either. Open the model to measure it."
)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """What is known of a model before it is shared out."""

    asked: PlanModel
    model: Any  # on the meta device, in the dtype that was asked for
    shape: Shape
    weights: Weights
    cache: tuple[int, ...] | None  # (L,) bytes
    captured: tuple[int, ...]  # (L,) bytes, of every layer
    hidden: int  # bytes of the final hidden states
    activations: int | None
    needed: int  # weights that one token reads

    @property
    def layers(self) -> int:
        return len(self.weights.layers)


def plan(asked: PlanModel) -> ModelPlan:
    """The plan that was asked for; BadInput with a next step if there can be none."""
    _check(asked)
    name, config = _config(asked.model)
    model = skeleton(config).to(getattr(torch, asked.dtype))
    shape = shape_of(config)
    limit = f"{shape.context:,}"
    if shape.context and asked.tokens > shape.context:
        raise BadInput(
            f"{name} was built for at most {limit} tokens, and {asked.tokens:,} were asked for. "
            f"Plan for {limit} tokens or fewer."
        )
    kept = kept_per_token(config, skeleton(config), shape)  # whose skeleton it changes
    latent = latent_width(config, kept)
    found = dry_pass(model, asked.tokens, asked.batch)
    sizes = _sizes(asked, model, shape, found, kept)
    cached = None if sizes.cache is None else sum(sizes.cache)
    parts = (sizes.weights.total, cached, sizes.activations or 0)
    whole = sum(sizes.captured) + sizes.hidden
    bound, speed = _bound(sizes, cached)
    shares = list(_splits(sizes, speed))
    return ModelPlan(
        model=name,
        architecture=str(config.model_type),
        parameters=count(model).parameters,
        tokens=asked.tokens,
        batch=asked.batch,
        dtype=asked.dtype,
        weights_bytes=sizes.weights.total,
        cache_bytes=cached,
        cache_bytes_per_layer=_by_layer(sizes, latent),
        activation_bytes=sizes.activations,
        captured_bytes=_captured(sizes),
        total_bytes=None if cached is None else sum(p or 0 for p in parts) + whole,
        step_bound=bound,
        splits=tuple(split for split, _ in shares if asked.gpus),
        devices=tuple(device for _, devices in shares for device in devices),
        not_known=tuple(_not_known(sizes)),
    )


def _check(asked: PlanModel) -> None:
    for value, least, most, what in (
        (asked.tokens, 1, MOST_TOKENS, "tokens"),
        (asked.batch, 1, MOST_BATCH, "sequences"),
        (asked.gpus, 0, MOST_GPUS, "GPUs"),
    ):
        if not least <= value <= most:
            raise BadInput(f"A plan can be made for {least} to {most:,} {what}, not {value:,}.")
    if asked.dtype not in free_memory.BYTES_OF:
        raise BadInput(f"There is no dtype {asked.dtype}; choose float32, bfloat16 or float16.")


def _config(model: str) -> tuple[str, Any]:
    """(name, transformers config) of a model on the disk, of a config file alone, or of a table."""
    known = KNOWN.get(model.upper())
    if known is not None:
        return model.upper(), AutoConfig.for_model(known[0], **known[1])
    path = Path(model).expanduser()
    if path.suffix == ".json" and path.is_file():
        return _config_file(path)
    source = catalog.resolve(model)
    if source.kind == "gguf":
        return source.name, model_folder.described(source.path)[0]
    recipe.require_figures(source.name, source.path, config := read_config(source.path))
    return source.name, config


def _config_file(path: Path) -> tuple[str, Any]:
    name = path.resolve().parent.name if path.name == "config.json" else path.stem
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / name
        folder.mkdir()
        shutil.copyfile(path, folder / "config.json")
        config = read_config(folder)
        recipe.require_figures(name, folder, config)
    return name, config


def _sizes(asked: PlanModel, model: Any, shape: Shape, found: DryPass | None, kept: int) -> _Sizes:
    """`kept`: numbers of the cache for each token, where no pass tells."""
    size = free_memory.BYTES_OF[asked.dtype]
    slots, layers = asked.batch * asked.tokens, len(decoder_layers(model))
    cache, activations = None, None
    widths = ((shape.heads + shape.kv_heads) * shape.head_dim,) * layers
    if found is not None:
        cache, widths, activations = found.cache_bytes, found.widths, found.activation_bytes
    elif "cache" not in inspect.signature(model.forward).parameters:
        cache = (0,) * layers  # transformers gives this type none
    elif _is_plain(model, shape) and kept % layers == 0:
        cache = (kept * size * slots // layers,) * layers
    return _Sizes(
        asked=asked,
        model=model,
        shape=shape,
        weights=splits.weights_of(model),
        cache=cache,
        captured=tuple(width * size * slots for width in widths),
        hidden=slots * shape.hidden_size * 4,
        activations=activations,
        needed=memory_bandwidth.step_bytes(model),
    )


def _is_plain(model: Any, shape: Shape) -> bool:
    """True if every layer keeps keys and values of every token, by the formula."""
    text = text_config(model.config)
    odd = any(value_of(text, name) for name in ("kv_lora_rank", "num_kv_shared_layers"))
    stateful = getattr(model, "_is_stateful", False)
    return set(shape.layer_kinds) == {"full"} and not odd and not stateful


def _by_layer(sizes: _Sizes, latent: int) -> tuple[LayerCache, ...]:
    kinds = sizes.shape.layer_kinds
    kinds = kinds if len(kinds) == sizes.layers else ("full",) * sizes.layers
    named = ["latent" if latent and kind == "full" else kind for kind in kinds]
    pairs = enumerate(zip(named, sizes.cache or (), strict=False))
    return tuple(LayerCache(layer=i, kind=kind, bytes=size) for i, (kind, size) in pairs)


def _captured(sizes: _Sizes) -> dict[str, int]:
    own = free_memory.BYTES_OF[sizes.asked.dtype]
    return {
        f"{dtype}/{policy}": sum(sizes.captured[::every]) // own * size + sizes.hidden
        for dtype, size in free_memory.BYTES_OF.items()
        for policy, every in CAPTURED.items()
    }


def _not_known(sizes: _Sizes) -> Iterator[str]:
    if sizes.cache is None:
        yield NO_CACHE
    elif sizes.activations is None:
        yield NO_PASS


def _bound(sizes: _Sizes, cached: int | None) -> tuple[StepBound, float | None]:
    """The bound of one device, and bytes a second that each reads; None = not known."""
    asked = sizes.asked
    speed: float | None = asked.bytes_per_second or None
    where = "given" if speed else ""
    if speed is None and not asked.gpus:
        speed = memory_bandwidth.bytes_per_second(torch.device("cpu"))
        where = f"measured on this machine ({torch.get_num_threads()} threads)"
    read = None if cached is None else sizes.needed + cached
    seconds = None if speed is None or read is None else read / speed
    bound = StepBound(bytes_read=read, bytes_per_second=speed, seconds=seconds, bandwidth=where)
    return bound, speed


# -- sharing out


def _splits(sizes: _Sizes, speed: float | None) -> Iterator[tuple[SplitPlan, list[DevicePlan]]]:
    gpus = sizes.asked.gpus
    if gpus < 2:
        name = "GPU 0" if gpus else "this machine"
        room = sizes.asked.gpu_memory or None
        room = room if gpus else free_memory.available_bytes()
        held = sizes.weights.total, sizes.needed
        devices = [_device(sizes, name, "whole", (0, sizes.layers), held, 1, room)]
        yield _judged("whole", "", devices, speed), devices
        return
    refusal = splits.tensor_refusal(sizes.model, sizes.shape, gpus)
    devices = [] if refusal else list(_by_heads(sizes))
    yield _judged("tensor", refusal, devices, speed), devices
    refusal = splits.pipeline_refusal(sizes.layers, gpus)
    devices = [] if refusal else list(_by_layers(sizes))
    yield _judged("pipeline", refusal, devices, speed), devices


def _judged(
    split: Split, refusal: str, devices: Sequence[DevicePlan], speed: float | None
) -> SplitPlan:
    """A tensor split takes as long as its fullest device, a pipeline as all of them in turn."""
    read = [device.bytes_read for device in devices]
    known = [size for size in read if size is not None]
    seconds = None
    if speed and known and len(known) == len(read):
        seconds = (max(known) if split == "tensor" else sum(known)) / speed
    return SplitPlan(split=split, possible=not refusal, reason=refusal, seconds=seconds)


def _by_heads(sizes: _Sizes) -> Iterator[DevicePlan]:
    gpus = sizes.asked.gpus
    weights = splits.shard_bytes(sizes.model, gpus)
    parts = gpus if splits.shares_heads(splits.plan_of(sizes.model)) else 1
    for number in range(gpus):
        whole = (0, sizes.layers)
        room = sizes.asked.gpu_memory or None
        yield _device(sizes, f"GPU {number}", "tensor", whole, weights, parts, room)


def _by_layers(sizes: _Sizes) -> Iterator[DevicePlan]:
    weights, cache = sizes.weights, sizes.cache or (0,) * sizes.layers
    costs = [sum(parts) for parts in zip(weights.layers, cache, sizes.captured, strict=True)]
    found = splits.stages(costs, weights.first, weights.last, sizes.asked.gpus)
    for number, (begin, end) in enumerate(found):
        is_last = end == sizes.layers
        held = sum(weights.layers[begin:end])
        held += weights.first * (begin == 0) + weights.last * is_last
        read = sum(weights.read_layers[begin:end]) + weights.read_last * is_last
        room = sizes.asked.gpu_memory or None
        yield _device(sizes, f"GPU {number}", "pipeline", (begin, end), (held, read), 1, room)


def _device(
    sizes: _Sizes,
    name: str,
    split: Split,
    layers: tuple[int, int],
    held: tuple[int, int],
    parts: int,
    room: int | None,
) -> DevicePlan:
    """`held`: bytes of weights, and those that a decode step reads.

    `parts`: devices that share the heads of a layer, each with the keys of its own.
    """
    (begin, end), (weights, needed) = layers, held
    cache = None
    if sizes.cache is not None:
        cache = sum(
            size // parts if width else size  # a recurrent state has no heads to share out
            for size, width in zip(sizes.cache[begin:end], sizes.captured[begin:end], strict=True)
        )
    captured = sum(sizes.captured[begin:end]) // parts
    captured += sizes.hidden * (end == sizes.layers)
    total = None
    if cache is not None:
        total = weights + cache + (sizes.activations or 0) + captured
    known = room is not None and total is not None
    return DevicePlan(
        device=name,
        split=split,
        layers=layers,
        weights_bytes=weights,
        cache_bytes=cache,
        activation_bytes=sizes.activations,
        captured_bytes=captured,
        total_bytes=total,
        bytes_read=None if cache is None else needed + cache,
        memory_bytes=room,
        fits=(total or 0) <= (room or 0) if known else None,
    )
