"""What a model holds, told from its config and the heads of its files; no weights are read."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from explorer.engine.errors import BadInput
from explorer.engine.gguf.header import Header, read_header
from explorer.engine.model_files.model_shape import Shape, check_layers, shape_of
from explorer.engine.model_files.quantisation_shares import by_share
from explorer.engine.model_files.weights import read_json, safetensors_header, weight_files
from explorer.engine.text import tiktoken_folder

PICKLE = "pickle (.bin)"
PICKLE_WARNING = (
    "The weights are pickle files (.bin), which can contain programs. They are loaded in "
    "torch's restricted mode, which runs none."
)
_NAMES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "F64": "float64"}
_WORDS = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSummary:
    """One model on disk."""

    architecture: str  # config.model_type, or llama.cpp's name
    parameters: int  # tensors as stored; a tied head is stored once
    bytes: int  # of the weight files
    dtype: str  # that the weights are stored in, by share where there are several
    shape: Shape
    pickle: bool = False  # weights as .bin


def of_folder(folder: Path) -> FileSummary:
    """BadInput if the folder holds no whole model."""
    config = read_json(folder / "config.json")
    files = weight_files(folder)
    size = sum(path.stat().st_size for path in files)
    stated = str(config.get("dtype") or config.get("torch_dtype") or "float32")
    parameters = size // _WORDS.get(stated, 4)  # of pickles, which are not opened for this
    if files[0].suffix == ".safetensors":
        counts = _counted(files)
        parameters = sum(counts.values())
        stated = stored_in(files)
    return FileSummary(
        architecture=str(config.get("model_type", "")),
        parameters=parameters,
        bytes=size,
        dtype=stated,
        shape=shape_of(_as_object(config)),
        pickle=files[0].suffix != ".safetensors",
    )


def of_gguf(path: Path) -> FileSummary:
    """BadInput if the file is damaged."""
    header = read_header(path, vocabulary=False)
    return FileSummary(
        architecture=header.architecture,
        parameters=header.numbers,
        bytes=path.stat().st_size,
        dtype=_NAMES.get(header.stored, header.stored),
        shape=_gguf_shape(header),
    )


def stored_in(files: list[Path]) -> str:
    """The dtypes that safetensors hold, by share; empty for pickles, which are not opened."""
    if files[0].suffix != ".safetensors":
        return ""
    counts = _counted(files)
    return by_share({_NAMES.get(kind, kind): count for kind, count in counts.items()})


def storage_of(folder: Path) -> dict[str, Any]:
    """How a folder's weights are stored: source, dtype, warnings; empty where there are none.

    A recipe is read from the config alone, so that missing weights or tokens are no fault.
    """
    found: dict[str, Any] = {"source": "", "stored_dtype": ""}
    files: list[Path] = []
    with contextlib.suppress(BadInput, OSError):
        files = weight_files(folder)
        found["source"] = PICKLE if files[0].suffix == ".bin" else "safetensors"
        found["stored_dtype"] = stored_in(files)
    return {**found, "warnings": warnings_of(files, tiktoken_folder.assumption_of(folder))}


def warnings_of(files: list[Path], assumption: str) -> list[str]:
    """What a folder's weight files and its tokenizer (`assumption`) give reason to say.

    Only an open model tells more: tensors that have no place in it, weights that are no numbers.
    """
    pickled = bool(files) and files[0].suffix == ".bin"
    return [*filter(None, [assumption]), *[PICKLE_WARNING] * pickled]


def _counted(files: list[Path]) -> Counter[str]:
    """Numbers stored in each safetensors dtype."""
    counts: Counter[str] = Counter()
    for path in files:
        for entry in safetensors_header(path)[1].values():
            counts[str(entry["dtype"])] += prod(entry["shape"])
    return counts


def _as_object(config: dict[str, Any]) -> Any:
    """config.json with its text part's fields as attributes, without building a real config."""
    part = config.get("text_config")
    merged = {**config, **part} if isinstance(part, dict) else config
    return SimpleNamespace(**merged)


def _gguf_shape(header: Header) -> Shape:
    def number(key: str) -> int:
        value = header.metadata.get(f"{header.architecture}.{key}", 0)
        if isinstance(value, list):  # one a layer
            value = max(value, default=0)
        return value if isinstance(value, int) else 0

    layers, hidden = number("block_count"), number("embedding_length")
    heads = number("attention.head_count")
    window = number("attention.sliding_window")
    check_layers(layers)
    return Shape(
        layers=layers,
        hidden_size=hidden,
        heads=heads,
        kv_heads=number("attention.head_count_kv") or heads,
        head_dim=number("attention.key_length") or (hidden // heads if heads else 0),
        vocab_size=number("vocab_size"),
        context=number("context_length"),
        layer_kinds=("full" if heads else "recurrent",) * layers,
        windows=(window,) * layers,
    )


__all__ = ["PICKLE", "PICKLE_WARNING", "FileSummary", "of_folder", "of_gguf", "storage_of",
           "stored_in", "warnings_of"]  # fmt: skip
