"""Saved runs: everything comes back, on any machine, and old files still open."""

from __future__ import annotations

import dataclasses
import os
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from safetensors.numpy import load_file

from explorer.trace.files import dxt
from explorer.trace.trace import Trace
from tests.trace.runs import HEADS, WIDTH, edited, made_step, made_trace, same


def test_everything_comes_back_equal(tmp_path: Path) -> None:
    trace = made_trace()
    path = tmp_path / "ünï ⌘.dxt"
    dxt.save(trace, path)
    back = dxt.load(path)
    for field in dataclasses.fields(Trace):
        assert same(getattr(back, field.name), getattr(trace, field.name)), field.name


def test_maps_are_the_same_from_the_file(saved: Path) -> None:
    back = dxt.load(saved)
    for step in range(3):
        for layer in (0, 1, 2, 3, 5, 6):
            weights = back.weights(step, layer, 1)
            assert weights.shape == (4 if step == 0 else 1, 4 + step)
    with pytest.raises(ValueError, match="recurrent"):
        back.weights(0, 4, 0)


def test_arrays_of_a_file_are_read_only(saved: Path) -> None:
    step = dxt.load(saved).steps[0]
    for array in (step.logits, step.layer_ms, step.hidden, step.layers[0].queries):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_trace_without_steps(tmp_path: Path) -> None:
    trace = dataclasses.replace(made_trace(0), stop_reason="")
    dxt.save(trace, tmp_path / "empty.dxt")
    assert same(dxt.load(tmp_path / "empty.dxt"), trace)


def test_any_safetensors_reader_opens_it(saved: Path) -> None:
    arrays = load_file(saved)
    trace = dxt.load(saved)
    np.testing.assert_array_equal(arrays["0/logits"], trace.steps[0].logits)
    assert arrays["0/queries.0"].shape[1:] == (4, HEADS, WIDTH)


def test_what_repeats_is_written_once(tmp_path: Path) -> None:
    sizes = []
    for steps in (10, 20):
        path = tmp_path / f"{steps}.dxt"
        trace = made_trace(2)
        bare = [dataclasses.replace(made_step(i), hidden=None) for i in range(steps)]
        dxt.save(
            dataclasses.replace(trace, steps=tuple(bare), chosen=trace.chosen[:1] * steps), path
        )
        sizes.append(struct.unpack("<Q", path.read_bytes()[:8])[0])
    assert (sizes[1] - sizes[0]) / 10 < 4000  # header bytes a step, seven layers with masks


def test_it_opens_without_torch(saved: Path) -> None:
    code = (
        "import sys; from explorer.trace.files import dxt; dxt.load(sys.argv[1]);"
        "bad = {'torch', 'transformers', 'PySide6', 'explorer.engine'} & set(sys.modules);"
        "sys.exit(str(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(saved)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_saving_replaces_whole_or_not_at_all(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(dxt.DxtError, match="No space left on device"):
        dxt.save(made_trace(1), saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_an_interrupted_save_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        dxt.save(made_trace(1), tmp_path / "x.dxt")
    assert os.listdir(tmp_path) == []


def test_two_saves_at_once_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "x.dxt"
    threads = [threading.Thread(target=dxt.save, args=(made_trace(n), path)) for n in (1, 2, 3) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(dxt.load(path).steps) in (1, 2, 3)
    assert os.listdir(tmp_path) == ["x.dxt"]


@pytest.mark.parametrize("name", ["missing/x.dxt", ".", "nul\0.dxt"])
def test_a_place_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(dxt.DxtError, match="could not be written"):
        dxt.save(made_trace(1), tmp_path / name)


def test_a_newer_format_says_so(saved: Path) -> None:
    edited(saved, lambda head, body: body.update(format=2))
    with pytest.raises(dxt.DxtError, match=r"format 2.*newer version"):
        dxt.load(saved)


def test_fields_that_are_not_known_yet_are_no_trouble(saved: Path) -> None:
    edited(saved, lambda head, body: (body.update(later=1), body["request"].update(later=1)))
    assert len(dxt.load(saved).steps) == 3


def test_files_of_earlier_versions_still_open() -> None:
    """Written when format 1 was new.  If this fails, a field was added without a default."""
    trace = dxt.load(Path(__file__).parents[1] / "data" / "format-1.dxt")
    assert [step.phase for step in trace.steps] == ["prefill", "decode", "decode"]
    assert [token.origin for token in trace.chosen] == ["generated", "forced", "generated"]
    assert trace.request.prompt == "😀 \x00\u200b"
    assert trace.weights(2, 3, 0).shape == (1, 6)
    assert trace.steps[0].attention_ms is None
    assert trace.steps[0].engine_ms is None


@pytest.mark.parametrize(("mode", "word"), [("fast", "float32"), ("rounded", "float16")])
def test_a_file_of_a_version_with_engine_modes_opens_and_says_so(
    saved: Path, mode: str, word: str
) -> None:
    figures = {
        "mode": mode, "measured": "2026-11-30", "exact_ms": 3.8, "mode_ms": 2.9,
        "max_logit_difference": 9.5e-07, "same_winner_steps": 21, "steps": 21, "warm_up_s": 0.9,
    }  # fmt: skip
    before = dxt.load(saved)

    def as_written_then(_: object, body: dict[str, Any]) -> None:
        body["request"]["mode"] = body["card"]["mode"] = mode
        body["card"] |= {"mode_refused": "", "modes": [figures]}

    back = dxt.load(edited(saved, as_written_then))
    *others, warning = back.card.warnings
    assert tuple(others) == before.card.warnings
    assert f"(mode {mode})" in warning
    assert word in warning
    plain = dataclasses.replace(back, card=before.card)
    assert same(plain, before)
    dxt.save(back, saved)
    assert dxt.load(saved).card == back.card


def test_a_run_of_an_earlier_version_was_of_a_converted_file(tmp_path: Path) -> None:
    made = made_trace()
    card = msgspec.structs.replace(made.card, source="from Q4_1 (dequantised)", form="")
    dxt.save(dataclasses.replace(made, card=card), tmp_path / "old.dxt")
    old = dxt.load(tmp_path / "old.dxt")
    assert (old.request.form, old.card.form) == ("float32", "float32")
    request = msgspec.structs.replace(made.request, form="as-is")
    dxt.save(dataclasses.replace(made, request=request), tmp_path / "new.dxt")
    assert dxt.load(tmp_path / "new.dxt").request.form == "as-is"
