"""Dequantise a GGUF file into a model folder, bit for bit as transformers does it, only faster.

transformers parses a GGUF file three times and rebuilds its table of tensor names once per
submodule.  Here the file is read once and the table is built once; the arithmetic (dequantising,
undoing llama.cpp's permutations) is gguf's and transformers' own.
"""

from __future__ import annotations

import functools
import shutil
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gguf as library
import numpy as np
import torch
import transformers.modeling_gguf_pytorch_utils as legacy
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

from explorer.engine.callbacks import Report, Stop
from explorer.engine.errors import BadInput, Cancelled, EngineError
from explorer.engine.gguf import model_config, native, tokenizer
from explorer.engine.gguf.header import Header
from explorer.engine.model_files.configs import check_numbers
from explorer.engine.model_files.meta_model import skeleton
from explorer.engine.model_files.tensor_file import TensorFile
from explorer.wording import short_bytes

_patched = threading.Lock()  # transformers asks gguf for its reader and names by module attribute


def origin_of(header: Header) -> str:
    """How the file's matrices are stored, in words: `from Q4_1 79 %, Q8_0 21 % (dequantised)`."""
    stored = header.stored
    if not stored:
        return "GGUF"
    return f"from {stored}" + ("" if stored in ("F32", "F64") else " (dequantised)")


def config_of(header: Header) -> tuple[Any, list[str]]:
    """(transformers' config for the file, notes on what it cannot say).

    BadInput if transformers cannot read the architecture.
    """
    if native.reads(header):
        model_config.check_figures(header)
        try:
            config = native.config_of(header)
        except (KeyError, ValueError, TypeError, ZeroDivisionError) as error:
            raise _unmapped(header) from error
        return config, model_config.rope_lost(header)
    with _one_reader(header):
        try:
            stated = legacy.load_gguf_checkpoint(str(header.path), return_tensors=False)["config"]
        except (ValueError, KeyError, NotImplementedError, IndexError, TypeError) as error:
            raise _unmapped(header) from error
    stated.setdefault("vocab_size", len(header.metadata.get("tokenizer.ggml.tokens", ())))
    stated |= tokenizer.special_ids(header)
    kind = stated.pop("model_type", None)
    if kind not in CONFIG_MAPPING or CONFIG_MAPPING[kind] not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise _unmapped(header)
    known = CONFIG_MAPPING[kind]
    model_config.check_figures(header, known)
    fields, notes = model_config.completed(header, stated, known)
    check_numbers(f"The header of {header.path.name}", fields)
    return known.from_dict(fields), notes


def write(header: Header, folder: Path, progress: Report, cancelled: Stop) -> list[str]:
    """Config, tokenizer and float32 safetensors into an empty folder; notes for the user."""
    config, notes = config_of(header)
    if native.reads(header):
        native.write_weights(header, config, folder, progress, cancelled)
    else:
        model = skeleton(config)
        used = _write_weights(header, config, model, folder, progress, cancelled)
        notes += model_config.unread_tensors(header, used)
        config.architectures = [type(model).__name__]
        config.dtype = torch.float32
        config.save_pretrained(folder)
    progress("Writing the tokenizer", None)
    return notes + tokenizer.write(header, folder)


def _unmapped(header: Header) -> BadInput:
    return BadInput(
        f"{header.path.name} has architecture {header.architecture}, which transformers "
        "cannot read from GGUF. Use the model's safetensors folder instead.",
        traceback.format_exc(),
    )


def _write_weights(
    header: Header, config: Any, model: Any, folder: Path, progress: Report, cancelled: Stop
) -> set[str]:
    """Dequantise tensor by tensor into one safetensors file; the names of the tensors used.

    BadInput if some are missing.
    """
    kind = legacy.TENSOR_PROCESSORS.get(header.architecture, legacy.TensorProcessor)
    processor = kind(config=config.to_dict())
    with _one_reader(header):
        names = legacy.get_gguf_hf_weights_map(model, processor)
    shapes = {name: tuple(value.shape) for name, value in model.named_parameters()}
    mapped = set(names.values())
    shapes |= {n: tuple(b.shape) for n, b in model.named_buffers() if n in mapped}
    _check_space(folder, shapes)
    used: set[str] = set()
    with TensorFile(folder / "model.safetensors", shapes) as out:
        for count, entry in enumerate(header.tensors):
            if cancelled():
                raise Cancelled
            progress(f"Converting {header.path.name} (only once)", count / len(header.tensors))
            weights = library.dequantize(header.data(entry), entry.kind)
            done = processor.process(
                weights=weights,
                name=entry.name,
                tensor_key_mapping=names,
                parsed_parameters={"tensors": out},
            )
            if done.name in names and names[done.name] in shapes:
                out[names[done.name]] = done.weights
            if done.name is None or done.name in names:  # None: the processor has placed it itself
                used.add(entry.name)
        missing = out.missing()
    if missing:
        raise BadInput(
            f"{header.path.name} lacks {len(missing)} of the weights that its architecture needs "
            f"({missing[0]}…); use another file of this model."
        )
    return used


def _check_space(folder: Path, shapes: dict[str, tuple[int, ...]]) -> None:
    needed = sum(4 * prod(shape) for shape in shapes.values())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise EngineError(
            f"Unpacking this file takes {short_bytes(needed)} on the disk of {folder.parent}, "
            f"where only {short_bytes(free)} is free. Free some space and try again."
        )


@contextmanager
def _one_reader(header: Header) -> Iterator[None]:
    """Let transformers' GGUF code see `header` instead of parsing the file again."""
    reader, table = library.GGUFReader, library.get_tensor_name_map
    with _patched:
        library.GGUFReader = lambda *_: _reader_like(header)
        library.get_tensor_name_map = functools.cache(table)
        try:
            yield
        finally:
            library.GGUFReader, library.get_tensor_name_map = reader, table


def _reader_like(header: Header) -> SimpleNamespace:
    """What `load_gguf_checkpoint` asks of a GGUFReader; it never uses the vocabulary."""
    fields = {
        key: SimpleNamespace(**_field(value, header.types[key]))
        for key, value in header.metadata.items()
        if not key.startswith("tokenizer.")
    }
    return SimpleNamespace(
        fields=fields, tensors=[SimpleNamespace(name=t.name) for t in header.tensors]
    )


def _field(value: Any, types: tuple[int, ...]) -> dict[str, Any]:
    values = value if isinstance(value, list) else [value]
    parts = [v.encode() if isinstance(v, str) else np.array([v]) for v in values]
    return {"parts": parts, "data": range(len(parts)), "types": list(types)}
