"""One file over HTTP: a part that has arrived is gone on with, and the whole is checked."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from explorer.engine.errors import EngineError


def get(
    url: str,
    part: Path,
    name: str,
    size: int | None,
    sha256: str | None,
    arrived: Callable[[int], None],
    headers: Mapping[str, str] | None = None,
) -> None:
    """Make `part` the whole file; `arrived` hears how many bytes are there.

    EngineError, and the part is gone, if it is not of this size and hash; what the network raises.
    """
    from huggingface_hub.file_download import http_get

    held = part.stat().st_size if part.exists() else 0
    if size is not None and held > size:
        part.unlink()
        held = 0
    with part.open("ab") as file:
        http_get(url, file, resume_size=held, headers=dict(headers or {}), expected_size=size,
                 tqdm_class=_bar(arrived))  # fmt: skip
    whole = size is None or part.stat().st_size == size
    if whole and sha256 is not None:
        with part.open("rb") as file:
            whole = hashlib.file_digest(file, "sha256").hexdigest() == sha256
    if not whole:
        part.unlink()
        raise EngineError(f"{name} arrived damaged and was deleted. Download it again.")


def _bar(arrived: Callable[[int], None]) -> Any:
    """A progress bar for the library that shows nothing and tells how much is there."""
    base: Any = importlib.import_module("tqdm.std").tqdm

    class ReportingBar(base):
        def __init__(self, *args: Any, **named: Any) -> None:
            named.pop("name", None)
            super().__init__(*args, **{**named, "file": _Nowhere(), "disable": False})

        def update(self, n: float = 1) -> None:
            super().update(n)
            arrived(int(self.n))

    return ReportingBar


class _Nowhere:
    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass
