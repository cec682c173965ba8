"""Where models lie on a user's disk: Hugging Face's cache, LM Studio, Ollama, and own folders."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from explorer import disk, places
from explorer.engine import kept_json
from explorer.engine.library.unfinished_downloads import whole_name

_DEEPEST = 6
_MOST_FOLDERS = 20_000  # of one tree; a home folder added by mistake must not hang the search
_OLLAMA_MODEL = "application/vnd.ollama.image.model"


ReferenceBuild = Literal["", "modern", "primitives"]


@dataclass(frozen=True, slots=True)
class Source:
    """A model on this disk: a folder in Hugging Face's layout, or one GGUF file."""

    name: str
    path: Path
    kind: Literal["folder", "gguf", "unfinished"]  # a file that is still on its way
    origin: str = ""  # bundled, Hugging Face cache, LM Studio, Ollama, or a folder's path
    build: ReferenceBuild = ""  # of explorer.reference, in place of transformers' own model


def hugging_face() -> Iterator[Source]:
    """The models of the Hugging Face cache: of each repository the snapshot of main, or newest."""
    from huggingface_hub import constants, scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    yield from _begun(Path(constants.HF_HUB_CACHE))
    try:
        repos = scan_cache_dir(constants.HF_HUB_CACHE).repos
    except (CacheNotFound, OSError, ValueError):
        return
    for repo in sorted(repos, key=lambda repo: repo.repo_id):
        if repo.repo_type != "model" or not repo.revisions:
            continue
        newest = max(repo.revisions, key=lambda r: ("main" in r.refs, r.last_modified))
        yield from _inside(newest.snapshot_path, repo.repo_id, "Hugging Face cache")


def _begun(cache: Path) -> Iterator[Source]:
    """Repositories of the cache of which parts of files have arrived and nothing that is whole."""
    for repo in sorted(cache.glob("models--*")):
        parts = [path for path in repo.glob("blobs/*") if whole_name(path.name)]
        whole = any(path.is_file() for path in repo.glob("snapshots/*/*")
                    if path.name == "config.json" or path.suffix == ".gguf")  # fmt: skip
        if parts and not whole:
            name = repo.name.removeprefix("models--").replace("--", "/")
            yield Source(name, parts[0], "unfinished", "Hugging Face cache")


def _inside(folder: Path, name: str, origin: str) -> Iterator[Source]:
    if (folder / "config.json").is_file():
        yield Source(name, folder, "folder", origin)
    for file in sorted(folder.rglob("*.gguf")):
        if file.is_file():
            yield Source(f"{name}/{file.name}", file, "gguf", origin)


def lm_studio() -> Iterator[Source]:
    """Models that LM Studio downloaded: publisher/repository/file."""
    for root in _lm_studio_roots():
        yield from _tree(root, "LM Studio")


def _lm_studio_roots() -> list[Path]:
    home = Path.home()
    roots = [home / ".lmstudio" / "models", home / ".cache" / "lm-studio" / "models"]
    pointer = home / ".lmstudio-home-pointer"
    try:
        moved = Path(disk.read_text(pointer).strip()) / "models"
    except (OSError, ValueError):
        return roots
    return list(dict.fromkeys([moved, *roots]))


def ollama() -> Iterator[Source]:
    """Models of Ollama's store: a manifest names the blob that holds the weights."""
    seen: set[str] = set()
    for root in _ollama_roots():
        manifests = root / "manifests"
        for manifest in sorted(manifests.rglob("*")) if manifests.is_dir() else ():
            blob = _ollama_blob(root, manifest) if manifest.is_file() else None
            if blob is None:
                continue
            *_, owner, model, tag = ("", "", *manifest.relative_to(manifests).parts)
            name = f"{model}:{tag}" if owner in ("library", "") else f"{owner}/{model}:{tag}"
            if name not in seen:
                seen.add(name)
                yield Source(name, blob, "gguf", "Ollama")


def _ollama_roots() -> list[Path]:
    if chosen := os.environ.get("OLLAMA_MODELS"):
        return [Path(chosen).expanduser()]
    roots = [Path.home() / ".ollama" / "models"]
    if sys.platform.startswith("linux"):  # where its installer puts the service's models
        roots.append(Path("/usr/share/ollama/.ollama/models"))
    return roots


def _ollama_blob(root: Path, manifest: Path) -> Path | None:
    """The GGUF blob of a manifest; None if it has none or it is not there."""
    try:
        if manifest.stat().st_size > 1 << 20:
            return None
        layers = json.loads(disk.read_text(manifest))["layers"]
        digest = next(str(x["digest"]) for x in layers if x["mediaType"] == _OLLAMA_MODEL)
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        return None
    name = digest.replace(":", "-")
    blob = root / "blobs" / name
    return blob if Path(name).name == name and blob.is_file() else None


def own_folders() -> Iterator[Source]:
    """Models in the folders that the user added."""
    for root in added_folders():
        yield from _tree(root, str(root))


def trained() -> Iterator[Source]:
    """Models that were trained in the training lab and opened from there."""
    if places.trained_folder().is_dir():
        yield from _tree(places.trained_folder(), "training lab")


def added_folders() -> list[Path]:
    """The folders the user added; $DECODER_EXPLORER_MODELS names more, like PATH."""
    named = os.environ.get("DECODER_EXPLORER_MODELS", "")
    return [Path(entry).expanduser() for entry in [*_remembered(), *named.split(os.pathsep)]
            if entry.strip()]  # fmt: skip


def add_folder(folder: Path) -> None:
    """Look for models in this folder too, from now on."""
    _remember([*_remembered(), str(folder.expanduser().absolute())])


def remove_folder(folder: Path) -> None:
    """Look there no longer; nothing in it is touched."""
    gone = str(folder.expanduser().absolute())
    _remember([entry for entry in _remembered() if entry != gone])


def _list_file() -> Path:
    return places.data_folder() / "model_folders.json"


def _remembered() -> list[str]:
    return kept_json.read(_list_file(), list[str]) or []


def _remember(entries: list[str]) -> None:
    kept_json.write(_list_file(), list(dict.fromkeys(entries)))


def _tree(root: Path, origin: str) -> Iterator[Source]:
    """Model folders and GGUF files under a folder, named by their path in it."""
    for place, folders, files in islice(os.walk(root), _MOST_FOLDERS):
        here = Path(place)
        depth = len(here.relative_to(root).parts)
        folders[:] = sorted(f for f in folders if not f.startswith(".")) if depth < _DEEPEST else []
        name = here.relative_to(root).as_posix() if here != root else root.name
        if "config.json" in files:
            yield Source(name, here, "folder", origin)
        prefix = "" if here == root else f"{name}/"
        for file in sorted(files):
            if file.lower().endswith(".gguf"):
                yield Source(f"{prefix}{file[:-5]}", here / file, "gguf", origin)
            elif (whole := whole_name(file)).lower().endswith(".gguf") and whole not in files:
                yield Source(f"{prefix}{whole[:-5]}", here / file, "unfinished", origin)
