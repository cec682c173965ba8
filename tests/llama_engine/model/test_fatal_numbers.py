"""What llama.cpp would abort on is refused in a sentence; what is unusual and sound is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from explorer.engine.errors import BadInput
from explorer.engine.gguf.header import read_header
from explorer.llama_engine.model import fatal_numbers
from tests.llama_engine import tiny_gguf
from tests.llama_engine.tiny_architectures import ARCHITECTURES

RMS = "attention.layer_norm_rms_epsilon"


@pytest.mark.parametrize("name", tiny_gguf.NAMES)
def test_sound_files_pass(tmp_path: Path, name: str) -> None:
    fatal_numbers.refuse(read_header(tiny_gguf.write(tmp_path / "x.gguf", name)))


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("llama", "block_count", 0), ("llama", "block_count", 513), ("llama", RMS, -1.0),
        ("llama", RMS, float("nan")), ("bloom", "attention.layer_norm_epsilon", -1.0),
        ("mixtral", "expert_count", 0), ("mixtral", "expert_count", 513),
        ("mixtral", "expert_used_count", 0), ("mixtral", "expert_used_count", 5),
        ("mamba", "attention.head_count_kv", (1 << 32) - 1), ("llama", "context_length", 1 << 31),
        ("lfm2", "attention.head_count_kv", [0, 2, 0, -1]),
        ("phi3", "rope.dimension_count", 65), ("phi3", "rope.dimension_count", 0),
        ("phi3", "rope.dimension_count", 3), ("deepseek2", "rope.dimension_count", 25),
    ],
)  # fmt: skip
def test_fatal_numbers_are_refused(tmp_path: Path, name: str, key: str, value: Any) -> None:
    made = ARCHITECTURES[name]()
    path = tmp_path / "x.gguf"
    tiny_gguf.write(path, replace(made, numbers={**made.numbers, key: value}))
    with pytest.raises(BadInput, match="not a whole GGUF file"):
        fatal_numbers.refuse(read_header(path))


def test_a_token_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tiny_gguf.write(tmp_path / "x.gguf", tokenizer="llama")
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"<0x41>", b"<0x42>", 1))
    with pytest.raises(BadInput, match="not a whole GGUF file"):
        fatal_numbers.refuse(read_header(path))
