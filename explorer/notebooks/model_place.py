"""Where a script finds the model: a folder, a .gguf file in one, or a name on the Hub."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_HUB = re.compile(r"[/\\]models--([^/\\]+?)--([^/\\]+)[/\\]snapshots[/\\]")


@dataclass(frozen=True, slots=True)
class ModelPlace:
    """Python source that names the model; `is_gguf`: it names a GGUF_FILE in the folder, too."""

    assignment: str
    is_gguf: bool = False


def of(path: str, name: str) -> ModelPlace:
    """The place of a model that was opened from `path`; empty: whoever runs the script fills it in.

    A home folder is written as ~, so that no user's name is in it.
    """
    if not path:
        asked = "fill in: a folder, or a name on the Hugging Face Hub"
        return ModelPlace(f"MODEL = {name!r}  # {asked}\n")
    place, hub = Path(path), _HUB.search(path)
    if place.suffix.lower() == ".gguf" or place.is_file():
        return ModelPlace(f"MODEL = {_folder(place.parent)}\nGGUF_FILE = {place.name!r}\n", True)
    if hub:
        return ModelPlace(f'MODEL = "{hub[1]}/{hub[2]}"  # on the Hugging Face Hub\n')
    return ModelPlace(f"MODEL = {_folder(place)}\n")


def _folder(path: Path) -> str:
    home = Path.home()
    if path.is_relative_to(home) and path != home:
        return f"os.path.expanduser({'~/' + path.relative_to(home).as_posix()!r})"
    return repr(str(path))
