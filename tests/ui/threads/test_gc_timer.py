"""The cycle collector runs in Qt's thread, so that no widget is destroyed in another one."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication, QWidget

from explorer.ui.threads.gc_timer import GcTimer


@pytest.fixture
def garbage(qapp: QApplication) -> Iterator[GcTimer]:
    garbage = GcTimer()
    garbage.collect()  # freezes what is there
    yield garbage
    garbage.stop()
    garbage.deleteLater()


def _forgotten() -> weakref.ref[QWidget]:
    """A widget in a cycle that nobody holds."""
    widget = QWidget()
    widget.itself = widget  # type: ignore[attr-defined]
    return weakref.ref(widget)


def _allocate() -> list[list[int]]:
    """Enough for the collector to come by many times, were it on."""
    return [[n] for n in range(20_000)]


def test_another_threads_allocations_destroy_no_widget(garbage: GcTimer) -> None:
    reference = _forgotten()
    thread = threading.Thread(target=_allocate)
    thread.start()
    thread.join()
    assert reference() is not None


def test_what_was_forgotten_goes_in_qts_thread(qapp: QApplication, garbage: GcTimer) -> None:
    reference = _forgotten()
    kept = _allocate()
    assert garbage.collect() is not None
    assert reference() is None
    assert kept


def test_nothing_is_collected_when_nothing_is_due(garbage: GcTimer) -> None:
    gc.collect()
    assert garbage.collect() is None


def test_python_gets_its_collector_back(qapp: QApplication) -> None:
    gc.enable()
    garbage = GcTimer()
    assert not gc.isenabled()
    garbage.stop()
    assert gc.isenabled()
    gc.disable()  # as the suite has it
