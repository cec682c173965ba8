"""The plan of a model in words and rows: for the command and for the panel."""

from __future__ import annotations

from collections.abc import Iterator

from explorer.trace.cost.model_plan import DevicePlan, ModelPlan, SplitPlan
from explorer.wording import bytes_text, ms_text, short_bytes

UNKNOWN = "not known"
SPLITS = {
    "whole": "On one device",
    "tensor": "Tensor split (each layer shared by its heads)",
    "pipeline": "Pipeline split (layer after layer)",
}
DEVICE_HEADS = (
    "device", "layers", "weights", "cache", "activations", "captured", "total", "fits", "memory",
)  # fmt: skip
NOTE = (
    "Computed from the config, not measured. Activations are the most that one pass holds; on "
    "several devices, each holds at most that. The programs themselves need memory, too."
)


def headline(plan: ModelPlan) -> str:
    """Which run is planned."""
    sequences = "1 sequence" if plan.batch == 1 else f"{plan.batch:,} sequences"
    return (
        f"{plan.model} ({plan.architecture}, {plan.parameters:,} parameters) in {plan.dtype}: "
        f"{sequences} of {plan.tokens:,} tokens"
    )


def parts(plan: ModelPlan) -> Iterator[tuple[str, str, str]]:
    """(part, memory, what it is made of) and the total."""
    yield "weights", bytes_text(plan.weights_bytes), ""
    yield "KV cache", _size(plan.cache_bytes), cache_kinds(plan)
    yield "activations", _size(plan.activation_bytes), "most that one pass holds"
    yield "captured", bytes_text(plan.captured), "queries, keys and final hidden states"
    yield "total", _size(plan.total_bytes), ""


def cache_kinds(plan: ModelPlan) -> str:
    """ "24 sliding layers 3 MB, 6 full layers 90 MB"."""
    return ", ".join(
        f"{layers} {kind} {'layer' if layers == 1 else 'layers'} {short_bytes(size)}"
        for kind, (layers, size) in plan.cache_by_kind.items()
    )


def captured(plan: ModelPlan) -> Iterator[tuple[str, str]]:
    """(dtype and policy, memory)."""
    for name, size in plan.captured_bytes.items():
        yield name.replace("/", ", "), bytes_text(size)


def bound(plan: ModelPlan) -> str:
    """What memory bandwidth allows, in a sentence."""
    found = plan.step_bound
    if found.bytes_read is None:
        return "How much a decode step reads is not known."
    read = f"A decode step reads at least {bytes_text(found.bytes_read)} (weights and cache)"
    if found.seconds is None or found.bytes_per_second is None:
        unknown = "the memory bandwidth, which was not given (GB/s)"
        return f"{read}. How long that takes depends on {unknown}."
    rate = found.bytes_per_second / 1e9
    speed = f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"
    speed += f" GB/s, {found.bandwidth}"
    return f"{read}. One device takes at least {ms_text(found.seconds * 1e3)} for it ({speed})."


def split_bound(split: SplitPlan) -> str:
    """How long a decode step takes at least under a split; empty where it is not known."""
    if split.seconds is None or split.split == "whole":
        return ""
    return f"{SPLITS[split.split]}: a decode step takes at least {ms_text(split.seconds * 1e3)}."


def device_row(device: DevicePlan) -> tuple[str, ...]:
    """One row under DEVICE_HEADS."""
    begin, end = device.layers
    return (
        device.device,
        f"{begin}" if end - begin == 1 else f"{begin} to {end - 1}",
        short_bytes(device.weights_bytes),
        _short(device.cache_bytes),
        _short(device.activation_bytes),
        short_bytes(device.captured_bytes),
        _short(device.total_bytes),
        {None: UNKNOWN, True: "yes", False: "no"}[device.fits],
    )


def room(device: DevicePlan) -> str:
    """The memory that a device has."""
    return _short(device.memory_bytes)


def _size(size: int | None) -> str:
    return UNKNOWN if size is None else bytes_text(size)


def _short(size: int | None) -> str:
    return UNKNOWN if size is None else short_bytes(size)
