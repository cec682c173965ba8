"""Rules that hold for the set-up scripts and for what they install."""

import ast
import importlib
import subprocess
import sys
import tomllib
import types
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


def test_the_report_of_a_gpu_on_a_machine_without_one(capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    gpu_check = importlib.import_module("gpu_check")
    torch = types.SimpleNamespace(
        __version__="2.13.0",
        cuda=types.SimpleNamespace(is_available=lambda: False),
        backends=types.SimpleNamespace(mps=types.SimpleNamespace(is_available=lambda: False)),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(sys, "argv", ["gpu_check.py"])
    assert gpu_check.main() == 2
    assert "sees no GPU on this machine" in capsys.readouterr().err


def test_the_report_of_a_gpu_names_what_failed(capsys, monkeypatch):
    """The commands' answers are made up: a device that gives no numbers, and a clock that errs."""
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    gpu_check = importlib.import_module("gpu_check")
    checks = [
        {"name": "kernel_output", "passed": True, "measured": 2e-7, "tolerance": 1e-5},
        {"name": "same_on_cpu", "passed": False, "measured": None, "tolerance": 1e-3},
    ]
    step = {"chosen_id": 7, "raw_probability": 0.5, "forward_ms": 3.0}
    answers = {
        "check": {"passed": False, "checks": checks},
        "trace": {"steps": [step, {**step, "chosen_id": 8}]},
        "bench": {"ratios": {"decode_over_floor": 0.2}, "figures": {"peak_bytes": {"128": 5e6}}},
    }
    monkeypatch.setattr(gpu_check, "ask", lambda command, *rest: answers[command])
    assert gpu_check.report("tiny", "mps", ("float32",), no_bench=False) == 1
    said = capsys.readouterr().out
    assert "| FAILED | same_on_cpu | not finite | 0.001 |" in said
    assert "2 of 2 greedy tokens are the processor's" in said
    assert "the clocks do not wait for the GPU" in said
    assert "| peak_bytes, MB | 128 | 5 |" in said
    assert said.endswith("A CHECK FAILED.\n")
