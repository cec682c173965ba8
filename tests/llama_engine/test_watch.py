"""What is copied out while llama.cpp computes, when its graph lies elsewhere than it did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from explorer.engine.callbacks import never
from explorer.engine.errors import Cancelled
from explorer.llama_engine.passes.context import Context
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.llama_engine.passes.watch import Wanted, stored
from tests.llama_engine import tiny_gguf
from tests.llama_engine.opened import opened

IDS = tuple(range(5, 25))


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[LlamaRunner]:
    found = opened(tiny_gguf.write(tmp_path / "tiny.gguf", "llama"))
    yield found
    found.close()


def keys(context: Context, count: int) -> list[np.ndarray]:
    """Of layer 0, one array a pass."""
    found = []
    for slot in range(context.slots, count):
        _, seen = context.read(IDS[slot : slot + 1], [0], Wanted(), never)
        kept = seen.calls[0].keys
        assert kept is not None
        found.append(kept)
    return found


def test_a_node_that_was_forgotten_is_found_again(runner: LlamaRunner) -> None:
    context = runner.spare_context(64)
    whole = np.concatenate(keys(context, 6))
    context.clear()
    keys(context, 3)
    # As if the attention of layer 0 lay where nothing was wanted in the pass before.
    wanted = context.watch.wanted_nodes
    context.watch.ignore(wanted[0])
    rest = keys(context, 6)
    assert np.array_equal(np.concatenate(rest), whole[3:])
    assert context.slots == 6


def test_cancel_in_the_middle_of_a_pass_empties_the_cache(runner: LlamaRunner) -> None:
    context = runner.spare_context(64)
    keys(context, 2)
    answers = iter([False, True])
    with pytest.raises(Cancelled):
        context.read(IDS[2:3], [0], Wanted(), lambda: next(answers, True))
    assert context.slots == 0
    assert len(keys(context, 4)) == 4


def test_queries_are_kept_as_the_kernel_reads_them() -> None:
    numbers = np.array([[[1 + 2**-9, 1 + 3 * 2**-9, -3.0]]], np.float32)
    assert stored(numbers, "float32").dtype == np.float32
    half = stored(numbers, "float16")
    assert half.dtype == np.float16
    bits = stored(numbers, "bfloat16")  # to nearest, ties to even
    as_float = (bits.astype(np.uint32) << 16).view(np.float32)
    assert as_float.ravel().tolist() == [1.0, 1 + 2**-7, -3.0]
