"""The window under the clock: how soon it is there, how soon a step is painted, how long it hangs.

A real window on a real model, driven as a user would: the prompt read, then decode steps with
nobody at the mouse, which display is said, then as many while the mouse moves over the window
and its size changes, by which its gaps are.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QPointF, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QMouseEvent
from PySide6.QtWidgets import QApplication

from explorer.session.session import Session
from explorer.trace.request import Stops
from explorer.ui.offscreen.event_loop import run_until
from explorer.ui.window import Window

STEPS = 100
WORDS = "The quick brown fox jumps over the lazy dog while the rain stays mainly in the plain. " * 7
PATIENCE_MS = 150_000
_TICK_MS = 2
_SIZES = ((1280, 720), (1180, 700))


def measure(
    app: QApplication, window: Window, session: Session, model: str, began: float
) -> dict[str, Any]:
    """Milliseconds; `began`: when the process was asked for, by time.time().

    RuntimeError with one sentence if the model does not run.
    """
    window.resize(*_SIZES[0])
    window.show()
    _until(app, lambda: window.isVisible(), settle=True)
    painted = time.time()
    session.start_engine()
    session.open_model(model)
    session.set_prompt(WORDS)
    session.set_stops(Stops(end_tokens=False))
    session.step()
    _until(app, lambda: _steps(session) >= 1 or bool(session.state.error))
    if session.state.error or not _steps(session):
        raise RuntimeError(session.state.error or "The model did not answer in time.")
    first = time.time()
    _until(app, lambda: session.state.status.activity == "idle")
    _decode(app, session)
    _until(app, lambda: session.state.status.activity == "idle")
    trace = session.state.trace
    assert trace is not None
    laps = [session.stopwatch.lap(step) for step in trace.steps[2:]]
    shown = sorted(lap.display_ms for lap in laps if lap is not None and lap.display_ms is not None)
    return {
        "platform": QGuiApplication.platformName(),
        "start_to_window_ms": (painted - began) * 1e3,
        "start_to_first_token_ms": (first - began) * 1e3,
        "steps": len(laps),
        "steps_painted": len(shown),
        "step_to_painted_ms": statistics.median(shown) if shown else None,
        "step_to_painted_p95_ms": shown[len(shown) * 95 // 100] if shown else None,
        "longest_gap_ms": max(_gaps(app, window, session)),
    }


def _decode(app: QApplication, session: Session) -> None:
    wanted = _steps(session) + STEPS
    session.step(STEPS)
    _until(app, lambda: _steps(session) >= wanted or session.state.status.activity == "idle")


def _gaps(app: QApplication, window: Window, session: Session) -> list[float]:
    """Decodes while the mouse moves and the window changes size; ms between turns of the loop."""
    gaps: list[float] = [0.0]
    last = time.perf_counter()

    def tick() -> None:
        nonlocal last
        now = time.perf_counter()
        gaps.append((now - last) * 1e3)
        last = now

    moves = 0

    def move() -> None:
        nonlocal moves
        moves += 1
        _hover(app, window, moves)
        if moves % 40 == 0:
            window.resize(*_SIZES[moves // 40 % len(_SIZES)])

    timers = [_every(_TICK_MS, tick), _every(25, move)]
    _decode(app, session)
    for timer in timers:
        timer.stop()
    return gaps


def _hover(app: QApplication, window: Window, number: int) -> None:
    """The mouse moves on to another place of the window."""
    place = QPointF(
        window.width() * (0.35 + 0.6 * (number * 37 % 100) / 100),
        window.height() * (0.3 + 0.6 * (number * 53 % 100) / 100),
    )
    under = window.childAt(place.toPoint())
    if under is None:
        return
    local = QPointF(under.mapFrom(window, place.toPoint()))
    none = Qt.MouseButton.NoButton
    moved = QMouseEvent(
        QMouseEvent.Type.MouseMove, local, under.mapToGlobal(local), none, none,
        Qt.KeyboardModifier.NoModifier,
    )  # fmt: skip
    QApplication.sendEvent(under, moved)


def _every(interval_ms: int, act: Callable[[], None]) -> QTimer:
    timer = QTimer()
    timer.setTimerType(Qt.TimerType.PreciseTimer)
    timer.timeout.connect(act)
    timer.start(interval_ms)
    return timer


def _steps(session: Session) -> int:
    return len(session.state.trace.steps) if session.state.trace else 0


def _until(app: QApplication, done: Callable[[], bool], settle: bool = False) -> None:
    run_until(app, done, PATIENCE_MS)
    if settle:
        app.processEvents()
