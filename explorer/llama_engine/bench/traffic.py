"""The memory-traffic bound of this machine, for a file that is mapped as it is."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from explorer.engine.gguf.header import Header
from explorer.engine.machine.kept_bandwidth import kept_best, processor
from explorer.llama_engine.model.model import LlamaModel
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.trace.cost.memory_bandwidth import Traffic

WORDS = 24 << 20  # of eight bytes: no processor's cache holds that
PART = 1 << 19  # of them, read by one thread at a time
REPEATS = 3
_TABLE, _HEAD = "token_embd.weight", "output.weight"


def traffic(runner: LlamaRunner) -> Traffic:
    """The bound with this many threads, and what one token reads; measured once in a process."""
    return Traffic(
        bytes_per_second=bytes_per_second(runner.threads),
        step_bytes=step_bytes(runner.model.header),
        threads=runner.threads,
    )


def bytes_per_second(threads: int) -> float:
    """The best ever measured on this machine with so many threads; takes a fifth of a second."""
    key = f"{processor()}, {os.cpu_count()} cores, {threads} threads, plain reading"
    return kept_best(key, lambda: _measured(threads))


def _measured(threads: int) -> float:
    """Of a few megabytes a thread at a time: other programs take the processor within milliseconds.

    The parts follow each other through more memory than a cache holds.
    """
    numbers = np.ones(WORDS, np.uint64)
    ends = range(PART * threads, len(numbers) + 1, PART * threads)
    with ThreadPoolExecutor(threads) as pool:
        shortest = min(
            _seconds(pool, np.array_split(numbers[end - PART * threads : end], threads))
            for _ in range(REPEATS)
            for end in ends
        )
    return PART * threads * numbers.itemsize / shortest


def seconds_to_read(numbers: np.ndarray, threads: int) -> float:
    """To read an array once, a part in each thread."""
    with ThreadPoolExecutor(threads) as pool:
        return _seconds(pool, np.array_split(numbers, threads))


def _seconds(pool: ThreadPoolExecutor, parts: Sequence[np.ndarray]) -> float:
    started = time.perf_counter()
    list(pool.map(np.bitwise_xor.reduce, parts))
    return time.perf_counter() - started


def step_bytes(header: Header) -> int:
    """Bytes of the file that one token reads.

    All but a token table that is not the head too (one row of it is read), and of experts as many
    as a token is sent to.
    """
    untied = any(tensor.name == _HEAD for tensor in header.tensors)
    there, used = (
        header.metadata.get(f"{header.architecture}.expert_{what}")
        for what in ("count", "used_count")
    )
    share = used / there if isinstance(there, int) and there and isinstance(used, int) else 1.0
    return int(
        sum(
            tensor.size * (min(1.0, share) if "_exps." in tensor.name else 1.0)
            for tensor in header.tensors
            if not (untied and tensor.name == _TABLE)
        )
    )


def weights(model: LlamaModel) -> np.ndarray:
    """As many bytes of the mapped file as one token reads, as whole words."""
    start = min((tensor.start for tensor in model.header.tensors), default=0)
    size = step_bytes(model.header) & ~7
    return np.memmap(model.path, np.uint8, "r", start, (size,)).view(np.uint64)
