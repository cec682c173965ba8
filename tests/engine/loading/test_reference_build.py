"""Reference builds opened as models: exact capture, every check, and an edited source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from explorer import places
from explorer.engine.callbacks import never
from explorer.engine.errors import BadInput
from explorer.engine.library import catalog
from explorer.engine.loading import loading, reference_build
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import selfcheck, selftest, store
from explorer.engine.training.training import Training
from explorer.trace.request import RunRequest
from explorer.trace.training.settings import TrainingSettings


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "gpt"
    Training(TrainingSettings(build="encoder", width=16, heads=2, layers=2)).save(folder)
    return folder


@pytest.fixture(scope="module", params=["modern", "primitives"])
def pair(request: pytest.FixtureRequest, trained: Path) -> tuple[Runner, Runner]:
    """A build with a model's weights, self-tested, and the model itself."""
    weights = "copycat" if request.param == "modern" else str(trained)
    build = Runner(loading.load(f"reference:{request.param}:{weights}"))
    selftest.run(build, never)
    return build, Runner(loading.load(weights))


def test_its_class_is_the_reference_and_its_logits_are_those_of_transformers(
    pair: tuple[Runner, Runner],
) -> None:
    build, theirs = pair
    bases = {base.__module__ for base in type(build.model.model).__mro__}
    assert bases & {"explorer.reference.modern", "explorer.reference.primitives"}
    ids = torch.randint(0, 200, (2, 20), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[0, :7] = 0
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    with torch.inference_mode():
        for more in ({}, {"attention_mask": mask, "position_ids": positions}):
            found, expected = (run.model(ids, **more).logits for run in pair)
            torch.testing.assert_close(found[1], expected[1], atol=1e-4, rtol=0)
            torch.testing.assert_close(found[0, 7:], expected[0, 7:], atol=1e-4, rtol=0)
    assert build.loaded.card.parameters == theirs.loaded.card.parameters


def test_every_capability_but_one_is_offered(pair: tuple[Runner, Runner]) -> None:
    card = pair[0].loaded.card
    assert {one.name for one in card.capabilities if not one.offered} <= {"sink_distances"}
    assert any("explorer/reference/" in warning for warning in card.warnings)


@pytest.mark.parametrize("causal", [True, False])
def test_every_check_of_a_run_holds(pair: tuple[Runner, Runner], causal: bool) -> None:
    build = pair[0]
    request = RunRequest(prompt="machinesm", causal_mask=causal)
    checks = {one.name: one for one in selfcheck.check(build, request, (), never)}
    assert all(one.passed for one in checks.values()), checks
    assert {"kernel_output", "eager_weights", "row_sums"} <= checks.keys()
    assert ("greedy_equals_generate" in checks) == causal
    assert ("upper_triangle" in checks, "future_visible" in checks) == (causal, not causal)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("reference:primitives:copycat", "it is of type llama, not gpt2"),
        ("reference:encoder:copycat", "names no reference build"),
        ("reference:modern", "names no reference build"),
        ("reference:modern:", "No model was given"),
        ("reference:modern:nothing", "no model called nothing"),
    ],
)
def test_what_is_no_build_or_does_not_fit_is_one_sentence(name: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        loading.load(name)


def test_the_picker_lists_it_by_the_name_that_opens_it() -> None:
    rows = {row["name"]: row for row in catalog.find()}
    row = rows["reference:modern:copycat"]
    assert "as-is" not in row["memory_bytes"]
    assert catalog.resolve(row["name"]).path == Path(row["path"]) == places.asset("copycat")
    assert catalog.plain_name(row["name"]) == "copycat"
    assert catalog.plain_name("C:/models/a:b") == "C:/models/a:b"


@pytest.fixture
def edited(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Opens copycat in a source of the modern decoder in which one text is replaced by another."""
    source = reference_build.source_of
    changes: list[tuple[str, str]] = []

    def changed(path: Path) -> str:
        text = source(path)
        for old, new in changes if path.name == "modern.py" else ():
            assert old in text
            text = text.replace(old, new)
        return text

    monkeypatch.setattr(reference_build, "source_of", changed)

    def load(old: str, new: str) -> Any:
        changes[:] = [(old, new)]
        return loading.load("reference:modern:copycat").model

    yield load
    monkeypatch.undo()
    loading.load("reference:modern:copycat")


def test_an_edited_line_is_what_computes(edited: Any) -> None:
    ids = torch.tensor([[10, 20, 30, 10, 20]])
    with torch.inference_mode():
        whole, same, without = (
            edited("x = x + attended", line).model(ids).last_hidden_state
            for line in ("x = x + attended", "x = attended + x", "x = x + 0 * attended")
        )
    assert torch.equal(whole, same)
    assert (whole - without).abs().max() > 0.1


def test_a_fault_in_an_edited_line_is_one_sentence(edited: Any) -> None:
    for old, new in (("class Decoder", "class"), ("self.norm = ", "self.nrm = ")):
        with pytest.raises(BadInput, match=r"has a fault .*Correct its file"):
            edited(old, new)
    with pytest.raises(BadInput, match="line 1"):
        edited('"""A modern decoder', '"')


def test_an_edited_source_is_tested_anew(
    pair: tuple[Runner, Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    build, theirs = pair
    assert store.identity(build) != store.identity(theirs)
    before = store.identity(build)
    monkeypatch.setattr(store.kept_json, "code_now", lambda rooms: "edited")
    assert store.identity(build) != before
