"""The bridge: calls from any thread run in the owner's, in order, and never after it closed."""

from __future__ import annotations

import threading
import time

import pytest
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from explorer.ui.threads.bridge import Bridge
from tests.ui.waiting import settle


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
    settle()
    assert seen == [1]
    bridge.post(lambda: seen.append(2))
    bridge.close()
    bridge.post(lambda: seen.append(3))
    settle()
    assert seen == [1]


def test_the_mouse_gets_its_turn_between_long_calls(qapp: QApplication) -> None:
    bridge, loop = Bridge(), QEventLoop()
    seen: list[str] = []

    def long(name: str) -> None:
        until = time.monotonic() + 0.02
        while time.monotonic() < until:
            pass
        seen.append(name)

    tick = QTimer()
    tick.timeout.connect(lambda: seen.append("mouse"))
    tick.start(1)
    for name in "abc":
        bridge.post(lambda name=name: long(name))  # type: ignore[misc]
    bridge.post(loop.quit)
    loop.exec()
    assert [name for name in seen if name != "mouse"] == ["a", "b", "c"]
    assert "mouse" in seen[seen.index("a") : seen.index("b")]
    assert "mouse" in seen[seen.index("b") : seen.index("c")]


def test_a_call_that_fails_holds_up_none_after_it(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    bridge, loop = Bridge(), QEventLoop()
    told: list[BaseException] = []
    monkeypatch.setattr("sys.excepthook", lambda _kind, error, _where: told.append(error))

    def fail() -> None:
        raise ValueError("no")

    bridge.post(fail)
    bridge.post(loop.quit)
    QTimer.singleShot(5000, lambda: loop.exit(1))
    assert loop.exec() == 0
    assert [str(error) for error in told] == ["no"]


def test_with_nothing_to_do_no_turn_is_taken(qapp: QApplication) -> None:
    bridge = Bridge()
    bridge.post(lambda: None)
    settle()
    assert not bridge.busy
