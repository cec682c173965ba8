"""Sends a process of its own to the Hub and passes on what it says."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from typing import IO, Any

from explorer import places
from explorer.engine import OFFLINE_NAMES, asked_offline
from explorer.engine.callbacks import Report, Stop
from explorer.engine.errors import BadInput, Cancelled, EngineError

_LOOK_S = 0.1  # between two looks at whether it is cancelled


def offline_reason() -> str:
    """Why nothing may be fetched, as one sentence; empty if it may."""
    if not asked_offline:
        return ""
    return (
        f"Offline mode is set ({', '.join(asked_offline)}), so nothing is downloaded; unset it and "
        "start the program again."
    )


def run(kind: str, repo: str, progress: Report, cancelled: Stop, form: str = "") -> dict[str, Any]:
    """Facts of `hub.search`, `look` or `get`; BadInput with a sentence, Cancelled at once."""
    if reason := offline_reason():
        raise BadInput(reason)
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "explorer.engine.library.hub", kind, repo, form],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=_environment(),
        text=True,
        encoding="utf-8",
    )
    assert child.stdout is not None
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    reader = threading.Thread(target=_read, args=(child.stdout, lines), daemon=True)
    reader.start()
    try:
        return _follow(lines, progress, cancelled)
    finally:
        child.kill()
        child.wait()
        reader.join()
        child.stdout.close()
        assert child.stdin is not None
        child.stdin.close()


def _follow(
    lines: queue.SimpleQueue[str | None], progress: Report, cancelled: Stop
) -> dict[str, Any]:
    while True:
        if cancelled():
            raise Cancelled
        try:
            line = lines.get(timeout=_LOOK_S)
        except queue.Empty:
            continue
        if line is None:
            raise EngineError("The download stopped unexpectedly. Start it again to resume it.")
        said = json.loads(line)
        if "facts" in said:
            return dict(said["facts"])
        if "failed" in said:
            raise BadInput(str(said["failed"]), str(said.get("details", "")))
        progress(str(said["progress"]), said["fraction"])


def _read(stream: IO[str], lines: queue.SimpleQueue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _environment() -> dict[str, str]:
    """This process' own, but for what keeps it off the network."""
    whole = places.child_environment()
    kept = {name: value for name, value in whole.items() if name not in OFFLINE_NAMES}
    return {**kept, "PYTHONIOENCODING": "utf-8"}
