"""What several files of this room open once."""

from __future__ import annotations

import pytest

from explorer.engine.loading import loading
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import selftest


@pytest.fixture(scope="session")
def smollm2() -> Runner:
    """SmolLM2 in float32, self-tested; its users leave it as they find it."""
    made = Runner(loading.load("smollm2"))
    selftest.run(made)
    return made
