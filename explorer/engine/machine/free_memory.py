"""How much memory a model will take, and how much there is; asked before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.engine.errors import TooLarge
from explorer.engine.machine import system_memory
from explorer.engine.model_files.model_shape import Shape
from explorer.wording import short_bytes

BYTES_OF = {"float32": 4, "bfloat16": 2, "float16": 2}
_TOKENS = 1024  # what cache and capture are reckoned for
_ROOM = 200 * 2**20  # for the pass itself: activations, scratch space


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes a model will take for a run of a thousand tokens."""

    weights: int
    cache: int  # keys and values
    capture: int  # the recorded queries, keys and hidden states, in float32

    @property
    def total(self) -> int:
        """All together, with room for the pass itself."""
        return self.weights + self.cache + self.capture + _ROOM


def estimate(parameters: int, shape: Shape, dtype: str) -> Estimate:
    """Of a model of so many parameters and this shape, held in `dtype`."""
    size = BYTES_OF[dtype]
    tokens = min(_TOKENS, shape.context or _TOKENS)
    recorded = shape.layers * (shape.heads + shape.kv_heads) * shape.head_dim + shape.hidden_size
    return Estimate(
        weights=parameters * size,
        cache=shape.kv_bytes_per_token(size) * tokens,
        capture=recorded * 4 * tokens,
    )


def estimate_as_is(file_bytes: int, shape: Shape) -> int:
    """Bytes a .gguf file will take that llama.cpp runs as it is, its cache in float16."""
    half = estimate(0, shape, "float16")
    return file_bytes + half.cache + half.capture + _ROOM


def check_fits(
    name: str, parameters: int, shape: Shape, dtype: str, device: str = "cpu", room_bytes: int = 0
) -> None:
    """TooLarge with the figures if the model cannot fit; nothing has been loaded yet.

    `room_bytes` are held by a model that goes before this one is read.
    """
    if device.startswith("auto"):
        return  # what does not fit in memory goes to the disk
    available = available_bytes(device)
    needed = estimate(parameters, shape, dtype)
    if available is None:
        return
    available += room_bytes
    if needed.total <= available:
        return
    half = estimate(parameters, shape, "bfloat16").total
    advice = (
        "choose a smaller model, close other programs, or open it on the device auto, which leaves "
        "a part of it on the disk"
    )
    if dtype == "float32" and half <= available:
        advice = f"choose bfloat16 (about {short_bytes(half)}) or a smaller model"
    raise TooLarge(
        f"{name} needs about {short_bytes(needed.total)} in {dtype} (weights "
        f"{short_bytes(needed.weights)}, cache and capture of a run "
        f"{short_bytes(needed.cache + needed.capture)}) and {short_bytes(available)} are free; "
        f"{advice}."
    )


def available_bytes(device: str = "cpu") -> int | None:
    """Memory that can be had now, without pushing others out; None where nobody says."""
    if device.startswith("cuda"):
        import torch

        return int(torch.cuda.mem_get_info(torch.device(device))[0])
    return system_memory.available_bytes()


__all__ = ["BYTES_OF", "Estimate", "available_bytes", "check_fits", "estimate", "estimate_as_is"]
