"""Work off the window's thread: newest wins, stale is dropped, closing is safe at any time."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication, QWidget

from explorer.ui.threads import worker as workers
from explorer.ui.threads.worker import TURN, Worker
from tests.ui.waiting import settle, wait_until


@pytest.fixture
def worker(qapp: QApplication) -> Iterator[Worker]:
    owner = QObject()
    worker = Worker(owner)
    yield worker
    worker.close()


def test_the_result_arrives_in_the_windows_thread(worker: Worker) -> None:
    seen: list[tuple[int, threading.Thread, threading.Thread]] = []
    here = threading.current_thread()
    worker.ask(
        "map",
        lambda: (6 * 7, threading.current_thread()),
        lambda answer: seen.append((*answer, threading.current_thread())),
    )
    wait_until(lambda: bool(seen))
    value, worked_in, delivered_in = seen[0]
    assert value == 42
    assert worked_in is not here
    assert delivered_in is here
    assert not worker.busy


def test_the_newest_request_of_a_lane_wins(worker: Worker) -> None:
    started, release = threading.Event(), threading.Event()
    seen: list[object] = []

    def slow() -> str:
        started.set()
        release.wait(10)
        return "stale"

    worker.ask("map", slow, seen.append)
    assert started.wait(10)
    for number in range(50):
        worker.ask("map", lambda n=number: n, seen.append)  # type: ignore[misc]
    release.set()
    wait_until(lambda: not worker.busy)
    assert seen == [49]


def test_requests_that_were_overtaken_are_never_begun(worker: Worker) -> None:
    started, release = threading.Event(), threading.Event()
    begun: list[int] = []

    def block() -> None:
        started.set()
        release.wait(10)

    worker.ask("other", block, lambda _: None)
    assert started.wait(10)
    for number in range(5):
        worker.ask("map", lambda n=number: begun.append(n), lambda _: None)  # type: ignore[misc]
    release.set()
    wait_until(lambda: not worker.busy)
    assert begun == [4]


def test_lanes_do_not_disturb_each_other(worker: Worker) -> None:
    seen: dict[str, int] = {}
    worker.ask("map", lambda: 1, lambda value: seen.update(map=value))
    worker.ask("atlas", lambda: 2, lambda value: seen.update(atlas=value))
    wait_until(lambda: len(seen) == 2)
    assert seen == {"map": 1, "atlas": 2}


def test_a_generator_answers_in_parts_and_lets_others_through(worker: Worker) -> None:
    worked: list[object] = []
    seen: list[int] = []
    asked = threading.Event()

    def parts() -> Iterator[int]:
        for number in range(100):
            worked.append(number)
            yield number
            asked.wait(10)

    worker.ask("atlas", parts, seen.append)
    wait_until(lambda: bool(seen))
    worker.ask("map", lambda: worked.append("map"), lambda _: None)
    asked.set()
    wait_until(lambda: not worker.busy)
    assert worked.index("map") < 5, "a short request need not wait for a long one"
    assert seen[0] == 0
    assert seen[-1] == 99, "the last answer always arrives"
    assert seen == sorted(set(seen))


def test_a_turn_is_given_without_an_answer(worker: Worker) -> None:
    seen: list[str] = []

    def long() -> Iterator[object]:
        worker_began.set()
        other_waits.wait(10)
        yield TURN
        yield "long"

    worker_began, other_waits = threading.Event(), threading.Event()
    worker.ask("atlas", long, seen.append)
    assert worker_began.wait(10)
    worker.ask("map", lambda: "short", seen.append)
    other_waits.set()
    wait_until(lambda: len(seen) == 2)
    assert seen == ["short", "long"]


def test_a_dropped_generator_ends(worker: Worker) -> None:
    ended = threading.Event()
    first: list[int] = []

    def endless() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            ended.set()

    worker.ask("atlas", endless, first.append)
    wait_until(lambda: bool(first))
    worker.drop("atlas")
    assert ended.wait(10)
    count = len(first)
    settle()
    assert len(first) == count


def test_what_goes_wrong_reaches_whoever_asked(worker: Worker) -> None:
    errors: list[Exception] = []

    def broken() -> None:
        raise ValueError("Layer 3 has no attention map.")

    worker.ask("map", broken, lambda _: None, errors.append)
    wait_until(lambda: bool(errors))
    assert str(errors[0]) == "Layer 3 has no attention map."
    assert not worker.busy


@pytest.mark.parametrize("how", ["close", "delete the owner"])
def test_nothing_arrives_after_the_end(qapp: QApplication, how: str) -> None:
    owner = QWidget()
    worker = Worker(owner)
    started, release, finished = threading.Event(), threading.Event(), threading.Event()
    seen: list[object] = []

    def slow() -> int:
        started.set()
        release.wait(10)
        return 1

    def marker() -> None:
        finished.set()

    worker.ask("map", slow, seen.append)
    assert started.wait(10)
    if how == "close":
        worker.close()
        worker.close()
    else:
        owner.deleteLater()
        QApplication.sendPostedEvents(owner, QEvent.Type.DeferredDelete.value)
    other = QObject()
    witness = Worker(other)
    witness.ask("map", marker, lambda _: None)
    release.set()
    wait_until(finished.is_set)
    settle()
    witness.close()
    assert seen == []
    assert not worker.busy
    worker.ask("map", lambda: 2, seen.append)
    assert not worker.busy


@pytest.mark.parametrize("how", ["done", "failed", "dropped"])
def test_what_a_request_holds_is_let_go_in_the_windows_thread(worker: Worker, how: str) -> None:
    """The last reference to a widget is often the request's own: only Qt's thread may end it."""
    ended: list[threading.Thread] = []
    started, release = threading.Event(), threading.Event()

    class Held:
        def __del__(self) -> None:
            ended.append(threading.current_thread())

    def request(held: Held) -> None:
        def work() -> Held:
            started.set()
            release.wait(10)
            if how == "failed":
                raise ValueError("no")
            return held

        worker.ask("map", work, lambda _: held, lambda _: held)

    request(Held())
    assert started.wait(10)
    if how == "dropped":
        worker.drop("map")
    release.set()
    wait_until(lambda: bool(ended))
    assert ended == [threading.main_thread()]


def test_the_thread_ends_with_the_last_worker_and_starts_again(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A thread of its own: a worker that another test left keeps the shared one alive.
    monkeypatch.setattr(workers, "_thread", type(workers._thread)())
    before = set(threading.enumerate())

    def alive() -> list[threading.Thread]:
        return [t for t in threading.enumerate() if t.name == "figures" and t not in before]

    owner = QObject()
    for _ in range(3):
        worker = Worker(owner)
        seen: list[int] = []
        worker.ask("map", lambda: 1, seen.append)
        wait_until(lambda seen=seen: bool(seen))  # type: ignore[misc]
        threads = alive()
        worker.close()
        for thread in threads:
            thread.join(10)
        assert not alive()


def test_what_follows_a_slider_is_shown_on_the_way_and_ends_with_the_newest(
    worker: Worker,
) -> None:
    """Each move asks again before the last answer is there: some must be shown nevertheless."""
    started, release = threading.Event(), threading.Event()
    seen: list[object] = []
    failed: list[Exception] = []

    def slow() -> str:
        started.set()
        release.wait(10)
        return "first"

    worker.follow("chart", slow, seen.append, failed.append)
    assert started.wait(10)
    for number in range(50):
        worker.follow("chart", lambda n=number: n, seen.append, failed.append)  # type: ignore[misc]
    release.set()
    wait_until(lambda: not worker.busy)
    assert seen == ["first", 49]
    worker.follow("chart", lambda: 1 / 0, seen.append, failed.append, at_once=True)
    assert [type(error) for error in failed] == [ZeroDivisionError]


def test_a_lane_that_is_dropped_forgets_what_waited(worker: Worker) -> None:
    started, release = threading.Event(), threading.Event()
    seen: list[object] = []
    worker.follow("chart", lambda: (started.set(), release.wait(10)), seen.append, seen.append)
    assert started.wait(10)
    worker.follow("chart", lambda: "next", seen.append, seen.append)
    worker.drop("chart")
    release.set()
    worker.ask("chart", lambda: "after", seen.append)
    wait_until(lambda: bool(seen))
    assert seen == ["after"]
