"""Branches and a padded batch in the file of a session."""

from __future__ import annotations

import json
import math
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from explorer.trace.batch import Scored
from explorer.trace.files import dxt
from explorer.trace.files.saved_extras import SavedExtras, Sibling
from explorer.trace.request import Sampling
from explorer.trace.step import Token
from explorer.trace.trace import Trace
from tests.trace.batches import result, row
from tests.trace.runs import edited, made_step, made_trace, same


def other_way(trace: Trace, shared: int, *ids: int) -> Trace:
    """Goes with `trace` for some steps, then otherwise, each step with settings of its own."""
    longer = trace.truncated(shared)
    for i in ids:
        step = made_step(len(longer.steps))
        step = replace(step, sampling=Sampling(greedy=False, temperature=1 + i / 10))
        longer = longer.appended(step, Token(i, f"o{i}".encode(), "generated"))
    return longer


def tree() -> tuple[Trace, SavedExtras]:
    """Three branches; the first two steps of the second one are on screen."""
    one = made_trace(3)
    two = other_way(one, 1, 7, 8, 9)
    three = other_way(two, 2, 5)
    names = ("A", "ünï ⌘", "C")
    siblings = tuple(Sibling(n, t) for n, t in zip(names, (one, two, three), strict=True))
    broken = row(2, scored=tuple(Scored(slot=i, nats=math.nan, rank=i) for i in range(3)))
    batch = result(row(4), broken, row(1), vocabulary=96)
    return two.truncated(2), SavedExtras(siblings, 1, batch)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tree.dxt"
    trace, beside = tree()
    dxt.save(trace, path, beside)
    return path


def test_the_whole_tree_comes_back_with_names_settings_and_shared_steps(tmp_path: Path) -> None:
    trace, beside = tree()
    path = tmp_path / "tree.dxt"
    dxt.save(trace, path, beside)
    back, found = dxt.load_whole(path)
    assert same(back, trace)
    assert [one.name for one in found.branches] == ["A", "ünï ⌘", "C"]
    assert found.current == 1
    for one, original in zip(found.branches, beside.branches, strict=True):
        assert one.trace.chosen_ids == original.trace.chosen_ids
        assert same(one.trace.steps, original.trace.steps)
    first, second, third = (one.trace for one in found.branches)
    assert second.steps[0] is first.steps[0]
    assert third.steps[:2] == second.steps[:2]
    assert back.steps[1] is second.steps[1]
    assert [s.sampling.temperature for s in second.steps[1:]] == [1.7, 1.8, 1.9]


def test_a_batch_comes_back_equal(file: Path) -> None:
    found = dxt.load_whole(file)[1].batch
    expected = tree()[1].batch
    assert found is not None
    assert expected is not None
    assert same(found, expected)
    assert found.rows[0].tokens[0].raw == b" w0"


def test_a_batch_is_written_under_its_models_bare_name(tmp_path: Path) -> None:
    path = tmp_path / "private.dxt"
    batch = result(row(4), model="/home/somebody/models/tiny")
    dxt.save(made_trace(1), path, SavedExtras(batch=batch))
    assert b"somebody" not in path.read_bytes()
    found = dxt.load_whole(path)[1].batch
    assert found is not None
    assert found.model == "tiny"


def test_a_program_that_knows_nothing_of_branches_opens_what_was_on_screen(file: Path) -> None:
    trace = dxt.load(file)

    def forget(head: dict[str, Any], body: dict[str, Any]) -> None:
        for name in ("more_steps", "branches", "current_branch", "batch"):
            del body[name]

    edited(file, forget)
    again, beside = dxt.load_whole(file)
    assert same(again, trace)
    assert beside == SavedExtras()


def test_steps_that_branches_share_are_written_once(tmp_path: Path) -> None:
    trace = made_trace(3)
    dxt.save(trace, tmp_path / "one.dxt")
    twice = SavedExtras((Sibling("A", trace), Sibling("B", trace.truncated(2))))
    dxt.save(trace, tmp_path / "two.dxt", twice)
    sizes = [(tmp_path / name).stat().st_size for name in ("one.dxt", "two.dxt")]
    assert sizes[1] - sizes[0] < 1000


def test_a_batch_alone_opens_without_torch(tmp_path: Path) -> None:
    path = tmp_path / "batch.dxt"
    empty = replace(made_trace(0), prompt=(), stop_reason="")
    dxt.save(empty, path, SavedExtras(batch=result(row(2), row(4))))
    code = (
        "import sys; from explorer.trace.files import dxt;"
        "trace, beside = dxt.load_whole(sys.argv[1]);"
        "assert len(beside.batch.rows) == 2 and not trace.prompt;"
        "bad = {'torch', 'transformers', 'PySide6', 'explorer.engine'} & set(sys.modules);"
        "sys.exit(str(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def _branch(**more: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda head, body: body["branches"][1].update(more)


def _row(**more: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda head, body: body["batch"]["rows"][1].update(more)


DAMAGE: dict[str, Callable[[dict[str, Any], dict[str, Any]], None]] = {
    "steps that are not there": _branch(steps=[0, 99]),
    "negative steps": _branch(steps=[0, -1, 1, 2]),
    "steps out of order": _branch(steps=[1, 0, 3, 4]),
    "fewer tokens than steps": _branch(chosen=[]),
    "branch on screen not there": lambda head, body: body.update(current_branch=3),
    "arrays of a branch missing": lambda head, body: head.pop("4/logits"),
    "batch is a list": lambda head, body: body.update(batch=[]),
    "batch without rows": lambda head, body: body["batch"].update(rows=[]),
    "mask of other length": _row(attention_mask=[1, 1]),
    "tokens of other length": _row(tokens=[]),
    "readout outside": _row(readout=99),
    "reading outside": lambda head, body: body["batch"]["rows"][0]["at_last_slot"].update(slot=-1),
    "nothing alone": _row(alone=[]),
    "scores out of order": lambda head, body: body["batch"]["rows"][0]["scored"].reverse(),
    "effect unknown": _row(effects={"readout": 1.0}),
    "verdict unknown": _row(verdict="splendid"),
    "row missing": lambda head, body: body["batch"]["rows"].pop(),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_parts_that_do_not_fit_are_refused(file: Path, kind: str) -> None:
    edited(file, DAMAGE[kind])
    with pytest.raises(dxt.DxtError) as refused:
        dxt.load_whole(file)
    assert "\n" not in str(refused.value)


def test_changed_numbers_never_crash_what_draws_the_batch(file: Path) -> None:
    from explorer.figures.batch import loss, padding

    whole = file.read_bytes()
    dice = random.Random(1)
    drawn = 0
    for _ in range(150):
        (length,) = struct.unpack("<Q", whole[:8])
        text = json.loads(whole[8 : 8 + length])["__metadata__"][dxt.KEY]
        start = text.index('"batch"')
        at = dice.choice([i for i in range(start, len(text)) if text[i].isdigit()])
        changed = text[:at] + str(dice.randrange(10)) + text[at + 1 :]

        def put(head: dict[str, Any], body: dict[str, Any], text: str = changed) -> None:
            body.clear()
            body.update(msgspec.json.decode(text))

        file.write_bytes(whole)
        try:
            edited(file, put)
            batch = dxt.load_whole(file)[1].batch
        except (dxt.DxtError, msgspec.DecodeError):
            continue
        assert batch is not None
        padding.blocks(batch), padding.finding(batch), loss.blocks(batch, batch.vocabulary)
        drawn += 1
    assert drawn > 50
