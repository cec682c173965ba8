"""Where things are: the user's data folder, the models in it, the log, and the program's assets.

Standard library only; everything may import it. Nothing here makes a folder: who writes, makes it.
"""

import os
import sys
from pathlib import Path

__all__ = [
    "asset", "child_environment", "data_folder", "log_file", "models_folder", "trained_folder",
]  # fmt: skip

_NAME = "decoder-explorer"
_PACKAGE = Path(__file__).resolve().parent


def data_folder() -> Path:
    """The user's folder for models, autosaves and the log; $DECODER_EXPLORER_HOME moves it."""
    chosen = os.environ.get("DECODER_EXPLORER_HOME")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return _platform_data_folder() / _NAME


def models_folder() -> Path:
    """One folder per model, named as it is called on the command line: `smollm2`."""
    return data_folder() / "models"


def trained_folder() -> Path:
    """Where models go that were trained here and are opened in the window."""
    return data_folder() / "trained"


def log_file() -> Path:
    """Where details of errors go."""
    return data_folder() / "log.txt"


def child_environment() -> dict[str, str]:
    """The environment in which a child finds this very package, wherever it is started."""
    paths = [str(_PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def asset(*parts: str) -> Path:
    """A file or folder of assets/, in an installed wheel or a checkout.

    FileNotFoundError with a sentence if it is not there.
    """
    for root in (_PACKAGE / "assets", _PACKAGE.parent / "assets"):
        found = root.joinpath(*parts)
        if found.exists():
            return found
    name = "/".join(parts)
    raise FileNotFoundError(
        f"The program file assets/{name} is missing. Reinstall Decoder Explorer."
    )


def _platform_data_folder() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    xdg = os.environ.get("XDG_DATA_HOME", "")
    # The XDG rules say that a relative path is to be ignored.
    return Path(xdg) if os.path.isabs(xdg) else Path.home() / ".local" / "share"
