"""The memory-traffic bound of this machine as torch measures it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import torch

from explorer.engine.device_clock import finish
from explorer.engine.machine.kept_bandwidth import kept_best, processor
from explorer.trace.cost.memory_bandwidth import Traffic

ROWS, COLUMNS = 48 * 1024, 1024  # 192 MiB of float32: no processor's cache holds that
REPEATS = 6


def traffic(model: Any) -> Traffic:
    """The bound on the model's device, measured once in a process, with what one token reads."""
    return Traffic(
        bytes_per_second=bytes_per_second(model.device),
        step_bytes=step_bytes(model),
        threads=torch.get_num_threads(),
    )


def bytes_per_second(device: torch.device) -> float:
    """The best ever measured on this machine with these threads; takes a fifth of a second."""
    return kept_best(machine_key(device), lambda: measure(device))


def machine_key(device: Any) -> str:
    """What the figure belongs to: processor, cores, threads, torch and device, in one line."""
    parts = (
        processor(),
        f"{os.cpu_count()} cores",
        f"{torch.get_num_threads()} threads",
        f"torch {torch.__version__}",
        str(device),
    )
    return ", ".join(parts)


def measure(device: torch.device) -> float:
    """Bytes a second that a float32 matrix-vector product reads, the best of several."""
    matrix = torch.ones((ROWS, COLUMNS), dtype=torch.float32, device=device)
    vector = torch.ones(COLUMNS, dtype=torch.float32, device=device)
    best = float("inf")
    with torch.inference_mode():
        for _ in range(REPEATS):
            finish(device)
            started = time.perf_counter()
            torch.mv(matrix, vector)
            finish(device)
            best = min(best, time.perf_counter() - started)
    return matrix.numel() * 4 / best


def step_bytes(model: Any) -> int:
    """Bytes of parameters that one token reads.

    All but a token table that is not the head too (one row of it is read), and of experts as many
    as a token is sent to.
    """
    return int(sum(read for _, _, read in read_parts(model)))


def read_parts(model: Any) -> Iterator[tuple[str, Any, float]]:
    """(name, parameter, bytes of it that one token reads) of every parameter."""
    table, head = model.get_input_embeddings(), model.get_output_embeddings()
    skipped = set()
    if table is not None and (head is None or head.weight is not table.weight):
        skipped = {id(parameter) for parameter in table.parameters()}
    share = _expert_share(model.config.get_text_config(decoder=True))
    for name, parameter in model.named_parameters():
        size = 0 if id(parameter) in skipped else parameter.numel() * parameter.element_size()
        yield name, parameter, size * share if ".experts." in name else size


def _expert_share(config: Any) -> float:
    """Experts that a token is sent to, over all; 1 where the model has none."""
    used = getattr(config, "num_experts_per_tok", None)
    there = next(
        (
            number
            for name in ("num_local_experts", "num_experts", "n_routed_experts")
            if isinstance(number := getattr(config, name, None), int) and number > 0
        ),
        None,
    )
    return min(1.0, used / there) if isinstance(used, int) and there else 1.0
