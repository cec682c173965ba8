"""A saved run opened as arrays: they are the run's own, and what can't be opened is told."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import explorer
from explorer.notebooks.opened_run import open_run
from explorer.places import asset
from explorer.trace.files import dxt
from explorer.trace.files.saved_extras import SavedExtras, Sibling
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.trace import Trace
from tests.notebooks import cells
from tests.notebooks.recorded import run

DRAWN = Sampling(greedy=False, top_k=5, seed=3)


@pytest.fixture(scope="module")
def trace() -> Trace:
    request = RunRequest(model="copycat", prompt="one two three one two", padding="left", pad=2)
    return run(request, [DRAWN] * 3, {})


@pytest.fixture(scope="module")
def file(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "run.dxt"
    short = trace.truncated(1)
    dxt.save(trace, path, SavedExtras((Sibling("A", trace), Sibling("short", short)), 0))
    return path


def test_the_arrays_are_those_of_the_run(trace: Trace, file: Path) -> None:
    opened = open_run(file)
    assert (len(opened), opened.steps) == (3, 3)
    assert opened.tokens == trace.tokens
    assert opened.text.startswith("one two three one two")
    assert [token.id for token in opened.generated] == list(trace.chosen_ids)
    np.testing.assert_array_equal(opened.logits, [step.logits for step in trace.steps])
    for step in range(3):
        for layer in range(2):
            maps = opened.attention(step, layer)
            assert maps.dtype == np.float32
            assert maps.shape == (4, trace.steps[step].positions_processed, trace.read_slots(step))
            for head in range(4):
                np.testing.assert_array_equal(maps[head], trace.weights(step, layer, head))
    assert opened.model.layers == 2
    assert opened.settings["padding"] == "left"
    assert opened.settings["sampling"]["top_k"] == 5
    assert opened.step(1).draw == trace.steps[1].draw


def test_probabilities_are_the_models_or_those_after_sampling(trace: Trace, file: Path) -> None:
    opened = open_run(file)
    for step in range(3):
        draw = trace.steps[step].draw
        assert opened.probabilities(step)[draw.token_id] == pytest.approx(draw.raw_probability)
        after = opened.probabilities(step, after_sampling=True)
        assert after[draw.token_id] == pytest.approx(draw.probability)
        assert np.count_nonzero(after) == 5


def test_branches_are_runs_by_name(trace: Trace, file: Path) -> None:
    branches = open_run(file).branches
    assert list(branches) == ["A", "short"]
    assert branches["short"].steps == 1
    assert branches["A"].tokens == trace.tokens


def test_numbers_count_from_the_end_too_and_others_are_refused(file: Path) -> None:
    opened = open_run(file)
    np.testing.assert_array_equal(opened.attention(-1, -1), opened.attention(2, 1))
    with pytest.raises(IndexError, match=r"no step 3\. They count from 0 to 2"):
        opened.probabilities(3)
    with pytest.raises(IndexError, match="no layer 2"):
        opened.attention(0, 2)


def test_a_file_that_cannot_be_opened_is_told_in_one_sentence(file: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.dxt"
    damaged.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(ValueError, match="is damaged"):
        open_run(damaged)
    with pytest.raises(ValueError, match="could not be opened"):
        open_run(tmp_path / "none.dxt")
    odd = trace_with(Sampling(order=("penalty",) * 5), file, tmp_path)
    with pytest.raises(ValueError, match="is damaged: The order must"):
        open_run(odd)


def trace_with(sampling: Sampling, file: Path, folder: Path) -> Path:
    trace = dxt.load(file)
    steps = tuple(replace(step, sampling=sampling) for step in trace.steps)
    dxt.save(replace(trace, steps=steps), folder / "odd.dxt")
    return folder / "odd.dxt"


def test_the_program_gives_it_by_its_first_name_and_imports_nothing_before(file: Path) -> None:
    assert explorer.open_run(file).steps == 3
    code = "import sys, explorer; print({'numpy', 'msgspec', 'torch'} & set(sys.modules))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_example_notebook_runs(file: Path) -> None:
    notebook = asset("notebooks", "open_a_run.ipynb").read_bytes()
    told = cells.printed(notebook, file.parent, isolated=False)
    assert "rows sum to 1" in told
    assert "short" in told
