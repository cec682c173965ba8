"""What the self-test found of a file is known at its next opening, and of no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer import places
from explorer.engine.callbacks import never
from explorer.llama_engine.model.card import model_card
from explorer.llama_engine.model.model import LlamaModel
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.llama_engine.selftest import selftest, store
from tests.llama_engine import tiny_gguf


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "data_folder", lambda: tmp_path / "data")


@pytest.fixture
def tests(monkeypatch: pytest.MonkeyPatch) -> list[LlamaRunner]:
    """Every runner that was tested."""
    found: list[LlamaRunner] = []
    run = selftest.run

    def noting(runner: LlamaRunner, *rest: object) -> None:
        found.append(runner)
        run(runner, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(selftest, "run", noting)
    return found


def opened(path: Path, again: bool = False, threads: int = 1) -> LlamaRunner:
    model = LlamaModel(path)
    runner = LlamaRunner(model, model_card(model), threads)
    store.find(runner, never, again)
    runner.close()
    return runner


@pytest.mark.parametrize("name", ["gemma3", "lfm2"])
def test_the_second_opening_knows_what_the_first_found(
    tmp_path: Path, tests: list[LlamaRunner], name: str
) -> None:
    path = tiny_gguf.write(tmp_path / "tiny.gguf", name)
    first, second = opened(path), opened(path)
    assert tests == [first]
    for part in ("proven", "kept", "kv_heads", "cache_offered", "causal"):
        assert getattr(first, part) == getattr(second, part)
    assert (first.card.tested, bool(second.card.tested)) == ("", True)
    for part in ("capabilities", "layer_kinds", "windows", "kv_bytes_per_token"):
        assert getattr(first.card, part) == getattr(second.card, part)


def test_another_file_other_threads_or_a_wish_are_tested_anew(
    tmp_path: Path, tests: list[LlamaRunner]
) -> None:
    path = tiny_gguf.write(tmp_path / "tiny.gguf", "llama")
    opened(path)
    opened(path, again=True)
    opened(path, threads=2)
    tiny_gguf.write(path, "llama", seed=1)
    opened(path)
    assert len(tests) == 4


def test_an_entry_that_does_not_fit_is_ignored(tmp_path: Path, tests: list[LlamaRunner]) -> None:
    path = tiny_gguf.write(tmp_path / "tiny.gguf", "llama")
    opened(path)
    (entry,) = (places.data_folder() / "self-tests").iterdir()
    whole = entry.read_text()
    entry.write_text(whole.replace('"attending": [', '"attending": [99,'))
    opened(path)
    entry.write_text("{}")
    opened(path)
    assert len(tests) == 3
