"""Tiny random .gguf files that llama.cpp opens, one for each architecture; written in milliseconds.

path = tiny_gguf.write(folder / "x.gguf", "gemma3", kind="Q8_0")
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np

from tests.llama_engine.tiny_architectures import ARCHITECTURES, Architecture
from tests.llama_engine.tiny_vocabulary import add_byte_level, add_sentence_piece

NAMES = tuple(ARCHITECTURES)
_BLOCK = 32  # numbers that the simple quantisations store together
_TOKENIZERS = {"gpt2": add_byte_level, "llama": add_sentence_piece}
_ALWAYS_FLOAT32 = (  # as converters leave them
    "norm", "conv", "position_embd", "gate_inp", "sinks", "ssm_a", ".bias",
)  # fmt: skip


def write(
    path: Path,
    name: str | Architecture = "llama",
    *,
    kind: str = "F32",
    seed: int = 0,
    tokenizer: str = "",
    start: bool | None = None,
    more: dict[str, Any] | None = None,
) -> Path:
    """Write the architecture `name` with random weights; the same seed gives the same bytes.

    In place of a name a description may be given, for files that are wrong somewhere.

    `kind` is how the matrices are stored: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0 or Q5_1.
    `tokenizer` is "gpt2" or "llama"; empty: the one that the architecture comes with.  `start`
    says in the file whether a start token is added.  `more` is metadata by its whole key.
    """
    made = name if isinstance(name, Architecture) else ARCHITECTURES[name]()
    writer = gguf.GGUFWriter(path, made.name)
    writer.add_name(f"tiny {made.name}")
    for key, value in made.numbers.items():
        _add(writer, f"{made.name}.{key}", value)
    _TOKENIZERS[tokenizer or made.tokenizer](writer, start)
    for key, value in (more or {}).items():
        _add(writer, key, value)
    _add_tensors(writer, made, kind, seed)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_tensors(writer: gguf.GGUFWriter, made: Architecture, kind: str, seed: int) -> None:
    draw = np.random.default_rng(seed)
    vocabulary = len(writer.kv_data[0]["tokenizer.ggml.tokens"].value)
    for tensor, shape in made.shapes(vocabulary).items():
        values = _values(tensor, shape, draw)
        stored = gguf.GGMLQuantizationType.F32
        if len(shape) > 1 and not shape[-1] % _BLOCK and not _stays(tensor):
            stored = gguf.GGMLQuantizationType[kind]
        data = values if stored.name == "F32" else gguf.quantize(values, stored)
        writer.add_tensor(tensor, data, raw_dtype=stored)


def _values(tensor: str, shape: tuple[int, ...], draw: np.random.Generator) -> np.ndarray:
    """Float32; of a size that leaves attention neither flat nor all on one token."""
    values = draw.standard_normal(shape)
    if tensor.endswith("ssm_a"):  # a decay, so it is negative
        values = -np.abs(values) - 0.1
    elif "norm" in tensor and not tensor.endswith(".bias"):
        values = 1 + 0.2 * values
    elif tensor.endswith(".bias") or len(shape) == 1:
        values = 0.3 * values
    elif "embd" not in tensor:
        values = 1.3 * values / np.sqrt(shape[-1])
    return values.astype(np.float32)


def _stays(tensor: str) -> bool:
    return any(part in tensor for part in _ALWAYS_FLOAT32)


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)
