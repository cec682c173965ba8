"""The weight files of a model folder: which, and whether whole."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

from explorer import disk
from explorer.engine.errors import BadInput, TruncatedFile
from explorer.engine.model_files import unusable_files
from explorer.trace.files.safetensors_head import read_head

_LONGEST_JSON = 32 * 1024 * 1024
_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "F16": 16, "BF16": 16, "U32": 32, "I32": 32,
    "F32": 32, "U64": 64, "I64": 64, "F64": 64,
}  # fmt: skip
INDEX = "model.safetensors.index.json"


def weight_files(folder: Path) -> list[Path]:
    """The files that hold the weights, safetensors before .bin; BadInput if there are none."""
    for stem in ("model.safetensors", "pytorch_model.bin"):
        single, index = folder / stem, folder / f"{stem}.index.json"
        if single.is_file() and not _stray(single, index):
            return [single]
        if index.is_file():
            return _shards(index)
    unusable_files.refuse_folder(folder)
    raise unusable_files.no_weights(folder)


def _stray(single: Path, index: Path) -> bool:
    """True if a single file lies beside whole shards and does not hold what they do."""
    if single.suffix != ".safetensors" or not index.is_file():
        return False
    try:
        shards = [safetensors_header(path)[1] for path in _shards(index)]
    except BadInput:
        return False
    try:
        held = safetensors_header(single)[1].keys()
    except BadInput:
        return True
    return any(not shard.keys() <= held for shard in shards)


def _shards(index: Path) -> list[Path]:
    listed = read_json(index).get("weight_map")
    whole = isinstance(listed, dict) and all(isinstance(n, str) for n in listed.values())
    if not whole or not listed:
        raise BadInput(f"{index.name} in {index.parent.name} is damaged; download it again.")
    names = sorted(set(listed.values()))
    for name in names:
        if Path(name).name != name:
            raise BadInput(
                f"{index.name} points outside its own folder ({name}); this model is not opened."
            )
    missing = [name for name in names if not _is_there(index.parent / name)]
    if missing:
        raise BadInput(
            f"{len(missing)} of {len(names)} weight files are missing ({missing[0]}); download the "
            "rest of the model."
        )
    return [index.parent / name for name in names]


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name longer than systems allow
        return False


def read_json(path: Path, longest: int = _LONGEST_JSON) -> dict[str, Any]:
    """A JSON object from a file of sane length; BadInput names the file."""
    try:
        if path.stat().st_size > longest:
            raise BadInput(
                f"{path.name} of {path.parent.name} is far too long to be what its name says; "
                "download it again."
            )
        value = json.loads(disk.read_text(path, longest))
    except (OSError, ValueError, RecursionError) as error:
        unusable_files.refuse_stand_in(path)
        raise BadInput(
            f"{path.name} in {path.parent.name} cannot be read; download it again.", str(error)
        ) from error
    if not isinstance(value, dict):
        raise BadInput(f"{path.name} in {path.parent.name} is damaged; download it again.")
    return value


def safetensors_header(path: Path) -> tuple[bytes, dict[str, Any]]:
    """The header's bytes and its tensors; BadInput if the file is not whole."""
    unusable_files.refuse_stand_in(path)
    size = path.stat().st_size
    broken = BadInput(f"{path.name} is not a whole safetensors file; download it again.")
    with path.open("rb") as file:
        try:
            raw = read_head(file, size)
        except ValueError:
            raise broken from None
    length = len(raw)
    try:
        tensors = json.loads(raw)
        tensors.pop("__metadata__", None)
        end = max((_end(entry) for entry in tensors.values()), default=0)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError):
        raise broken from None
    if 8 + length + end > size:
        raise TruncatedFile(broken.sentence)
    if 8 + length + end < size:
        raise broken
    return raw, tensors


def _end(entry: dict[str, Any]) -> int:
    """Where a tensor's bytes end; an error if its entry is not well-formed."""
    shape, (begin, end) = entry["shape"], entry["data_offsets"]
    numbers = [*shape, begin, end]
    if not all(isinstance(number, int) and number >= 0 for number in numbers):
        raise ValueError("a negative size, or none")
    width = _BITS.get(entry["dtype"])
    if begin > end or (width and prod(shape) * width != 8 * (end - begin)):
        raise ValueError("a tensor of another size than its shape")
    return int(end)


def is_cut(path: Path) -> bool:
    """True if a safetensors file is shorter than its header, which is whole, promises."""
    try:
        safetensors_header(path)
    except TruncatedFile:
        return True
    except (BadInput, OSError):
        return False
    return False


def stored_numbers(files: list[Path]) -> int:
    """How many numbers the weight files hold; of pickles, at most how many."""
    total = 0
    for path in files:
        if path.suffix == ".safetensors":
            entries = safetensors_header(path)[1].values()
            total += sum(prod(entry["shape"]) for entry in entries)
        else:
            total += path.stat().st_size // 2  # no weights of ours are narrower than 16 bits
    return total
