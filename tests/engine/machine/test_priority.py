"""Only the thread that gives way does."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from explorer.engine.machine.priority import give_way


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a priority on Linux alone")
def test_a_thread_gives_way_and_those_it_starts_with_it() -> None:
    def mine() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    found = []

    def work() -> None:
        give_way()
        inner = threading.Thread(target=lambda: found.append(mine()))
        inner.start()
        inner.join()
        found.append(mine())

    before = mine()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [max(before, 10)] * 2
    assert mine() == before
