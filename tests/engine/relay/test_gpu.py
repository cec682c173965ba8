"""Whether llama.cpp can use a GPU: what it answered is kept, that it did not answer is not."""

from __future__ import annotations

import subprocess

import pytest

from explorer.engine.relay import gpu


def test_an_answer_that_did_not_come_in_time_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends: list[Exception | bytes] = [
        subprocess.TimeoutExpired("llama", gpu.SECONDS),
        subprocess.CalledProcessError(1, "llama"),
        b"yes\n",
    ]

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        end = ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return subprocess.CompletedProcess(command, 0, end)

    monkeypatch.setattr(gpu, "PACKAGE", "json")  # one that is installed
    monkeypatch.setattr(subprocess, "run", run)
    gpu.ask.cache_clear()
    try:
        assert [gpu.can_use_gpu() for _ in range(4)] == [False, False, True, True]
    finally:
        gpu.ask.cache_clear()
