"""The lens on a file as it is: the last row is llama.cpp's own, the others are torch's."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.engine.callbacks import nobody
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.inside import lens as torch_lens
from explorer.llama_engine.inside import lens
from explorer.llama_engine.inside.tail import GraphTail
from explorer.llama_engine.passes import inside
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.trace.inside.lens import LensBoard, ReadLens
from explorer.trace.interventions.lines import read
from explorer.trace.request import RunRequest
from tests.llama_engine.inside.conftest import Both
from tests.llama_engine.opened import run

TEXT = "the cat sat on the mat"
REQUEST = RunRequest(prompt=TEXT)


def board(runner: LlamaRunner, request: RunRequest = REQUEST, **more: object) -> LensBoard:
    return lens.read(runner, ReadLens(request=request, **more), nobody)  # type: ignore[arg-type]


@pytest.mark.parametrize("lines", ["", "silence 1.2; silence 0.mlp", "allow 0.*:2<-5"])
@pytest.mark.parametrize("causal", [True, False])
def test_rows_are_those_of_torch(both: Both, lines: str, causal: bool) -> None:
    changes = tuple(read(line) for line in lines.split("; ") if line)
    request = RunRequest(prompt=TEXT, interventions=changes, causal_mask=causal)
    ours = board(both.llama, request, top=20)
    theirs = torch_lens.read(both.torch, ReadLens(request=request, top=20), nobody)
    assert ours.rows == theirs.rows == ("embedding", "0", "1", "final")
    assert ours.slots == theirs.slots
    for name in ("entropy_bits", "kl_to_final_bits", "probability_of_final"):
        assert np.abs(getattr(ours, name) - getattr(theirs, name)).max() <= 5e-3
    assert np.abs(ours.probabilities - theirs.probabilities).max() <= 1e-3
    same = ours.ids[..., 0] == theirs.ids[..., 0]
    close = theirs.probabilities[..., 0] - theirs.probabilities[..., 1] < 2e-3
    assert (same | close).all()


def test_a_step_is_read_as_the_run_read_it(both: Both) -> None:
    """The newest slot after a copy of the run's cache, which is left as it was."""
    trace = run(both.llama, REQUEST, 3)
    newest, chosen = len(trace.tokens) - 2, trace.chosen_ids[:2]
    found = board(both.llama, chosen=chosen, slots=(newest,), top=1)
    logits = trace.steps[2].logits.astype(np.float64)
    shares = np.exp(logits - logits.max())
    assert found.probabilities[-1, 0, 0] == pytest.approx(shares.max() / shares.sum(), rel=1e-5)
    again = run(both.llama, REQUEST, 1, trace.chosen_ids).steps[0]
    assert again.rebuilt_tokens == 0


def test_parts_of_a_long_board_and_a_cancel(both: Both) -> None:
    request = RunRequest(prompt=" ".join([TEXT] * 8))
    found = board(both.llama, request, top=1)
    ids = both.llama.layout(request, ()).ids
    assert found.slots == tuple(range(len(ids)))
    assert len(ids) > 32  # several calls of llama.cpp
    answers = iter([False] * 12)
    with pytest.raises(Cancelled):
        lens.read(both.llama, ReadLens(request=request), nobody, lambda: next(answers, True))
    assert board(both.llama).final_gap == 0


def test_a_tail_that_gives_other_logits_is_refused(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = GraphTail.logits
    monkeypatch.setattr(
        GraphTail, "logits", lambda tail, stream: own(tail, stream) + np.float32(1e-6)
    )
    with pytest.raises(BadInput, match="can't be read through its own final norm and head"):
        board(both.llama)


def test_stops_at_other_nodes_count_for_nothing(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Points that were found for another graph: the pass is made anew at the right ones."""
    right = both.llama.located(True)
    moved = dict(right.points)
    first, second = (0, 1), (1, 1)
    moved[first], moved[second] = moved[second], moved[first]
    wrong = inside.Located(moved, right.kinds, right.names)
    request = RunRequest(prompt=TEXT, interventions=(read("silence 0.mlp"),))
    expected = run(both.llama, request, 1).steps[0].logits
    monkeypatch.setattr(both.llama, "located", lambda several: wrong)
    assert np.array_equal(run(both.llama, request, 1).steps[0].logits, expected)


def test_a_slot_beyond_the_run_is_refused(both: Both) -> None:
    with pytest.raises(BadInput, match="There is no position 99"):
        board(both.llama, slots=(99,))
    with pytest.raises(BadInput, match="from 1 to 100"):
        board(both.llama, top=0)
