"""The engine's process: reads requests, writes frames."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from explorer.engine import ranks
from explorer.engine.dispatcher import Dispatcher
from explorer.engine.frame_server import serve
from explorer.engine.kept_records import DrawAtlas, KeptRecords
from explorer.engine.machine import memory_limit
from explorer.trace.wire.framing import RawFrame
from explorer.trace.wire.messages import KEEPS_RECORDS, AnyRequest, Event

_VERSIONED = ("torch", "transformers", "tokenizers", "tiktoken", "safetensors", "numpy")


def versions() -> dict[str, str]:
    """Versions of the libraries that decide numbers, read without importing them."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in (*_VERSIONED, "decoder-explorer"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


class KeepingAnswers:
    """The dispatcher, behind what keeps queries and keys for a client on a slow line."""

    def __init__(
        self,
        say: Callable[[Event], None],
        pass_on: Callable[[RawFrame], None],
        draw_atlas: DrawAtlas | None,
    ) -> None:
        self._kept = KeptRecords(say, pass_on, draw_atlas)
        self._dispatcher = Dispatcher(self._kept.say, memory_limit.set_here, self._kept.pass_on)
        self.run = self._dispatcher.run

    def accept(self, request: AnyRequest) -> None:
        """Take a request from any thread; never waits for a pass."""
        if not self._kept.takes(request):
            self._dispatcher.accept(request)


def main(draw_atlas: DrawAtlas | None = None) -> NoReturn:
    """Serve one client over stdin and stdout until it says Quit or goes away.

    `draw_atlas` makes the pictures of all heads for a client that does not fetch all heads.
    """
    # Set before torch is imported: idle worker threads must not spin while sharing cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ["HF_HUB_OFFLINE"] = "1"
    if ranks.count() > 1:
        from explorer.engine import ranked_dispatcher

        ranked_dispatcher.serve_ranks(versions())
    serve(
        versions(),
        lambda say, pass_on: KeepingAnswers(say, pass_on, draw_atlas),
        features=(KEEPS_RECORDS,),
    )
