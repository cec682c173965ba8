"""Rules that hold for the set-up scripts and for what they install."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
NAMES = (
    *("run", "test", "setup_env", "setup_messages", "system_parts", "debian_packages"),
    *("fetch_smollm2", "desktop_entry"),
)
SHARED = [ROOT / "explorer" / name for name in ("__init__.py", "places.py", "smollm2.py")]
SCRIPTS = [*(ROOT / "packaging" / f"{name}.py" for name in NAMES), *SHARED]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def pins() -> dict[str, str]:
    lines = (ROOT / "packaging/constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pairs}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_an_old_python_can_read_it(path):
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_any_terminal_can_show_what_it_says(path):
    assert path.read_text(encoding="utf-8").isascii()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_it_needs_the_standard_library_only(path):
    allowed = sys.stdlib_module_names | set(NAMES) | {"explorer"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= allowed
        if isinstance(node, ast.ImportFrom):
            assert node.module.split(".")[0] in allowed


def test_a_quick_start_imports_nothing_slow():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import run, system_parts; "
        "run.setup_env.is_current(); "
        "print({'subprocess', 'shutil', 'tempfile', 'urllib', 'importlib.metadata'} "
        "& set(sys.modules))"
    )
    command = [sys.executable, "-I", "-S", "-c", code, str(ROOT / "packaging")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_packaging_is_no_package():
    assert not (ROOT / "packaging/__init__.py").exists()


def test_no_script_is_called_explorer():
    assert list(PROJECT["scripts"]) == ["decoder-explorer"]


def test_everything_needed_is_pinned_within_its_range():
    wanted = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"]
    for text in wanted:
        requirement = Requirement(text)
        version = pins()[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), text


def test_qt_is_the_release_that_keeps_its_references():
    assert pins()["pyside6-essentials"] == pins()["shiboken6"] == "6.11.3"
