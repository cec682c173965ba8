"""What a run will take: sizes from the model's shape, seconds from speeds measured here."""

from __future__ import annotations

import time

import torch

from explorer.engine.machine.free_memory import available_bytes
from explorer.engine.model_files.model_shape import shape_of
from explorer.engine.passes.layout import Prompt
from explorer.engine.passes.runner import Runner
from explorer.trace.cost.run_cost import Plan

_SIDE = 768  # of the matrices whose product gives the machine's speed at arithmetic
_measured: dict[tuple[str, int], float] = {}  # by device and threads, in this process


def plan(runner: Runner, prompt: Prompt) -> Plan:
    """The first pass of a run."""
    request, slots = prompt.request, len(prompt.tokens)
    card, model = runner.loaded.card, runner.model
    shape = shape_of(model.config)
    size = next(model.parameters()).element_size()
    kept = -(-shape.layers // max(1, request.capture_every))
    recorded = kept * (shape.heads + shape.kv_heads) * shape.head_dim * size
    return Plan(
        tokens=slots,
        weights_bytes=sum(p.numel() * p.element_size() for p in model.parameters()),
        cache_bytes=slots * card.kv_bytes_per_token if runner.caches(request) else 0,
        capture_bytes=slots * (recorded + shape.hidden_size * 4),
        available_bytes=available_bytes(card.device),
        estimated_seconds=_operations(runner, slots) / operations_per_second(model.device),
        in_chunks=runner.in_chunks and runner.caches(request),
        capture_every=request.capture_every,
    )


def _operations(runner: Runner, slots: int) -> float:
    """Floating-point operations of a pass: weights times slots, and attention by their square."""
    shape = shape_of(runner.model.config)
    table = runner.model.get_input_embeddings().weight.numel()
    weights = sum(p.numel() for p in runner.model.parameters()) - table
    attention = shape.layers * shape.heads * shape.head_dim * slots
    return 2.0 * slots * (weights + attention)


def operations_per_second(device: torch.device) -> float:
    """Of a float32 matrix product on this machine, measured once: a few hundredths of a second."""
    key = (str(device), torch.get_num_threads())
    if key not in _measured:
        a = torch.ones((_SIDE, _SIDE), device=device)
        best = float("inf")
        with torch.inference_mode():
            for _ in range(3):
                started = time.perf_counter()
                (a @ a)[0, 0].item()  # waits for the device
                best = min(best, time.perf_counter() - started)
        _measured[key] = 2.0 * _SIDE**3 / best
    return _measured[key]
