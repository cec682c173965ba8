"""Files that llama.cpp does not survive: the engine that asked for them lives on and says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.trace.request import RunRequest
from explorer.trace.wire import messages as m
from tests.engine.local_engine import LocalEngine
from tests.engine.test_serve import Client
from tests.llama_engine import tiny_gguf
from tests.llama_engine.tiny_architectures import ARCHITECTURES, Architecture


def without_attention(name: str, tensor: str) -> Architecture:
    """A layer lacks a matrix that llama.cpp does not look for."""
    made = ARCHITECTURES[name]()
    last = {name: shape for name, shape in made.layers[-1].items() if name != tensor}
    return replace(made, layers=(*made.layers[:-1], last))


def with_narrow_values() -> Architecture:
    """llama.cpp aborts on it while it lays out the graph."""
    made = ARCHITECTURES["gpt-oss"]()
    return replace(made, numbers={**made.numbers, "attention.value_length": 8})


CRASHES: dict[str, Callable[[], Architecture]] = {
    "segmentation fault": lambda: without_attention("phi3", "attn_qkv.weight"),
    "assertion": with_narrow_values,
}


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Client]:
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path / "data"))
    engine = LocalEngine()
    client = Client(engine.send)
    engine.start(client.events.put)
    yield client
    engine.close()


@pytest.mark.parametrize("kind", CRASHES)
def test_a_crash_is_a_sentence_and_the_open_file_goes_on(
    client: Client, tmp_path: Path, kind: str
) -> None:
    good = tiny_gguf.write(tmp_path / "good.gguf")
    bad = tiny_gguf.write(tmp_path / "bad.gguf", CRASHES[kind]())
    assert isinstance(client.ask(m.Load(run=1, model=str(good), form="as-is"))[-1], m.Loaded)
    said = client.ask(m.Load(run=2, model=str(bad), form="as-is"))[-1]
    assert isinstance(said, m.Failed)
    assert "stopped unexpectedly" in said.sentence
    advance = m.Advance(run=3, request=RunRequest(prompt="the cat"), steps=2)
    assert client.ask(advance)[-1] == m.Finished(run=3, reason="steps")
