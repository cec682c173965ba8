"""Whether llama.cpp can put layers on a GPU: asked of its own process until it answers."""

from __future__ import annotations

import functools
import importlib.util
import subprocess

from explorer import places
from explorer.engine.relay import llama_process
from explorer.engine.relay.relay import PACKAGE

SECONDS = 30.0  # for an answer


def can_use_gpu() -> bool:
    """False also where llama.cpp is missing; where it did not answer, it is asked again."""
    if importlib.util.find_spec(PACKAGE) is None:
        return False
    try:
        return ask()
    except (OSError, subprocess.SubprocessError):
        return False


@functools.cache  # answers, never failures
def ask() -> bool:
    """What it answers; OSError or SubprocessError where it does not."""
    done = subprocess.run(
        (*llama_process.COMMAND, "--can-use-gpu"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=places.child_environment(),
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        timeout=SECONDS,
        check=True,
    )
    return done.stdout.strip() == b"yes"
