"""A model's own code runs after an explicit yes, for one load, and at no other time."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from explorer.engine.errors import BadInput, NeedsCode
from explorer.engine.library import catalog, recipe, stores
from explorer.engine.loading.loading import load
from explorer.trace.request import RunRequest
from explorer.trace.wire import messages as m
from tests.engine.folders import greedy, model
from tests.engine.local_engine import LocalEngine
from tests.engine.model_files import own_code

FILES = ("configuration_own.py", "modeling_own.py", "extra.py")


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where transformers puts code that it runs; one place in a process, its package has a path."""
    return str(tmp_path_factory.mktemp("modules"))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, copies: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", copies)


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "it ran"


@pytest.fixture
def folder(tmp_path: Path, mark: Path) -> Path:
    return own_code.write(tmp_path / "shelf" / "own", mark)


def test_nothing_runs_without_a_yes(folder: Path, mark: Path) -> None:
    with pytest.raises(NeedsCode) as caught:
        load(str(folder))
    assert caught.value.files == FILES
    assert all(name in caught.value.sentence for name in FILES)
    with pytest.raises(NeedsCode):
        recipe.inspect(str(folder))
    stores.add_folder(folder.parent)
    (row,) = [row for row in catalog.find() if row["path"] == str(folder)]
    assert row["architecture"] == "own_kind"
    assert row["own_code"]
    assert not mark.exists()


def test_after_a_yes_it_opens_and_the_next_load_asks_again(folder: Path, mark: Path) -> None:
    loaded = load(str(folder), allow_code=True)
    assert mark.read_text() == "configuration"  # never the tokenizer's
    ids = [token.id for token in loaded.tokenizer.encode("the cat").tokens]
    assert greedy(loaded.model, ids) == greedy(model(eos_token_id=None), ids)
    assert any("its own program code" in words for words in loaded.card.warnings)
    mark.unlink()
    with pytest.raises(NeedsCode):
        load(str(folder))
    assert not mark.exists()


@pytest.mark.parametrize(
    "reference", ["someone/else--modeling.Own", "../modeling.Own", "", None, ["x.Y"], "missing.Own"]
)
def test_code_that_is_not_in_the_folder_is_refused_even_with_a_yes(
    folder: Path, mark: Path, reference: Any
) -> None:
    path = folder / "config.json"
    stated = json.loads(path.read_text())
    stated["auto_map"]["AutoModelForCausalLM"] = reference
    path.write_text(json.dumps(stated))
    with pytest.raises(BadInput) as caught:
        load(str(folder), allow_code=True)
    assert not isinstance(caught.value, NeedsCode)
    assert not mark.exists()


def test_a_type_that_transformers_knows_never_runs_code(folder: Path, mark: Path) -> None:
    path = folder / "config.json"
    stated = json.loads(path.read_text())
    path.write_text(json.dumps(stated | {"model_type": "llama"}))
    load(str(folder), allow_code=True)
    assert not mark.exists()


def test_code_that_fails_is_one_sentence(folder: Path) -> None:
    (folder / "extra.py").write_text("raise SystemError('boom')\n")
    with pytest.raises(BadInput, match="program code of own failed"):
        load(str(folder), allow_code=True)


@pytest.fixture
def events() -> Iterator[tuple[LocalEngine, queue.Queue[m.Event]]]:
    said: queue.Queue[m.Event] = queue.Queue()
    engine = LocalEngine()
    engine.start(said.put)
    yield engine, said
    engine.close()


def test_the_engine_says_what_would_run_and_runs_it_when_told(
    folder: Path, mark: Path, events: tuple[LocalEngine, queue.Queue[m.Event]]
) -> None:
    engine, said = events

    def answer(request: Any, kind: type) -> Any:
        engine.send(request)
        while True:
            event = said.get(timeout=60)
            if event.run == request.run and isinstance(event, (kind, m.Failed)):
                return event

    refused = answer(m.Load(run=1, model=str(folder)), m.Loaded)
    assert refused.own_code == FILES
    assert not mark.exists()
    answer(m.Inspect(run=2, model=str(folder)), m.Facts)
    assert not mark.exists()
    loaded = answer(m.Load(run=3, model=str(folder), allow_code=True), m.Loaded)
    assert loaded.card.offers("capture")
    request = RunRequest(model=str(folder), prompt="the cat")
    assert answer(m.Advance(run=4, request=request), m.Finished).reason == "steps"
    again = answer(m.Load(run=5, model=str(folder), allow_code=True), m.Loaded)
    assert again.card.tested == ""  # nothing is taken for granted of code
