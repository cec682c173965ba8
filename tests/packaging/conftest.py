"""The set-up scripts as modules, without leaving their folder on the path."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

PACKAGING = Path(__file__).parents[2] / "packaging"
NAMES = (
    *("run", "test", "setup_env", "setup_messages", "system_parts", "debian_packages"),
    *("fetch_smollm2", "desktop_entry"),
)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Gives a script by its name, freshly imported."""
    monkeypatch.syspath_prepend(PACKAGING)
    kept = {name: sys.modules.pop(name) for name in NAMES if name in sys.modules}
    yield importlib.import_module
    for name in NAMES:
        sys.modules.pop(name, None)
    sys.modules.update(kept)


@pytest.fixture
def setup_env(script, tmp_path, monkeypatch):
    """setup_env, working on a checkout of its own in tmp_path."""
    module = script("setup_env")
    (tmp_path / "packaging").mkdir()
    for name in ("packaging/constraints.txt", "pyproject.toml"):
        (tmp_path / name).write_bytes((PACKAGING.parent / name).read_bytes())
    venv = tmp_path / ".venv"
    monkeypatch.setattr(module, "ROOT", str(tmp_path))
    monkeypatch.setattr(module, "VENV", str(venv))
    monkeypatch.setattr(module, "CONSTRAINTS", str(tmp_path / "packaging/constraints.txt"))
    monkeypatch.setattr(module, "_STAMP", str(venv / "stamp"))
    monkeypatch.setattr(module, "_UNFINISHED", str(venv / "unfinished"))
    monkeypatch.setattr(module, "data_folder", lambda: str(tmp_path / "data"))
    return module
