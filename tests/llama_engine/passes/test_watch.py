"""What is copied out while llama.cpp computes, when its graph lies elsewhere than it did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from explorer.engine.callbacks import never
from explorer.engine.errors import Cancelled
from explorer.llama_engine.passes.context import Context
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.llama_engine.passes.sources import stored
from explorer.llama_engine.passes.watch import Seen, Wanted
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
    keys(context, 1)
    answers = iter([False, True])
    with pytest.raises(Cancelled):
        context.read(IDS[1:2], [0], Wanted(), lambda: next(answers, True))
    assert context.slots == 0
    assert len(keys(context, 4)) == 4


def bits(seen: Seen) -> dict[int, list[bytes | None]]:
    found = {}
    for layer, call in seen.calls.items():
        parts = (call.queries, call.keys, call.mask)
        found[layer] = [None if part is None else part.tobytes() for part in parts]
    return found


def decoded(context: Context, wanted: Callable[[], Wanted]) -> list[Seen]:
    return [context.read(IDS[i : i + 1], [0], wanted(), never)[1] for i in range(8)]


def test_what_is_copied_after_a_pass_is_what_a_stop_gives(runner: LlamaRunner) -> None:
    stopped = decoded(runner.spare_context(64), lambda: Wanted(weights=True))
    context = runner.spare_context(64)
    free = decoded(context, Wanted)
    assert not context.watch.stopping
    assert [bits(seen) for seen in free] == [bits(seen) for seen in stopped]
    assert all(len(seen.calls) == runner.card.layers for seen in free)


def test_parts_have_times_in_passes_with_and_without_stops(runner: LlamaRunner) -> None:
    context = runner.spare_context(64)
    for seen in decoded(context, Wanted):
        ends = [seen.ends["l_out", layer] for layer in range(runner.card.layers)]
        assert ends == sorted(ends)
        assert seen.ends["ffn_inp", 1] > ends[0]
        assert seen.ends["result_output", -1] > seen.ends["result_norm", -1] > ends[-1]


def test_a_graph_that_was_laid_out_anew_is_stopped_in(runner: LlamaRunner) -> None:
    """A pass of another shape between two of one token."""
    whole = decoded(runner.spare_context(64), lambda: Wanted(weights=True))
    for told in (True, False):  # whether llama.cpp can be told not to ask
        context = runner.spare_context(64)
        if not told:
            context.watch.scheduler = 0
        decoded(context, Wanted)
        context.clear()
        again = [context.read(IDS[i : i + 1], [0], Wanted(), never)[1] for i in range(3)]
        assert not context.watch.stopping
        assert [bits(seen) for seen in again] == [bits(seen) for seen in whole[:3]]
        context.read(IDS[3:6], [0], Wanted(), never)
        context.cut_to(3)
        after = context.read(IDS[3:4], [0], Wanted(), never)[1]
        assert context.watch.stopping
        assert bits(after) == bits(whole[3])


def test_queries_are_kept_as_the_kernel_reads_them() -> None:
    numbers = np.array([[[1 + 2**-9, 1 + 3 * 2**-9, -3.0]]], np.float32)
    assert stored(numbers, "float32").dtype == np.float32
    half = stored(numbers, "float16")
    assert half.dtype == np.float16
    brain = stored(numbers, "bfloat16")  # to nearest, ties to even
    as_float = (brain.astype(np.uint32) << 16).view(np.float32)
    assert as_float.ravel().tolist() == [1.0, 1 + 2**-7, -3.0]
