"""Each head silenced in turn, against silencing them one by one in whole passes."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from explorer.engine.callbacks import nobody
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.inside import head_sweep
from explorer.engine.passes.generate import forward
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import selftest
from explorer.trace.inside.heads import HeadSweep, SweepHeads
from explorer.trace.interventions.kinds import Silence
from explorer.trace.request import RunRequest
from tests.engine.architectures import tiny
from tests.engine.tiny import runner_on, tiny_runner

PROMPT = "9 8 7 6 5 4 3 12 13"


def ready(kind: str) -> Runner:
    runner = tiny_runner(kind)
    selftest.run(runner)
    return runner


@pytest.mark.parametrize("kind", ["gpt2", "gemma3_text"])
def test_it_is_the_change_of_whole_passes(kind: str) -> None:
    runner = ready(kind)
    request = RunRequest(prompt=PROMPT)
    parts: list[HeadSweep] = []
    asked = SweepHeads(request=request, chosen=(11,), token=7)
    found = head_sweep.sweep(runner, asked, nobody, part=parts.append)
    assert found.heads == (4, 4, 4)
    assert [len(one.logits) for one in parts] == [4, 8, 12]
    assert found == parts[-1]
    assert found.complete
    assert not parts[0].complete
    layout = runner.layout(request, (11,))
    base = forward(runner, request, layout, 0, None).logits
    assert found.logit == base[7]
    for (layer, head), (change, _) in found.changes.items():
        silenced = RunRequest(interventions=(Silence(layer=layer, head=head),))
        logits = forward(runner, silenced, layout, 0, None).logits
        assert change == pytest.approx(float(logits[7]) - float(base[7]), abs=1e-5)
    shares = np.exp(base - base.max())
    assert found.probability == pytest.approx(float(shares[7] / shares.sum()), rel=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_layers_that_take_keys_from_below_are_run_again() -> None:
    runner = runner_on(tiny("gemma3n_text"))
    selftest.run(runner)
    request = RunRequest(prompt=PROMPT)
    found = head_sweep.sweep(runner, SweepHeads(request=request), nobody)
    layout = runner.layout(request, ())
    for layer, head in ((1, 0), (3, 2)):
        silenced = RunRequest(interventions=(Silence(layer=layer, head=head),))
        logits = forward(runner, silenced, layout, 0, None).logits
        change = float(logits[found.token]) - found.logit
        assert found.changes[layer, head][0] == pytest.approx(change, abs=1e-4)


def test_the_most_probable_token_unless_one_is_named_and_what_is_silent_already() -> None:
    runner = ready("llama")
    request = RunRequest(prompt=PROMPT, interventions=(Silence(layer=1, head=2),))
    found = head_sweep.sweep(runner, SweepHeads(request=request), nobody)
    logits = forward(runner, request, runner.layout(request, ()), 0, None).logits
    assert found.token == int(logits.argmax())
    assert found.changes[1, 2] == (0, 0)
    assert abs(found.changes[1, 1][0]) > 0


def test_refused_cancelled_and_put_back() -> None:
    runner = ready("llama")
    asked = SweepHeads(request=RunRequest(prompt=PROMPT))
    forwards = [layer.__dict__.get("forward") for layer in runner.layers]
    calls = iter(range(100))
    with pytest.raises(Cancelled):
        head_sweep.sweep(runner, asked, nobody, lambda: next(calls) > 30)
    assert [layer.__dict__.get("forward") for layer in runner.layers] == forwards
    with pytest.raises(BadInput, match="ids end at 95"):
        head_sweep.sweep(runner, msgspec.structs.replace(asked, token=96), nobody)
    with pytest.raises(BadInput, match="can't be silenced here"):
        head_sweep.sweep(tiny_runner("llama"), asked, nobody)
