"""The engine ends with its parent, though nothing in it gets its turn; and has a memory limit."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import ends

ROOT = Path(__file__).parents[3]
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="as Linux does it")
# A child that keeps the interpreter's lock for minutes; its parent is killed once it does.
BUSY = """
import sys
from explorer.engine.machine import parent_watch
parent_watch.end_with()
print("busy", flush=True)
sum(range(10 ** 12))
"""
PARENT = """
import os, signal, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
LIMIT = """
import re
from explorer.engine.machine import memory_limit, system_memory
system_memory.available_bytes = lambda: 600 << 20
memory_limit.set_here()
try:
    kept = [bytearray(100 << 20) for _ in range(20)]
except MemoryError as error:
    assert memory_limit.is_reached(error)
    print("refused")
import torch
system_memory.available_bytes = lambda: 600 << 20
memory_limit.set_here()
try:
    torch.ones(1 << 30)
except RuntimeError as error:
    assert memory_limit.is_reached(error), error
    print("refused")
system_memory.available_bytes = lambda: 8 << 30
memory_limit.set_here()
print(int(torch.ones(1 << 24).sum()))
"""


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@linux
def test_a_child_that_never_gives_the_lock_back_ends_with_its_parent() -> None:
    done = run(PARENT, BUSY)  # ends once nobody holds its output any more: the child neither
    pid = int(done.stdout)
    try:
        assert ends(pid), f"process {pid} outlived its parent"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@linux
def test_what_would_take_more_than_is_free_is_refused_and_what_fits_is_not() -> None:
    done = run(LIMIT)
    assert done.stdout.split() == ["refused", "refused", str(1 << 24)], done.stderr
