"""Which model a name means, and which models are on this disk."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from explorer import places, smollm2
from explorer.engine.errors import BadInput
from explorer.engine.library import file_summary, opened_models, stores, unfinished_downloads
from explorer.engine.library.stores import ReferenceBuild, Source
from explorer.engine.machine import free_memory
from explorer.engine.model_files import unusable_files
from explorer.trace.fingerprint import Fingerprint
from explorer.trace.request import usual_form

REFERENCE = "reference:"
_LATER_PART = re.compile(r"-(?!00001)\d{5}-of-\d{5}$")


def resolve(name: str, like: Fingerprint | None = None) -> Source:
    """The model that `name` means; BadInput with a next step if there is none.

    `like`: where several have this name, the one of this fingerprint if it was opened before.
    """
    if name.startswith(REFERENCE):
        return _reference(name, like)
    if name == "copycat":
        return _copycat()
    if name == "smollm2":
        return _smollm2()
    if not name.strip() or "\0" in name:
        raise BadInput("No model was given. Give a folder, a .gguf file, copycat or smollm2.")
    path = Path(name).expanduser()
    seen = opened_models.find(name, like) if like else None
    if seen is not None or _exists(path):
        return _from_path(seen or path)
    for source in _sources():
        if name == source.name:
            if source.kind == "unfinished":
                raise _incomplete(name)
            return source
    if (seen := opened_models.find(name)) is not None:
        return _from_path(seen)
    if path.is_absolute() or name[0] in ".~" or path.suffix.lower() == ".gguf":
        raise BadInput(f"There is no file or folder {name[:200]}. Check the path.")
    raise BadInput(
        f"There is no model called {name[:200]}: give a folder with a config.json, a .gguf file, "
        "copycat or smollm2; `decoder-explorer models` lists what is on this disk."
    )


def plain_name(name: str) -> str:
    """The model whose weights are meant, without the build that runs them."""
    return name.split(":", 2)[-1] if name.startswith(REFERENCE) else name


def _reference(name: str, like: Fingerprint | None) -> Source:
    """`reference:BUILD:MODEL`: the weights of a model in a build of explorer.reference."""
    named = name.removeprefix(REFERENCE).partition(":")[0]
    build: ReferenceBuild = "modern" if named == "modern" else "primitives"
    if named != build or ":" not in name.removeprefix(REFERENCE):
        raise BadInput(
            f"{name[:200]} names no reference build. Write reference:modern:MODEL (a checkpoint in "
            "Llama's layout) or reference:primitives:MODEL (in GPT-2's)."
        )
    source = resolve(plain_name(name), like)
    return replace(source, name=f"{REFERENCE}{build}:{source.name}", build=build)


def find() -> list[dict[str, Any]]:
    """The models on this disk, bundled ones first; their files' heads are read, no weights.

    `fits`: whether the model fits in memory now, in float32 or its usual form, with the cache and
    capture of a run.
    """
    available = free_memory.available_bytes()
    rows = [row for source in _sources() if (row := _row(source, available)) is not None]
    bundled = [row for row in rows if row["source"] == "bundled"]
    return [*bundled, *map(_reference_row, bundled), *rows[len(bundled) :]]


def _sources() -> Iterator[Source]:
    """Every model once, bundled ones first; a name that is taken gets its path instead."""
    names: set[str] = set()
    seen: set[Path] = set()
    for source in _all_sources():
        real = source.path.resolve()
        if real in seen or _LATER_PART.search(source.path.stem):
            continue
        name = str(source.path) if source.name in names else source.name
        seen.add(real)
        names.add(name)
        yield Source(name, source.path, source.kind, source.origin)


def _all_sources() -> Iterator[Source]:
    for bundled in (_copycat, _smollm2):
        try:
            yield bundled()
        except BadInput:
            continue
    for store in (
        stores.trained, stores.own_folders, stores.hugging_face, stores.lm_studio, stores.ollama
    ):  # fmt: skip
        try:
            yield from store()
        except OSError:  # a folder that may not be looked into
            continue


def _row(source: Source, available: int | None) -> dict[str, Any] | None:
    """One line of `models`; None for what holds no whole decoder."""
    if source.kind == "unfinished":
        return _unfinished_row(source)
    try:
        if source.kind == "gguf":
            found = file_summary.of_gguf(source.path)
        else:
            if not _is_decoder(source.path):
                return None
            found = file_summary.of_folder(source.path)
    except (BadInput, OSError):
        return _unfinished_row(source) if _is_unfinished(source) else None
    if not found.shape.layers:
        return None
    needed = {
        dtype: free_memory.estimate(found.parameters, found.shape, dtype).total
        for dtype in free_memory.BYTES_OF
    }
    usual = "float32"
    if source.kind == "gguf":
        needed["as-is"] = free_memory.estimate_as_is(found.bytes, found.shape)
        usual = usual_form(source.path)
    return {
        "name": source.name,
        "path": str(source.path),
        "source": source.origin,
        "architecture": found.architecture,
        "parameters": found.parameters,
        "bytes": found.bytes,
        "dtype": found.dtype,
        "fits": None if available is None else needed[usual] <= available,
        "memory_bytes": needed,
        "pickle": found.pickle,
        "own_code": source.kind == "folder" and _brings_code(source.path),
        "incomplete": False,
    }


def _reference_row(row: dict[str, Any]) -> dict[str, Any]:
    """The same weights in the decoder of explorer.reference that has their layout."""
    memory = {form: size for form, size in row["memory_bytes"].items() if form != "as-is"}
    return {**row, "name": f"{REFERENCE}modern:{row['name']}", "memory_bytes": memory}


def _is_unfinished(source: Source) -> bool:
    with contextlib.suppress(OSError):
        if source.kind == "gguf":
            return unfinished_downloads.is_unfinished_gguf(source.path)
        return unfinished_downloads.is_unfinished_folder(source.path)
    return False


def _unfinished_row(source: Source) -> dict[str, Any]:
    """The line of a download that was cut off: what is not known of it yet is null."""
    return {
        "name": source.name,
        "path": str(source.path),
        "source": source.origin,
        "architecture": unfinished_downloads.architecture(source.path),
        "parameters": None,
        "bytes": unfinished_downloads.bytes_there(source.path),
        "dtype": "",
        "fits": None,
        "memory_bytes": {},
        "pickle": False,
        "own_code": False,
        "incomplete": True,
    }


def _brings_code(folder: Path) -> bool:
    from explorer.engine.model_files import remote_code
    from explorer.engine.model_files.weights import read_json

    return remote_code.brings(read_json(folder / "config.json"))


def _is_decoder(folder: Path) -> bool:
    from explorer.engine.model_files import remote_code
    from explorer.engine.model_files.configs import check_is_decoder
    from explorer.engine.model_files.weights import read_json

    try:
        stated = read_json(folder / "config.json")
        if remote_code.brings(stated):  # listed, opened only after a yes
            return bool(remote_code.files(folder, stated))
        check_is_decoder(folder.name, stated)
    except BadInput:
        return False
    return True


def _copycat() -> Source:
    try:
        return Source("copycat", places.asset("copycat"), "folder", "bundled")
    except FileNotFoundError as error:
        raise BadInput(str(error)) from error


def _smollm2() -> Source:
    path = smollm2.path()
    if not path.is_file():
        raise BadInput(
            f"SmolLM2 has not been downloaded yet ({smollm2.DOWNLOAD_MB} MB). Download it in the "
            "window's list of models (Ctrl+Shift+M), or run `python3 packaging/run.py` once."
        )
    return Source(smollm2.NAME, path, "gguf", "bundled")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name too long to be a path, a folder we may not look into
        return False


def _incomplete(name: str) -> BadInput:
    return BadInput(
        f"The download of {name[:200]} is incomplete. Let it finish, or start it again."
    )


def _from_path(path: Path) -> Source:
    if path.is_dir():
        return Source(path.resolve().name, path.resolve(), "folder")
    if whole := unfinished_downloads.whole_name(path.name):
        raise _incomplete(whole)
    if not path.is_file():  # a pipe would be waited for
        raise BadInput(f"{path.name} is not a file or folder. Choose another model.")
    if path.suffix.lower() == ".gguf" or _starts_as_gguf(path):
        return Source(path.stem, path.resolve(), "gguf")
    unusable_files.refuse_file(path)
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


__all__ = ["Source", "find", "resolve"]
