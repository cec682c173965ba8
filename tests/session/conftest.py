"""Every test has a data folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.session.scripted import Stage


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(folder))
    return folder


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture(autouse=True)
def sessions_end() -> Iterator[None]:
    """No test leaves a saving thread behind."""
    yield
    for stage in list(Stage.made):
        stage.close()
