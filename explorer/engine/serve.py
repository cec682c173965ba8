"""The engine's process: reads requests, writes frames."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import sys
from typing import NoReturn

from explorer.engine import ranks
from explorer.engine.dispatcher import Dispatcher
from explorer.engine.frame_server import serve
from explorer.engine.machine import memory_limit

_VERSIONED = ("torch", "transformers", "tokenizers", "tiktoken", "safetensors", "numpy")


def versions() -> dict[str, str]:
    """Versions of the libraries that decide numbers, read without importing them."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in (*_VERSIONED, "decoder-explorer"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def main() -> NoReturn:
    """Serve one client over stdin and stdout until it says Quit or goes away."""
    # Set before torch is imported: idle worker threads must not spin while sharing cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ["HF_HUB_OFFLINE"] = "1"
    if ranks.count() > 1:
        from explorer.engine import ranked_dispatcher

        ranked_dispatcher.serve_ranks(versions())
    serve(versions(), lambda say, pass_on: Dispatcher(say, memory_limit.set_here, pass_on))
