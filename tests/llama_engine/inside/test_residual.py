"""The residual stream of a file as it is, against torch's of the same weights."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.engine.callbacks import nobody
from explorer.engine.inside import residual as torch_residual
from explorer.llama_engine.inside import residual
from explorer.trace.inside.stream import ReadStream
from explorer.trace.interventions.lines import read
from explorer.trace.request import RunRequest
from tests.llama_engine.inside.conftest import Both

TEXT = "the cat sat on the mat"


@pytest.mark.parametrize("lines", ["", "silence 1.mlp", "silence 1; silence 0.2"])
def test_lengths_and_directions_are_those_of_torch(both: Both, lines: str) -> None:
    changes = tuple(read(line) for line in lines.split("; ") if line)
    asked = ReadStream(request=RunRequest(prompt=TEXT, interventions=changes))
    ours = residual.read(both.llama, asked, nobody)
    theirs = torch_residual.read(both.torch, asked, nobody)
    assert ours.rows == theirs.rows
    assert ours.slots == theirs.slots
    assert [(one.layer, one.kind) for one in ours.writes] == [
        (one.layer, one.kind) for one in theirs.writes
    ]
    assert ours.gap <= 1e-5
    for name in ("norms", "write_norms"):
        assert np.allclose(getattr(ours, name), getattr(theirs, name), rtol=2e-3, atol=2e-3)
    for name in ("cosines", "write_cosines"):
        assert np.abs(getattr(ours, name) - getattr(theirs, name)).max() <= 2e-3
