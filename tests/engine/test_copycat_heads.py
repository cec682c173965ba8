"""Which of copycat's heads it copies with: silenced one by one through the engine."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.engine.callbacks import nobody
from explorer.engine.loading import loading
from explorer.engine.passes.generate import forward
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.runner import Runner
from explorer.trace.interventions.kinds import Silence
from explorer.trace.request import RunRequest
from tests.engine.test_copycat import ORDINARY

TEXTS, LENGTH = 40, 20


@pytest.fixture(scope="module")
def runner() -> Runner:
    return Runner(loading.load("copycat", "float32", "cpu", nobody))


def copied(runner: Runner, *silenced: Silence) -> float:
    """Share of top-1 tokens right in the second half of random tokens that come two times."""
    rng, right = np.random.default_rng(7), 0
    for _ in range(TEXTS):
        once = rng.permutation(ORDINARY)[:LENGTH]
        ids = tuple(int(token) for token in (*once, *once))
        layout = Layout(ids, (1,) * len(ids), tuple(range(len(ids))))
        at = range(LENGTH, 2 * LENGTH - 1)
        done = forward(runner, RunRequest(interventions=silenced), layout, 0, None, at=at)
        right += int((done.logits.argmax(-1) == np.array(ids[LENGTH + 1 :])).sum())
    return right / (TEXTS * (LENGTH - 1))


def test_two_heads_copy_and_the_others_do_not_matter(runner: Runner) -> None:
    heads = runner.loaded.card.heads
    assert copied(runner) >= 0.995
    shares = {
        (layer, head): copied(runner, Silence(layer=layer, head=head))
        for layer in range(len(runner.layers))
        for head in range(heads)
    }
    print(shares)
    assert shares.pop((0, 0)) < 0.025
    assert shares.pop((1, 0)) < 0.015
    assert min(shares.values()) >= 0.985
