"""`show` and `attention` on saved runs, without torch or a window."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from explorer.session.capture_budget import without_records
from explorer.trace.card import Check, SelfCheck
from explorer.trace.files import dxt
from explorer.trace.files.saved_extras import SavedExtras, Sibling
from explorer.trace.request import RunRequest
from explorer.trace.step import Token
from explorer.trace.trace import Trace
from tests.cli.conftest import Done
from tests.session.scripted import played
from tests.trace.batches import result, row

Command = Callable[..., Done]


def made_trace(steps: int = 3) -> Trace:
    return replace(played(steps), stop_reason="end token")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "run.dxt"
    dxt.save(made_trace(), path)
    return path


def test_show_json_has_the_fields_of_the_contract(command: Command, saved: Path) -> None:
    done = command("show", saved, "--json")
    assert (done.code, done.err) == (0, "")
    document = json.loads(done.out)
    assert list(document) == [
        "model", "architecture", "prompt_tokens", "causal_mask", "cache", "dtype", "sampling",
        "stop_reason", "reused_tokens", "tokens", "turns", "steps", "cache_bytes_per_layer",
        "self_check", "stored_dtype", "interventions", "context_policy", "warnings",
    ]  # fmt: skip
    assert (document["model"], document["architecture"]) == ("tiny", "llama")
    assert document["prompt_tokens"] == 3
    assert document["cache"] == {"enabled": True, "reason": "on"}
    assert document["sampling"]["seed"] == 0
    assert document["stop_reason"] == "end token"
    assert document["self_check"] == {"passed": None, "checks": []}
    assert document["tokens"][3] == {
        "id": 10, "text": "t10", "bytes_hex": "743130", "origin": "generated",
    }  # fmt: skip
    step = document["steps"][1]
    assert list(step) == [
        "index", "phase", "positions_processed", "forward_ms", "chosen_id", "chosen_text",
        "probability", "raw_probability", "rank", "entropy_bits", "cache_tokens", "cache_bytes",
    ]  # fmt: skip
    assert (step["phase"], step["positions_processed"], step["chosen_id"]) == ("decode", 1, 11)
    assert step["cache_bytes"] == sum((4 * 32, 4 * 32))
    assert document["cache_bytes_per_layer"] == [5 * 32, 5 * 32]


def test_show_json_is_json_whatever_the_text(command: Command, tmp_path: Path) -> None:
    check = Check(name="rows", passed=False, measured=float("nan"), tolerance=1e-5)
    trace = replace(
        made_trace(),
        prompt=(Token(0, b"\xf0\x9f"), Token(1, "é\u2028\x00".encode()), Token(2, b"x")),
        self_check=SelfCheck(passed=False, checks=(check,)),
    )
    dxt.save(trace, tmp_path / "odd.dxt")
    done = command("show", tmp_path / "odd.dxt", "--json")
    assert done.out.isascii()
    document = json.loads(done.out)
    assert [token["bytes_hex"] for token in document["tokens"][:2]] == ["f09f", "c3a9e280a800"]
    assert document["self_check"]["checks"][0]["measured"] is None


def test_show_prints_a_table(command: Command, saved: Path) -> None:
    out = command("show", saved).out
    assert "tiny (llama, float32, cpu)" in out
    assert "3 prompt tokens, causal mask on, cache on" in out
    assert "prefill" in out
    assert "stopped: end token" in out


def test_show_of_an_unfinished_run(command: Command, tmp_path: Path) -> None:
    dxt.save(replace(made_trace(0), stop_reason=""), tmp_path / "a.dxt")
    assert json.loads(command("show", tmp_path / "a.dxt", "--json").out)["steps"] == []
    assert "not yet" in command("show", tmp_path / "a.dxt").out


@pytest.mark.parametrize("name", ["a.npy", "a.csv"])
def test_attention_writes_the_maps_numbers(
    command: Command, saved: Path, tmp_path: Path, name: str
) -> None:
    trace = made_trace()
    for step, shape in ((0, (3, 3)), (2, (1, 5))):
        out = tmp_path / name
        words = ("attention", saved, "--layer", 1, "--head", 1, "--step", step, "--out", out)
        assert command(*words) == Done(0, "", "")
        read = np.load(out) if name == "a.npy" else np.loadtxt(out, delimiter=",", ndmin=2)
        assert read.shape == shape
        np.testing.assert_array_equal(read.astype(np.float32), trace.weights(step, 1, 1))


def test_attention_takes_the_first_step_unless_told(
    command: Command, saved: Path, tmp_path: Path
) -> None:
    command("attention", saved, "--layer", 0, "--head", 0, "--out", tmp_path / "a.npy")
    assert np.load(tmp_path / "a.npy").shape == (3, 3)


def pixels(path: Path) -> np.ndarray:
    """(height, width, 3) of a PNG as this program writes it, its checksums tested."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(
            kind + body
        )
        chunks[kind] = body
        at += 12 + length
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def test_attention_draws_a_picture(command: Command, saved: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.png"
    assert command("attention", saved, "--layer", 0, "--head", 0, "--out", out).code == 0
    picture = pixels(out)
    assert picture.shape == (768, 768, 3)
    cells = picture[128::256, 128::256].astype(int)
    grey = (230, 233, 239)
    assert [tuple(cells[q, k]) == grey for q in range(3) for k in range(3)] == [
        False, True, True, False, False, True, False, False, False,
    ]  # fmt: skip
    assert tuple(cells[0, 0]) == (253, 231, 37)  # the largest weight of the map: viridis' yellow


BAD = {
    "step": ((0, 0, 3), "steps 0 to 2. There is no step 3"),
    "layer": ((2, 0, 0), "layers 0 to 1. There is no layer 2"),
    "head": ((0, 2, 0), "heads 0 to 1, no head 2"),
}


@pytest.mark.parametrize("kind", BAD)
def test_out_of_range_names_the_range(
    command: Command, saved: Path, tmp_path: Path, kind: str
) -> None:
    (layer, head, step), words = BAD[kind]
    out = tmp_path / "a.npy"
    done = command(
        "attention", saved, "--layer", layer, "--head", head, "--step", step, "--out", out
    )
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert not out.exists()


def test_a_layer_without_a_map_says_why(command: Command, tmp_path: Path) -> None:
    trace = made_trace()
    steps = (without_records(trace.steps[0]), *trace.steps[1:])
    trace = replace(trace, request=RunRequest(model="tiny", cache=False), steps=steps)
    bare = replace(trace, steps=steps[:1], chosen=trace.chosen[:1])
    dxt.save(bare, tmp_path / "a.dxt")
    out = tmp_path / "a.npy"
    done = command("attention", tmp_path / "a.dxt", "--layer", 0, "--head", 0, "--out", out)
    assert done.code == 2
    assert "deleted to save memory" in done.err
    assert not out.exists()


def test_an_unknown_ending_is_refused(command: Command, saved: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.jpg"
    done = command("attention", saved, "--layer", 0, "--head", 0, "--out", out)
    assert (done.code, ".npy, .csv or .png" in done.err) == (2, True)


def test_a_file_that_is_no_run(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.dxt").write_text("hello, this is not a session")
    done = command("show", tmp_path / "a.dxt")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "is not a Decoder Explorer session" in done.err


@pytest.mark.parametrize("what", ["show", "attention"])
def test_neither_torch_nor_qt_is_loaded(saved: Path, tmp_path: Path, what: str) -> None:
    words = [what, str(saved)]
    if what == "attention":
        words += ["--layer", "0", "--head", "0", "--out", str(tmp_path / "a.png")]
    code = (
        "import sys\n"
        "from explorer.cli import main\n"
        "code = main(sys.argv[1:])\n"
        "heavy = {'torch', 'transformers', 'tiktoken', 'PySide6', 'explorer.engine'}\n"
        "heavy &= set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_goes_away_is_no_error(saved: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "explorer", "show", str(saved), "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    assert child.stderr.read() == b""
    child.stderr.close()
    assert child.wait() == 0


def test_show_tells_of_branches_and_of_a_batch(command: Command, tmp_path: Path) -> None:
    trace = made_trace()
    other = replace(trace.truncated(1), stop_reason="")
    siblings = (Sibling("plain\x07", trace), Sibling("what if", other))
    dxt.save(trace, tmp_path / "a.dxt", SavedExtras(siblings, 0, result(row(2), row(4))))
    document = json.loads(command("show", tmp_path / "a.dxt", "--json").out)
    assert [one["name"] for one in document["branches"]] == ["plain\x07", "what if"]
    assert document["branches"][1]["chosen_ids"] == list(other.chosen_ids)
    assert [one["verdict"] for one in document["batch"]["rows"]] == ["right", "right"]
    out = command("show", tmp_path / "a.dxt").out
    assert "2 branches:\n  plain⟨BEL⟩: " in out
    assert "a batch of 2 prompts, padded on the right" in out
