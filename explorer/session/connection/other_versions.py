"""Where an engine on another machine has other versions of the libraries that decide numbers."""

from __future__ import annotations

import contextlib
import importlib.metadata
import sys
from collections.abc import Mapping

from explorer.figures.text.characters import elide, printable

_LONGEST = 20  # letters of a version


def difference(there: Mapping[str, str]) -> str:
    """What differs, as one sentence; empty if nothing does.  `there`: of the engine's greeting."""
    own = {name: _here(name) for name in there}
    names = [name for name in there if own[name] and own[name] != there[name]]
    if not names:
        return ""
    words = [
        f"{name} {elide(printable(there[name]), _LONGEST)} (here {own[name]})" for name in names
    ]
    return f"The engine's machine has {', '.join(words)}: numbers may differ a little."


def _here(name: str) -> str:
    if name == "python":
        return ".".join(map(str, sys.version_info[:3]))
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(name)
    return ""
