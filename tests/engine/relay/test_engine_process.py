"""The engine's process while a file is open as it is: no torch in it, and no child outlives it."""

from __future__ import annotations

import queue
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from explorer.session.connection.remote import EngineProcess
from explorer.trace.request import RunRequest
from explorer.trace.wire import messages as m
from tests.engine.test_serve import Client
from tests.processes import ends

ENGINE = Path(__file__).with_name("engine_with_fake.py")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[EngineProcess]:
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("PYTHONPATH", str(ENGINE.parents[3]))
    engine = EngineProcess([sys.executable, str(ENGINE)])
    yield engine
    engine.close()


def test_a_file_as_it_is_waits_for_no_torch(engine: EngineProcess, tmp_path: Path) -> None:
    model = tmp_path / "good.gguf"
    model.write_bytes(b"GGUF")
    client = Client(engine.send)
    events: queue.Queue[m.Event | None] = client.events
    engine.start(events.put)
    loaded = client.ask(m.Load(run=1, model=str(model), form="as-is"))[-1]
    assert isinstance(loaded, m.Loaded), loaded
    steps = client.ask(m.Advance(run=2, request=RunRequest(prompt="x"), steps=4))
    assert [type(event).__name__ for event in steps] == ["Prompted", *["Stepped"] * 4, "Finished"]
    mapped = Path(f"/proc/{engine.pid}/maps")
    assert not mapped.exists() or "libtorch" not in mapped.read_text()
    pid = int(loaded.card.versions["pid"])
    engine.close()
    assert ends(pid)
