"""A saved run."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.trace.files import dxt
from tests.trace.runs import made_trace


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "run.dxt"
    dxt.save(made_trace(), path)
    return path
