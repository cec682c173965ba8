"""Fetches a model from the Hugging Face Hub, or a mirror of it; the one process that may.

`python -m explorer.engine.library.hub look|get OWNER/NAME [FORM]`, or `search WORDS`, writes
JSON lines: {"progress": …} while it works, then {"facts": …} or {"failed": sentence}.  It ends when
its stdin does.  Files go to the Hugging Face cache, where every program finds them; a part of a
file is kept and gone on with.  `get smollm2` fetches that model from the Python package index.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from explorer import disk, smollm2
from explorer.engine import OFFLINE_NAMES, errors
from explorer.engine.callbacks import Report
from explorer.engine.library import resumed, smollm2_wheel

_SAFETENSORS = re.compile(r"[^/]+\.safetensors")
_PICKLE = re.compile(r"pytorch_model(-\d+-of-\d+)?\.bin")
_GGUF = re.compile(r"\.gguf$", re.IGNORECASE)
_GGUF_PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$", re.IGNORECASE)
_BESIDE = re.compile(
    r"[^/]+\.json|[^/]+\.jinja|[^/]+\.model|[^/]+\.tiktoken|[^/]+\.py|merges\.txt|vocab\.txt"
)
_MOST_FOUND = 20
_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PART = ".decoder-explorer.part"
_EVERY_S = 0.2  # between two words of progress

Tell = Report


def search(words: str) -> dict[str, Any]:
    """Repositories of text models by words in their name, most used first: {repos: [id]}."""
    from huggingface_hub import HfApi

    found = HfApi().list_models(
        search=words, pipeline_tag="text-generation", sort="downloads", limit=_MOST_FOUND
    )
    return {"repos": [str(info.id) for info in found]}


def look(repo: str, form: str = "") -> dict[str, Any]:
    """What `get` would fetch of this `form` ("" = the first there is).

    {repo, revision, form, forms: [[name, bytes]], files: [[name, bytes]], bytes, free_bytes}; a
    form is safetensors, pickle, or the name of a GGUF file.
    """
    from huggingface_hub import HfApi, constants

    if not _ID.fullmatch(repo):
        raise errors.BadInput(_no_name(repo))
    info = HfApi().model_info(repo, files_metadata=True, timeout=30)
    names = {file.rfilename: int(file.size or 0) for file in info.siblings or ()}
    forms = _forms(names)
    if not forms and "adapter_config.json" in names:
        raise errors.BadInput(
            f"{repo} is a LoRA adapter, which only changes another model; choose its base model."
        )
    if not forms:
        there = ", ".join(sorted({Path(n).suffix for n in names if Path(n).suffix})[:8])
        raise errors.BadInput(
            f"{repo} holds no model that can be opened: neither a config.json with weights nor a "
            f"whole GGUF file (it has {there or 'nothing'}); choose another repository."
        )
    if form and form not in forms:
        raise errors.BadInput(f"{repo} no longer contains {form}. Search for it again.")
    form = form or next(iter(forms))
    files = {name: names[name] for name in forms[form]}
    cache = Path(constants.HF_HUB_CACHE)
    return {
        "repo": repo,
        "revision": str(info.sha),
        "form": form,
        "forms": [(name, sum(names[file] for file in held)) for name, held in forms.items()],
        "files": sorted(files.items(), key=lambda pair: pair[1]),
        "bytes": sum(files.values()),
        "free_bytes": shutil.disk_usage(_there(cache)).free,
    }


def _forms(names: dict[str, int]) -> dict[str, list[str]]:
    """The forms in which a repository's files hold a model, and the files of each."""
    beside = [name for name in names if _BESIDE.fullmatch(name)]
    forms: dict[str, list[str]] = {}
    if "config.json" in names:
        for form, pattern in (("safetensors", _SAFETENSORS), ("pickle", _PICKLE)):
            weights = [name for name in names if pattern.fullmatch(name)]
            if weights and not forms:  # pickles only where there is nothing better
                forms[form] = beside + weights
    whole = [name for name in names if _GGUF.search(name) and not _GGUF_PART.search(name)]
    return forms | {name: [name] for name in sorted(whole, key=lambda name: names[name])}


def get(repo: str, tell: Tell, form: str = "") -> dict[str, Any]:
    """Fetch the model; {repo, path, open} of what is then in the cache: `open` is its name."""
    from huggingface_hub import hf_hub_download

    found = look(repo, form)
    total, done = max(1, found["bytes"]), 0
    if found["bytes"] - _had(found) > found["free_bytes"]:
        raise errors.BadInput(
            f"{repo} takes {found['bytes']:,} bytes and {found['free_bytes']:,} are free on the "
            "disk of the Hugging Face cache; free some space, or set HF_HOME to another disk."
        )
    path, snapshot = "", Path()
    for name, size in found["files"]:

        def arrived(held: int, name: str = name, before: int = done) -> None:
            tell(f"Downloading {repo}: {name}", (before + held) / total)

        arrived(0)
        _fetch(repo, found["revision"], name, arrived)
        path = hf_hub_download(repo, name, revision=found["revision"])
        snapshot = Path(path).parents[name.count("/")]
        done += size
    _point_main(snapshot, found["revision"])
    if _GGUF.search(found["form"]):
        return {"repo": repo, "path": path, "open": path}
    return {"repo": repo, "path": str(snapshot), "open": repo}


