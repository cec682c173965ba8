"""A GGUF file as a model folder: dequantised once to float32, opened from then on like any model.

transformers parses a GGUF file three times and rebuilds its table of tensor names once per
submodule.  Here the file is read once and the table is built once; the arithmetic (dequantising,
undoing llama.cpp's permutations) is transformers' and gguf's own, so the weights are the same bits.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gguf as library
import numpy as np
import torch
import transformers.modeling_gguf_pytorch_utils as legacy
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

from explorer import places
from explorer.engine import gguf_tokenizer
from explorer.engine.errors import BadInput, Cancelled, EngineError
from explorer.engine.gguf_header import Header, read_header
from explorer.engine.tensor_file import TensorFile

Progress = Callable[[str, float | None], None]
FORMAT = 1  # of the converted folder; a newer program converts again
_MANIFEST = "converted.json"
_patched = threading.Lock()  # transformers asks gguf for its reader and names by module attribute


def as_folder(path: Path, progress: Progress, cancelled: Callable[[], bool]) -> tuple[Path, str]:
    """(folder with config, tokenizer and float32 safetensors; words for the card's source).

    Converts on the first call and whenever the file or the folder has changed.
    """
    target = folder_for(path)
    known = _manifest(target)
    if known is None or not _still_good(path, target, known):
        _convert(path, target, progress, cancelled)
        known = _manifest(target) or {}
    return target, str(known.get("origin", ""))


def folder_for(path: Path) -> Path:
    """Where the converted form of a GGUF file is kept."""
    path = path.resolve()
    models = places.models_folder().resolve()
    if path.parent.parent == models:
        return path.parent / "float32"
    key = hashlib.sha256(str(path).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return places.data_folder() / "converted" / f"{path.stem[:60]}-{key}"


def config_of(path: Path) -> Any:
    """transformers' config for a GGUF file, from its header alone."""
    return _config_and_skeleton(read_header(path))[0]


def origin_of(header: Header) -> str:
    """How the file's matrices are stored, in words: `from Q4_1 (dequantised)`."""
    sizes: dict[str, int] = {}
    for tensor in header.tensors:
        if len(tensor.shape) > 1:
            sizes[tensor.kind.name] = sizes.get(tensor.kind.name, 0) + tensor.size
    if not sizes:
        return "GGUF"
    main = max(sizes, key=lambda kind: sizes[kind])
    return f"from {main}" + ("" if main in ("F32", "F64") else " (dequantised)")


def _manifest(folder: Path) -> dict[str, Any] | None:
    try:
        known = json.loads((folder / _MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return known if isinstance(known, dict) and known.get("format") == FORMAT else None


def _still_good(path: Path, folder: Path, known: dict[str, Any]) -> bool:
    """True if source and converted files are those of the manifest.

    Size and time decide; where only the time differs (a copied folder), the hash does.
    """
    pairs = [(path, known.get("source"))]
    pairs += [(folder / name, entry) for name, entry in known.get("files", {}).items()]
    return len(pairs) > 1 and all(_same(file, entry) for file, entry in pairs)


def _same(file: Path, entry: Any) -> bool:
    try:
        found = file.stat()
        if found.st_size != entry["size"]:
            return False
        return found.st_mtime_ns == entry["mtime_ns"] or _sha256(file) == entry["sha256"]
    except (OSError, KeyError, TypeError):
        return False


def _identity(file: Path) -> dict[str, Any]:
    found = file.stat()
    return {"size": found.st_size, "mtime_ns": found.st_mtime_ns, "sha256": _sha256(file)}


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _convert(path: Path, target: Path, progress: Progress, cancelled: Callable[[], bool]) -> None:
    """Write the converted folder, whole or not at all."""
    progress(f"Reading {path.name}", None)
    header = read_header(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".converting-", dir=target.parent))
    try:
        config, model = _config_and_skeleton(header)
        _write_weights(header, config, model, work, progress, cancelled)
        config.architectures = [type(model).__name__]
        config.dtype = torch.float32
        config.save_pretrained(work)
        progress("Writing the tokenizer", None)
        gguf_tokenizer.write(header, work)
        files = {file.name: _identity(file) for file in sorted(work.iterdir())}
        manifest = {
            "format": FORMAT,
            "origin": origin_of(header),
            "source": _identity(path) | {"path": str(path)},
            "files": files,
        }
        (work / _MANIFEST).write_text(json.dumps(manifest, indent=1), "utf-8")
        _put(work, target)
    except (BadInput, Cancelled):
        raise
    except OSError as error:
        raise EngineError(
            f"{path.name} could not be unpacked into {target.parent}: {error.strerror or error}; "
            "free some space there and try again.",
            traceback.format_exc(),
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _put(work: Path, target: Path) -> None:
    """Give the finished folder its name; a folder of that name is replaced."""
    old = target.with_name(f"{target.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        os.replace(target, old)
    os.replace(work, target)
    shutil.rmtree(old, ignore_errors=True)


def _config_and_skeleton(header: Header) -> tuple[Any, Any]:
    """transformers' config for the file, and its model on the meta device."""
    with _one_reader(header):
        try:
            stated = legacy.load_gguf_checkpoint(str(header.path), return_tensors=False)["config"]
        except (ValueError, KeyError, NotImplementedError, IndexError, TypeError) as error:
            raise _unmapped(header) from error
    stated.setdefault("vocab_size", len(header.metadata.get("tokenizer.ggml.tokens", ())))
    stated |= gguf_tokenizer.special_ids(header)
    kind = stated.pop("model_type", None)
    if kind not in CONFIG_MAPPING or CONFIG_MAPPING[kind] not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise _unmapped(header)
    config = CONFIG_MAPPING[kind].from_dict(stated)
    with torch.device("meta"):
        return config, MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]._from_config(config)


def _unmapped(header: Header) -> BadInput:
    return BadInput(
        f"{header.path.name} is of architecture {header.architecture}, which transformers cannot "
        "read from GGUF; use the model's safetensors folder instead.",
        traceback.format_exc(),
    )


def _write_weights(
    header: Header,
    config: Any,
    model: Any,
    folder: Path,
    progress: Progress,
    cancelled: Callable[[], bool],
) -> None:
    """Dequantise tensor by tensor into one safetensors file; BadInput if some are missing."""
    kind = legacy.TENSOR_PROCESSORS.get(header.architecture, legacy.TensorProcessor)
    processor = kind(config=config.to_dict())
    with _one_reader(header):
        names = legacy.get_gguf_hf_weights_map(model, processor)
    shapes = {name: tuple(value.shape) for name, value in model.named_parameters()}
    mapped = set(names.values())
    shapes |= {n: tuple(b.shape) for n, b in model.named_buffers() if n in mapped}
    _check_space(folder, shapes)
    with TensorFile(folder / "model.safetensors", shapes) as out:
        for count, entry in enumerate(header.tensors):
            if cancelled():
                raise Cancelled
            progress(f"Unpacking {header.path.name} once", count / len(header.tensors))
            weights = library.dequantize(header.data(entry), entry.kind)
            done = processor.process(
                weights=weights,
                name=entry.name,
                tensor_key_mapping=names,
                parsed_parameters={"tensors": out},
            )
            if done.name in names and names[done.name] in shapes:
                out[names[done.name]] = done.weights
        missing = out.missing()
    if missing:
        raise BadInput(
            f"{header.path.name} lacks {len(missing)} of the weights that its architecture needs "
            f"({missing[0]}…); use another file of this model."
        )


def _check_space(folder: Path, shapes: dict[str, tuple[int, ...]]) -> None:
    needed = sum(4 * int(np.prod(shape)) for shape in shapes.values())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise EngineError(
            f"Unpacking this file takes {needed / 1e9:.1f} GB on the disk of {folder.parent}, "
            f"where {free / 1e9:.1f} GB are free; make room and try again."
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


__all__ = ["as_folder", "config_of", "folder_for", "origin_of"]
