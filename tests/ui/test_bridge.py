"""The bridge: calls from any thread run in the owner's, in order, and never after it closed."""

from __future__ import annotations

import threading

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from explorer.ui.bridge import Bridge


def test_calls_run_in_the_owners_thread_in_order(qapp: QApplication) -> None:
    bridge, loop = Bridge(), QEventLoop()
    seen: list[tuple[int, int]] = []
    owner = threading.get_ident()

    def work() -> None:
        for number in range(100):
            bridge.post(lambda n=number: seen.append((n, threading.get_ident())))  # type: ignore[misc]
        bridge.post(loop.quit)

    thread = threading.Thread(target=work)
    QTimer.singleShot(0, thread.start)
    loop.exec()
    thread.join()
    assert seen == [(number, owner) for number in range(100)]


def test_nothing_runs_at_once_nor_after_the_end(qapp: QApplication) -> None:
    bridge = Bridge()
    seen: list[int] = []
    bridge.post(lambda: seen.append(1))
    assert seen == []
    qapp.processEvents()
    assert seen == [1]
    bridge.post(lambda: seen.append(2))
    bridge.close()
    bridge.post(lambda: seen.append(3))
    qapp.processEvents()
    assert seen == [1]