def _fetch(repo: str, revision: str, name: str, arrived: Callable[[int], None]) -> None:
    """Put one file's bytes where the library looks for them before it downloads anything."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

    url = hf_hub_url(repo, name, revision=revision)
    meta = get_hf_file_metadata(url)
    if not meta.etag or not re.fullmatch(r"[\w.-]+", meta.etag):
        return  # the library downloads it whole
    blob = _repo_folder(repo) / "blobs" / meta.etag
    if blob.exists():
        return
    blob.parent.mkdir(parents=True, exist_ok=True)
    part = blob.with_name(blob.name + _PART)
    # A token is for the Hub, not for whatever server a file lies on.
    same = meta.location.split("/")[:3] == url.split("/")[:3]
    headers = build_hf_headers(token=None if same else False)
    sha256 = meta.etag if _SHA256.fullmatch(meta.etag) else None
    resumed.get(meta.location, part, name, meta.size, sha256, arrived, headers)
    os.replace(part, blob)


def _repo_folder(repo: str) -> Path:
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    return Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repo, repo_type="model")


def _had(found: dict[str, Any]) -> int:
    """Bytes of this repository that the cache holds already, parts too."""
    blobs = _repo_folder(found["repo"]) / "blobs"
    return sum(f.stat().st_size for f in blobs.iterdir()) if blobs.is_dir() else 0


def _point_main(snapshot: Path, revision: str) -> None:
    """Say that this snapshot is the newest, as a download of `main` would."""
    ref = snapshot.parent.parent / "refs" / "main"
    ref.parent.mkdir(parents=True, exist_ok=True)
    disk.write(ref, revision.encode())


def _there(folder: Path) -> Path:
    """The nearest folder above that exists."""
    return next(p for p in (folder, *folder.absolute().parents) if p.exists())


def _no_name(repo: str) -> str:
    return (
        f"{repo[:100]} is not a repository name. Use the form owner/name, such as "
        "HuggingFaceTB/SmolLM2-135M."
    )


def _sentence(repo: str, error: Exception) -> str:
    """What went wrong, and what to do about it."""
    from huggingface_hub import constants
    from huggingface_hub import errors as hub

    place = constants.ENDPOINT or "The Hub"
    if isinstance(error, errors.EngineError):
        return error.sentence
    if isinstance(error, hub.HFValidationError):
        return _no_name(repo)
    if isinstance(error, hub.GatedRepoError):
        return (
            f"{repo} requires that you accept its terms on {place}. Accept them there, "
            "then log in once with `hf auth login`."
        )
    if isinstance(error, hub.RepositoryNotFoundError):
        return f"There is no public model {repo} on {place}; check the name."
    if isinstance(error, hub.HfHubHTTPError):
        status = getattr(error.response, "status_code", "?")
        return f"{place} answered with an error ({status}) about {repo}; try again later."
    if isinstance(error, OSError) and error.errno is not None and error.filename:
        return (
            f"{error.filename} could not be written: {error.strerror}. Free some space, or set "
            "HF_HOME to another disk."
        )
    return (
        f"{place} could not be reached. The part already downloaded is kept. Check the "
        "network and try again."
    )


def main(arguments: list[str]) -> int:
    """Do one errand; 0 if it went well."""
    for name in OFFLINE_NAMES:
        os.environ.pop(name, None)
    os.environ.setdefault("HF_HUB_DISABLE_XET", "1")  # plain ranges can be gone on with
    out, sys.stdout = sys.stdout, sys.stderr
    kind, repo, form = (*arguments, "")[:3]
    said, last = 0.0, ""

    def say(**what: Any) -> None:
        out.write(json.dumps(what) + "\n")
        out.flush()

    def tell(text: str, fraction: float | None) -> None:
        nonlocal said, last
        if text != last or time.monotonic() - said >= _EVERY_S:
            said, last = time.monotonic(), text
            say(progress=text, fraction=fraction)

    threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        match kind:
            case "search":
                say(facts=search(repo))
            case "look":
                say(facts=look(repo, form))
            case _ if repo == smollm2.NAME:
                say(facts=smollm2_wheel.get(tell))
            case _:
                say(facts=get(repo, tell, form))
    except Exception as error:  # the network fails in many ways
        bundled = repo == smollm2.NAME
        sentence = smollm2_wheel.sentence(error) if bundled else _sentence(repo, error)
        say(failed=sentence, details=f"{type(error).__name__}: {error}")
        return 1
    return 0


def _end_with_stdin() -> None:
    """Whoever asked is gone, or wants no more: leave at once, keeping what has arrived."""
    with contextlib.suppress(OSError):
        sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
