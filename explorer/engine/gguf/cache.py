"""Converted GGUF files on disk: where each is kept, whether it is still good, what all take up."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from explorer import disk, places
from explorer.engine.callbacks import Stop, never
from explorer.engine.errors import Cancelled
from explorer.engine.model_files.identity import blocks_sha256

FORMAT = 3  # of the converted folder; a newer program converts again
LIMIT_BYTES = 60 * 10**9  # for all but the bundled model; the longest unused go first
_MANIFEST = "converted.json"
_WORK = ".converting-"
_ABANDONED_S = 6 * 3600
_HASHED_BYTES = 1 << 20  # between two looks at whether to go on


def folder_for(path: Path) -> Path:
    """Where the converted form of a GGUF file is kept: beside a bundled model, else in a cache."""
    path = path.resolve()
    if path.parent.parent == places.models_folder().resolve():
        return path.parent / "float32"
    key = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    return cache_folder() / f"{path.stem[:60]}-{key}"


def cache_folder() -> Path:
    """Holds one folder for each converted file that is not the program's own."""
    return places.data_folder() / "converted"


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a converted folder was made from, in words, and what a user should know of it."""

    origin: str
    notes: tuple[str, ...] = ()

    @property
    def stored(self) -> str:
        """How the file keeps its weights: `Q4_1 79 %, Q8_0 21 %`; empty if it is not known."""
        named = self.origin.startswith("from ")
        return self.origin[5:].removesuffix(" (dequantised)") if named else ""


def opened(path: Path, folder: Path) -> Conversion | None:
    """What is known of `folder` if it is a whole, unchanged conversion of `path`, else None."""
    known = _manifest(folder)
    if known is None or not _unchanged(path, folder, known):
        return None
    with contextlib.suppress(OSError):  # a read-only folder is as good to read from
        os.utime(folder / _MANIFEST)  # the longest unused conversion is removed first
    return Conversion(str(known.get("origin", "")), tuple(map(str, known.get("notes", ()))))


def store(
    path: Path,
    folder: Path,
    origin: str,
    fill: Callable[[Path], list[str]],
    cancelled: Stop = never,
) -> Conversion:
    """Let `fill` write into a new folder and give it its name when all is well.

    Cancelled if `cancelled` turns true while the files are hashed, which takes seconds.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    _clear_abandoned(folder.parent)
    work = Path(tempfile.mkdtemp(prefix=_WORK, dir=folder.parent))
    try:
        notes = fill(work)
        files = {file.name: _identity(file, cancelled) for file in sorted(work.iterdir())}
        known = {
            "format": FORMAT,
            "origin": origin,
            "notes": notes,
            "source": {"path": str(path), **_identity(path, cancelled)},
            "files": files,
        }
        disk.write(work / _MANIFEST, json.dumps(known, indent=1).encode())
        _give_name(work, folder)
        return Conversion(origin, tuple(notes))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def size_bytes() -> int:
    """What all conversions in the cache take up."""
    return sum(_folder_bytes(folder) for folder in _kept())


def clear() -> int:
    """Remove every conversion in the cache; the bytes that became free."""
    return trim(0)


def trim(limit_bytes: int, keep: Path | None = None) -> int:
    """Remove the longest unused conversions until the rest fit; the bytes that became free."""
    sizes = {folder: _folder_bytes(folder) for folder in _kept()}
    total, freed = sum(sizes.values()), 0
    for folder in sorted(sizes, key=_last_used):
        if total - freed <= limit_bytes:
            break
        if folder != keep:
            shutil.rmtree(folder, ignore_errors=True)
            freed += sizes[folder]
    return freed


def _kept() -> list[Path]:
    root = cache_folder()
    found = root.iterdir() if root.is_dir() else ()
    return [entry for entry in found if entry.is_dir() and not entry.name.startswith(_WORK)]


def _last_used(folder: Path) -> float:
    try:
        return (folder / _MANIFEST).stat().st_mtime
    except OSError:
        return 0.0


def _folder_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _manifest(folder: Path) -> dict[str, Any] | None:
    try:
        known = json.loads((folder / _MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return known if isinstance(known, dict) and known.get("format") == FORMAT else None


def _unchanged(path: Path, folder: Path, known: dict[str, Any]) -> bool:
    """Size, time and blocks decide; where only the time differs (a copy), the whole hash does."""
    files = known.get("files")
    if not isinstance(files, dict) or not files:
        return False
    pairs = [(path, known.get("source"))]
    pairs += [(folder / name, entry) for name, entry in files.items()]
    return all(_same(file, entry) for file, entry in pairs)


def _same(file: Path, entry: Any) -> bool:
    try:
        found = file.stat()
        if found.st_size != entry["size"]:
            return False
        if found.st_mtime_ns != entry["mtime_ns"]:
            return bool(_sha256(file) == entry["sha256"])
        # A file may have kept the time of the one it replaced (cp -p, rsync -t, unpacking).
        return bool(blocks_sha256(file) == entry["blocks_sha256"])
    except (OSError, KeyError, TypeError):
        return False


def _identity(file: Path, cancelled: Stop) -> dict[str, Any]:
    found = file.stat()
    return {
        "size": found.st_size,
        "mtime_ns": found.st_mtime_ns,
        "sha256": _sha256(file, cancelled),
        "blocks_sha256": blocks_sha256(file),
    }


def _sha256(file: Path, cancelled: Stop = never) -> str:
    digest = hashlib.sha256()
    with file.open("rb", buffering=0) as stream:
        while block := stream.read(_HASHED_BYTES):
            if cancelled():
                raise Cancelled
            digest.update(block)
    return digest.hexdigest()


def _give_name(work: Path, folder: Path) -> None:
    old = folder.with_name(f"{_WORK}old-{os.getpid()}")
    if folder.exists():
        os.replace(folder, old)
    os.replace(work, folder)
    shutil.rmtree(old, ignore_errors=True)


def _clear_abandoned(parent: Path) -> None:
    """Remove what a killed conversion left behind."""
    for entry in parent.glob(f"{_WORK}*"):
        try:
            if time.time() - entry.stat().st_mtime > _ABANDONED_S:
                shutil.rmtree(entry, ignore_errors=True)
        except OSError:
            continue
