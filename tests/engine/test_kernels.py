"""The kernels' file: built once, taken again only while it is whole, and built anywhere else."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from explorer.engine import kernels
from explorer.engine.errors import BadInput

needs_compiler = pytest.mark.compiler


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty data folder, and nothing loaded from another one."""
    folder = tmp_path / "home"
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(folder))
    kernels.library.cache_clear()
    yield folder
    kernels.library.cache_clear()


def only_file(home: Path) -> Path:
    (file,) = (home / "kernels").iterdir()
    return file


@needs_compiler
def test_what_is_built_serves_again_and_without_a_compiler(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels.library()
    file = only_file(home)
    written = file.stat().st_mtime_ns
    monkeypatch.setenv("PATH", "")
    kernels.library.cache_clear()
    assert kernels.library().linear32
    assert only_file(home).stat().st_mtime_ns == written
    monkeypatch.setattr(kernels, "_FLAGS", (*kernels._FLAGS, "-DOTHER"))
    kernels.library.cache_clear()
    with pytest.raises(BadInput, match="a C compiler, and none was found"):
        kernels.library()


@needs_compiler
def test_a_damaged_file_is_built_again(home: Path) -> None:
    kernels.library()
    file = only_file(home)
    whole = file.read_bytes()
    file.unlink()  # what this process has loaded must stay as it is
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    kernels.library.cache_clear()
    kernels.library()
    assert only_file(home).read_bytes() == whole
    file.unlink()
    file.write_bytes(whole[:6000])  # it would end the process that loads it
    code = "from explorer.engine import kernels; kernels.library()"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert only_file(home).read_bytes() == whole


@needs_compiler
def test_a_data_folder_that_cannot_be_written_is_done_without(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.write_text("a file where the folder should be")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    assert kernels.library().linear32
    assert not list(scratch.iterdir())
    kernels.library.cache_clear()
    scratch.rmdir()
    with pytest.raises(BadInput, match="in a temporary folder, and none could be made") as caught:
        kernels.library()
    assert "No such file or directory" in caught.value.sentence
    assert str(scratch) in caught.value.sentence


@needs_compiler
def test_a_compiler_that_fails_is_one_sentence(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.c"
    broken.write_text("this is no C")
    monkeypatch.setattr(kernels, "_SOURCE", broken)
    with pytest.raises(BadInput, match="could not be built") as caught:
        kernels.library()
    assert "error" in caught.value.details
    assert not list(home.rglob("*.so"))
