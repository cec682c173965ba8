"""Runs a notebook's code cells in order, in one process of their own, as a kernel would."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

_IN_ORDER = """
import json, sys
names = {"__name__": "__main__"}
for number, source in enumerate(json.loads(sys.stdin.read())):
    exec(compile(source, f"cell {number}", "exec"), names)
"""


def printed(notebook: bytes, folder: Path, *, isolated: bool = True) -> str:
    """What the cells print; `isolated`: without this checkout on Python's path."""
    document = json.loads(notebook)
    require_valid(document)
    sources = ["".join(c["source"]) for c in document["cells"] if c["cell_type"] == "code"]
    command = [sys.executable, *(["-I"] if isolated else []), "-W", "error", "-c", _IN_ORDER]
    done = subprocess.run(
        command, input=json.dumps(sources), capture_output=True, text=True, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def require_valid(document: dict[str, Any]) -> None:
    """What nbformat 4.5 asks for."""
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    assert isinstance(document["metadata"], dict)
    names = [cell["id"] for cell in document["cells"]]
    assert len(set(names)) == len(names)
    for cell in document["cells"]:
        assert isinstance(cell["metadata"], dict)
        assert all(isinstance(line, str) for line in cell["source"])
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
        else:
            assert cell["cell_type"] == "markdown"
