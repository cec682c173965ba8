"""Parts changed in a file as it is, against torch doing the same to the same weights."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.engine.errors import BadInput
from explorer.engine.passes.generate import forward as torch_forward
from explorer.figures.attention.maps import pass_map
from explorer.llama_engine.passes.generate import Done, forward
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.llama_engine.passes.watch import Wanted
from explorer.llama_engine.selftest import gaps
from explorer.trace.interventions.lines import read
from explorer.trace.request import RunRequest
from tests.llama_engine.inside.conftest import Both
from tests.llama_engine.opened import run

TEXT = "the cat sat on the mat"
ROUNDED = 1e-2  # of logits that span 8: keys and values in 16 bits
MAPS = 1e-5
SETS = (
    "silence 0.1",
    "silence 1.0; silence 1.2",
    "silence 2.3",
    "silence 0.mlp",
    "silence 2.mlp",
    "silence 0",
    "silence 1",
    "silence 2",
    "cut *.*:5<-3",
    "cut 1.*:*<-0",
    "cut 0.1:4<-4",
    "cut 0.1:3-5<-*",
    "cut *.*:6<-*",
    "cut 1.*:*<-q-2+; allow 1.0:*<-q-3; restore 1.2:*<-q-4",
    "scale *.*:2",
    "scale 0.2:0.3; scale 1.*:4",
    "allow 0.*:2<-5",
    "allow 1.3:*<-*",
    "allow *.*:0-3<-4-6; cut 2.0:6<-q-1; silence 1.mlp; silence 0.0; scale 1.1:3",
)


def asked(lines: str = "", **more: object) -> RunRequest:
    changes = tuple(read(line) for line in lines.split("; ") if line)
    return RunRequest(prompt=TEXT, interventions=changes, **more)  # type: ignore[arg-type]


def whole(runner: LlamaRunner, request: RunRequest) -> Done:
    """One uncached pass with llama.cpp's own weights."""
    ids = runner.layout(request, ()).ids
    context = runner.spare_context(len(ids), request.causal_mask, whole=request.sees_later)
    wanted = Wanted(weights=True, inside=runner.inside(request))
    return forward(runner, context, ids, wanted)


@pytest.mark.parametrize("lines", SETS)
def test_logits_are_those_of_torch(both: Both, lines: str) -> None:
    request = asked(lines)
    ours = run(both.llama, request, 1).steps[0].logits
    layout = both.torch.layout(request, ())
    theirs = torch_forward(both.torch, request, layout, 0, None).logits
    plain = run(both.llama, asked(), 1).steps[0].logits
    assert np.abs(ours - theirs).max() <= ROUNDED
    assert np.abs(ours - plain).max() > 10 * ROUNDED


@pytest.mark.parametrize("lines", [one for one in SETS if "silence" not in one])
def test_drawn_maps_are_llama_cpps_own(both: Both, lines: str) -> None:
    request = asked(lines)
    trace, done = run(both.llama, request, 1), whole(both.llama, request)
    for layer in range(3):
        own = gaps.own_weights(done, layer)
        assert own is not None
        for head in range(4):
            drawn = pass_map(trace, 0, layer, head).weights
            assert np.abs(drawn - own[head]).max() <= MAPS


def test_what_is_changed_is_put_back(both: Both) -> None:
    """Another run in the same context is what it was, bit for bit."""
    before = run(both.llama, asked(), 3)
    for lines in SETS:
        run(both.llama, asked(lines), 1)
    after = run(both.llama, asked(), 3)
    for step in range(3):
        assert np.array_equal(before.steps[step].logits, after.steps[step].logits)


def test_a_run_goes_on_under_other_changes_with_a_cache_of_its_own(both: Both) -> None:
    """What was read under other interventions is not taken from the cache."""
    first = run(both.llama, asked(), 2)
    changed = asked("silence 0.mlp; cut 1.*:*<-0")
    mixed = run(both.llama, changed, 1, first.chosen_ids[:1]).steps[0]
    assert mixed.rebuilt_tokens == len(first.prompt)
    fresh = run(both.llama, asked("silence 0.mlp; cut 1.*:*<-0", cache=False), 1,
                first.chosen_ids[:1]).steps[0]  # fmt: skip
    assert np.abs(mixed.logits - fresh.logits).max() <= ROUNDED


def test_a_head_too_many_is_refused_in_words(both: Both) -> None:
    with pytest.raises(BadInput, match="Layer 1 has heads 0 to 3, no head 9"):
        run(both.llama, asked("silence 1.9"), 1)
    assert run(both.llama, asked(), 1).steps[0].logits.size
