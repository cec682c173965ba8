"""The llama engine's process: reads requests, writes frames."""

from __future__ import annotations

import logging
import os
from typing import NoReturn

from explorer.engine.errors import EngineError
from explorer.engine.frame_server import serve
from explorer.engine.machine import memory_limit
from explorer.llama_engine.binding.library import PACKAGE, installed_version, library
from explorer.llama_engine.dispatcher import LlamaDispatcher

_log = logging.getLogger(__name__)


def main() -> NoReturn:
    """Serve one client over stdin and stdout until it says Quit or goes away."""
    os.environ["GGML_NO_BACKTRACE"] = "1"  # a failed assertion would start a debugger
    serve(
        {PACKAGE: installed_version()},
        lambda say, _: LlamaDispatcher(say, _limit_memory),
        _preload,
    )


def can_use_gpu() -> bool:
    """True if layers can be put on a GPU; False also where there is no llama.cpp."""
    try:
        return library().can_use_gpu
    except EngineError:
        return False


def _limit_memory() -> None:
    """But not where a GPU may be used: its driver maps far more than it uses."""
    if not can_use_gpu():
        memory_limit.set_here()


def _preload() -> None:
    """Open llama.cpp while nothing is asked yet; where that fails, the first Load says so."""
    try:
        library()
    except EngineError as error:
        _log.warning("%s %s", error.sentence, error.details)
