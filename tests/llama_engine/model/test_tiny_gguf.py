"""The tiny files: well-formed, and the same at every run."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.engine.gguf.header import read_header
from tests.llama_engine import tiny_gguf


@pytest.mark.parametrize("name", tiny_gguf.NAMES)
def test_a_seed_makes_the_same_file(tmp_path: Path, name: str) -> None:
    first = tiny_gguf.write(tmp_path / "a.gguf", name, kind="Q8_0", seed=3)
    again = tiny_gguf.write(tmp_path / "b.gguf", name, kind="Q8_0", seed=3)
    other = tiny_gguf.write(tmp_path / "c.gguf", name, kind="Q8_0", seed=4)
    assert first.read_bytes() == again.read_bytes()
    assert first.read_bytes() != other.read_bytes()


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"])
def test_matrices_are_stored_as_asked(tmp_path: Path, kind: str) -> None:
    header = read_header(tiny_gguf.write(tmp_path / "x.gguf", kind=kind))
    assert header.stored == kind
    assert {t.kind.name for t in header.tensors if len(t.shape) == 1} == {"F32"}


@pytest.mark.parametrize("tokenizer", ["gpt2", "llama"])
def test_the_start_token_is_told_or_not(tmp_path: Path, tokenizer: str) -> None:
    for start in (None, True, False):
        path = tiny_gguf.write(tmp_path / "x.gguf", tokenizer=tokenizer, start=start)
        told = read_header(path).metadata.get("tokenizer.ggml.add_bos_token")
        assert told is start
