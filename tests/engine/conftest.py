"""What several files of this room open once."""

from __future__ import annotations

import pytest

from explorer.engine.loading import loading
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import store


@pytest.fixture(scope="session")
def smollm2() -> Runner:
    """SmolLM2 in float32, self-tested anew; its users leave it as they find it.

    What was found is kept: engines that open it later need not test it again.
    """
    made = Runner(loading.load("smollm2"))
    store.find(made, lambda: False, again=True)
    return made
