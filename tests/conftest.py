"""Options and fixtures of the whole suite."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import settings

from explorer.places import models_folder
from tests.elsewhere import server

# Threads gain nothing on tensors this small, and wait for one another where the cores are busy.
# The engine sets its own number when it loads a model.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-slow", action="store_true", help="also run tests that take minutes")
    parser.addoption("--run-big", action="store_true", help="also run tests that write gigabytes")


def pytest_configure(config: pytest.Config) -> None:
    """The same values at every run; with --run-slow many more, and others each time."""
    settings.register_profile("short", derandomize=True, deadline=None, max_examples=25)
    settings.register_profile("long", deadline=None, max_examples=2000, print_blob=True)
    settings.load_profile("long" if config.getoption("--run-slow") else "short")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what was not asked for or cannot run here; it is deselected, not skipped."""
    left_out = [name for name in ("slow", "big") if not config.getoption(f"--run-{name}")]
    if not any(models_folder().glob("smollm2/*.gguf")):
        left_out.append("smollm2")
    if server.program() is None and not os.environ.get("CI"):  # such a run must be complete
        left_out.append("ssh")
    dropped = [item for item in items if any(map(item.get_closest_marker, left_out))]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item not in dropped]


def pytest_collection_finish() -> None:
    """What the libraries hold stays to the end: no collection need look through it again."""
    gc.collect()
    gc.freeze()
