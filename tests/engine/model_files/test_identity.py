"""What tells one model from another of the same names, sizes and headers."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from explorer.engine.model_files import identity
from explorer.engine.model_files.identity import Watched, fingerprint
from explorer.trace.fingerprint import same_weights

SHAPES = {"embedding": (300, 64), "norm": (64,), "bias": (3,), "head": (64, 300)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    draw = np.random.default_rng(0)
    tensors = {name: draw.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
    save_file(tensors, tmp_path / "model.safetensors")
    return tmp_path


def of(folder: Path) -> dict[str, object]:
    return fingerprint(folder, sorted(folder.glob("model*")))


@pytest.mark.parametrize("tensor", sorted(SHAPES))
def test_other_numbers_in_any_one_tensor(folder: Path, tensor: str) -> None:
    path, before = folder / "model.safetensors", of(folder)
    stat, tensors = path.stat(), load_file(path)
    tensors[tensor] = tensors[tensor] * 1.0001
    save_file(tensors, path)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert path.stat().st_size == stat.st_size
    assert not same_weights(of(folder), before)


def test_a_copy_is_the_same_model_with_a_time_of_its_own(folder: Path) -> None:
    before = of(folder)
    os.utime(folder / "model.safetensors", (1, 1))
    assert of(folder) != before
    assert same_weights(of(folder), before)


def test_a_fingerprint_of_an_earlier_version_is_compared_by_what_it_tells(folder: Path) -> None:
    now = of(folder)
    old = {"config": now["config"], "weights": [dict(w) for w in now["weights"]]}  # type: ignore[attr-defined]
    for entry in old["weights"]:  # type: ignore[attr-defined]
        del entry["blocks_sha256"], entry["changed"]
    assert same_weights(old, now)
    old["weights"][0]["header_sha256"] = "other"  # type: ignore[index]
    assert not same_weights(old, now)
    assert not same_weights({}, now)


def test_ten_gigabytes_take_well_under_a_second(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    with path.open("wb") as file:
        file.truncate(10 * 10**9)  # no disk is taken
    began = time.perf_counter()
    identity.blocks_sha256(path, 0, range(0, 10 * 10**9, 10**6))
    assert time.perf_counter() - began < 1.0


def test_watched_files_tell_when_they_are_written(folder: Path) -> None:
    path = folder / "model.safetensors"
    watched = Watched([path])
    assert watched.changed is None
    stat = path.stat()
    os.utime(path, (1, 1))
    assert watched.changed == path
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.write(data[:-1] + bytes([data[-1] ^ 1]))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    if sys.platform != "win32":
        assert watched.changed == path  # the time was set back, and that has a time, too
    path.unlink()
    assert watched.changed is None  # what is open stays


@pytest.mark.parametrize("kind", [".safetensors", ".gguf"])
def test_another_name_or_other_rights_are_no_change_of_a_watched_file(
    folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = (folder / "model.safetensors").rename(folder / f"model{kind}")
    watched = Watched([path])
    os.link(path, folder / "second")
    path.chmod(0o600)
    assert watched.changed is None
    monkeypatch.setattr(identity, "of_file", lambda path: pytest.fail("it was read again"))
    assert watched.changed is None
