"""Downloads that were cut off: told by the names that programs give them, or by what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from explorer.engine.errors import BadInput
from explorer.engine.gguf.header import is_cut
from explorer.engine.model_files import weights

# What browsers, the Hub's libraries, LM Studio, aria2 and this program add to a name.
_ENDINGS = (".part", ".partial", ".incomplete", ".crdownload", ".download", ".aria2")
_HUB_FOLDER = Path(".cache") / "huggingface" / "download"
_BEFORE = "downloading_"


def whole_name(file: str) -> str:
    """The name that a file will have when its download is finished; empty if it has that one."""
    stem = file
    while stem.lower().endswith(_ENDINGS):
        stem = stem[: stem.rindex(".")]
    return "" if stem == file else stem.removeprefix(_BEFORE)


def is_unfinished_folder(folder: Path) -> bool:
    """True for a model folder whose weights are still to come, in whole or in part."""
    try:
        files = weights.weight_files(folder)
    except BadInput:
        index = folder / weights.INDEX
        return index.is_file() or _arriving(folder)
    return any(path.suffix == ".safetensors" and weights.is_cut(path) for path in files)


def is_unfinished_gguf(path: Path) -> bool:
    """True for a GGUF file whose head is whole and promises more than is there."""
    return path.with_name(f"{path.name}.aria2").is_file() or is_cut(path)


def bytes_there(path: Path) -> int:
    """What has arrived so far."""
    files = [path] if path.is_file() else [*path.iterdir(), *_parts(path)]
    return sum(file.stat().st_size for file in files if file.is_file())


def architecture(folder: Path) -> str:
    """What the config.json that has arrived says; empty if there is none."""
    try:
        return str(weights.read_json(folder / "config.json").get("model_type", ""))
    except BadInput:
        return ""


def _arriving(folder: Path) -> bool:
    return any(_parts(folder)) or any(whole_name(path.name) for path in folder.iterdir())


def _parts(folder: Path) -> Iterator[Path]:
    """Parts of files on their way to a folder, where the Hub's libraries keep them."""
    places = [folder / _HUB_FOLDER]
    if folder.parent.name == "snapshots":
        places.append(folder.parent.parent / "blobs")
    for place in places:
        if place.is_dir():
            yield from (path for path in place.rglob("*") if whole_name(path.name))
