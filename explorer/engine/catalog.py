"""Which model a name means, and which models are on this disk."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from explorer import places
from explorer.engine.errors import BadInput

SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclass(frozen=True, slots=True)
class Source:
    """A model on this disk: a folder in Hugging Face's layout, or one GGUF file."""

    name: str
    path: Path
    kind: Literal["folder", "gguf"]


def resolve(name: str) -> Source:
    """The model that `name` means; BadInput with a next step if there is none."""
    if name == "copycat":
        return _copycat()
    if name == "smollm2":
        return _smollm2()
    if not name.strip() or "\0" in name:
        raise BadInput("No model was named; give a folder, a .gguf file, copycat or smollm2.")
    path = Path(name).expanduser()
    if _exists(path):
        return _from_path(path)
    for entry in find():
        if name == entry["name"]:
            return _from_path(Path(entry["path"]), name)
    raise BadInput(
        f"There is no model called {name}: give a folder with a config.json, a .gguf file, "
        "copycat or smollm2."
    )


def find() -> list[dict[str, Any]]:
    """The models on this disk, bundled ones first; no weights are read."""
    found = [_listed(source, "bundled") for source in _bundled()]
    return found + [_listed(source, "Hugging Face cache") for source in _hugging_face_cache()]


def _copycat() -> Source:
    try:
        return Source("copycat", places.asset("copycat"), "folder")
    except FileNotFoundError as error:
        raise BadInput(str(error)) from error


def _smollm2() -> Source:
    path = places.models_folder() / "smollm2" / SMOLLM2_FILE
    if not path.is_file():
        raise BadInput(
            "smollm2 is not on this machine yet; run `python3 packaging/run.py` once with a "
            "network, or use copycat."
        )
    return Source("smollm2", path, "gguf")


def _bundled() -> list[Source]:
    found = []
    for bundled in (_copycat, _smollm2):
        try:
            found.append(bundled())
        except BadInput:
            continue
    return found


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name too long to be a path, a folder we may not look into
        return False


def _from_path(path: Path, name: str = "") -> Source:
    if path.is_dir():
        return Source(name or path.resolve().name, path.resolve(), "folder")
    if path.suffix.lower() == ".gguf" or _starts_as_gguf(path):
        return Source(name or path.stem, path.resolve(), "gguf")
    raise BadInput(
        f"{path.name} is not a model: give a folder with a config.json and weights, "
        "or a .gguf file."
    )


def _starts_as_gguf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"GGUF"
    except OSError:
        return False


def _hugging_face_cache() -> list[Source]:
    """The newest snapshot with a config.json of every repository in the cache."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        cache = scan_cache_dir()
    except (CacheNotFound, OSError, ValueError):
        return []
    found = []
    for repo in sorted(cache.repos, key=lambda repo: repo.repo_id):
        revisions = sorted(repo.revisions, key=lambda r: r.last_modified, reverse=True)
        for revision in revisions:
            if repo.repo_type == "model" and (revision.snapshot_path / "config.json").is_file():
                found.append(Source(repo.repo_id, revision.snapshot_path, "folder"))
                break
    return found


def _listed(source: Source, origin: str) -> dict[str, Any]:
    """One row of `models`."""
    row: dict[str, Any] = {
        "name": source.name,
        "path": str(source.path),
        "source": origin,
        "architecture": "",
        "parameters": None,
        "bytes": _bytes_of(source.path),
        "dtype": "",
        "fits": None,
    }
    if source.kind == "folder":
        try:
            config = json.loads((source.path / "config.json").read_text("utf-8"))
            row["architecture"] = str(config.get("model_type", ""))
            row["dtype"] = str(config.get("dtype") or config.get("torch_dtype") or "")
        except (OSError, ValueError, AttributeError):
            pass
    return row


def _bytes_of(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(
        os.stat(entry).st_size
        for pattern in ("*.safetensors", "*.bin")
        for entry in path.glob(pattern)
    )
