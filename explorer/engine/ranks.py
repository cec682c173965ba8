"""The processes that share one model, each with its part of every layer: torchrun's ranks.

transformers cuts a model over them by its tensor-parallel plan.  All of them do the same work in
the same order, so whatever one of them decides by must be the same in all.  A process by itself is
rank 0 of 1, and nothing here costs it anything.  torch is imported when it is needed.
"""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

_STUCK = timedelta(minutes=2)  # a rank that waits so long has lost the others
_IDLE = timedelta(days=365)  # for the next request: a user may think for long
_group: Any = None  # of requests, which may wait
_waited = 0.0


def count() -> int:
    """How many processes share the model."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "TORCHELASTIC_RUN_ID" in os.environ else 1


def rank() -> int:
    """Which of them this is; 0 speaks with the client."""
    return int(os.environ.get("RANK", "0")) if count() > 1 else 0


def here() -> int:
    """How many of them run on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1")) if count() > 1 else 1


def on_this_machine(number: int) -> int:
    """Of so many weights, those that the processes of this machine hold together."""
    return number * here() // count()


def join() -> None:
    """Meet the others; nothing if there are none, or they have met."""
    global _group
    import torch

    if count() == 1 or _group is not None:
        return
    gpus = torch.cuda.is_available() and torch.distributed.is_nccl_available()
    torch.distributed.init_process_group("cpu:gloo,cuda:nccl" if gpus else "gloo", timeout=_STUCK)
    _group = torch.distributed.new_group(backend="gloo", timeout=_IDLE)


def shared(message: bytes = b"") -> bytes:
    """Rank 0's message, in every rank; the others wait for it as long as it takes."""
    import torch

    size = torch.tensor([len(message)], dtype=torch.long)
    torch.distributed.broadcast(size, 0, group=_group)
    data = torch.empty(int(size), dtype=torch.uint8)
    if rank() == 0:
        data = torch.frombuffer(bytearray(message), dtype=torch.uint8)
    torch.distributed.broadcast(data, 0, group=_group)
    return data.numpy().tobytes()


def same(numbers: np.ndarray) -> np.ndarray:
    """Rank 0's numbers: a last bit may differ, and what is decided by it must not."""
    if count() == 1:
        return numbers
    import torch

    found = torch.from_numpy(np.array(numbers))
    torch.distributed.broadcast(found, 0)
    return np.asarray(found.numpy())


def any_of(flag: bool) -> bool:
    """True if it is so in any rank.  The time until all have asked is counted as waiting."""
    global _waited
    import torch

    started = time.perf_counter()
    found = torch.tensor([int(flag)])
    torch.distributed.all_reduce(found, torch.distributed.ReduceOp.MAX)
    _waited += time.perf_counter() - started
    return bool(found)


def waited() -> float:
    """Seconds that this rank has waited for the others in `any_of` so far."""
    return _waited


def each(*values: float) -> list[list[float]]:
    """The values of every rank, rank by rank."""
    import torch

    found = torch.zeros((count(), len(values)), dtype=torch.float64)
    found[rank()] = torch.tensor(values, dtype=torch.float64)
    torch.distributed.all_reduce(found)
    rows: list[list[float]] = found.tolist()
    return rows


def total(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """The sum over the ranks, number by number."""
    if count() == 1:
        return numbers
    import torch

    found = torch.tensor(numbers, dtype=torch.long)
    torch.distributed.all_reduce(found)
    return tuple(found.tolist())


def joined(part: torch.Tensor, dim: int) -> torch.Tensor:
    """The parts of all ranks after one another along `dim`; they are of one shape."""
    import torch

    own = part.detach().contiguous()
    parts = [torch.empty_like(own) for _ in range(count())]
    torch.distributed.all_gather(parts, own)
    return torch.cat(parts, dim)


def own_part(whole: torch.Tensor, dim: int) -> torch.Tensor:
    """This rank's part of what `joined` gives."""
    return whole.chunk(count(), dim)[rank()]


def no_gradients() -> Any:
    """The context to run a model in: its parts over ranks can't be inference tensors."""
    import torch

    return torch.inference_mode() if count() == 1 else torch.no_grad()


def local_part(weight: torch.Tensor) -> torch.Tensor | None:
    """What this rank holds of a weight; None of one that all hold, but for rank 0."""
    if count() == 1:
        return weight
    local = getattr(weight, "to_local", lambda: weight)()
    return local if _in_parts(weight) or rank() == 0 else None


def is_cut(module: Any) -> bool:
    """True if the module's weights lie in parts over the ranks."""
    return any(map(_in_parts, module.parameters()))


def _in_parts(weight: Any) -> bool:
    """True of a DTensor that no rank has the whole of."""
    return any(not place.is_replicate() for place in getattr(weight, "placements", ()))
