"""Composition root of the desktop program.  The window is on screen before anything heavy loads.

`main` is what `decoder-explorer` calls; `python -m explorer.app --pictures FOLDER FILE.dxt` takes
pictures of a saved session, also where there is no screen; `--pace MODEL BEGAN` measures the
window for `decoder-explorer bench`.
"""

from __future__ import annotations

import importlib
import logging
import os
import shlex
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from explorer import places
from explorer.ui.canvases.charts import warm_up
from explorer.ui.offscreen import display

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from explorer.lessons.lesson import Lesson
    from explorer.session.session import Session
    from explorer.ui.window import Window

_log = logging.getLogger("explorer")


def main(
    target: str | None,
    prompt: str | None,
    engine_command: str | None,
    lesson: Lesson | None = None,
    form: str = "",
) -> int:
    """Show the window until it is closed; 2 with one sentence on stderr if none can be shown.

    `form`: how to open a .gguf file, see `request.Form`.
    """
    problem = display.problem() or _bindings_problem()
    if problem:
        return _refuse(problem)
    _start_log()
    app, window, session, close = compose(engine_command)
    _catch_surprises(window, session)
    _close_on_signals(app, window)
    if lesson is None:  # a lesson points at all parts of the window
        window.preferences.begin_simply()
    window.show()

    def begin() -> None:
        """Once the first picture of the window is on screen."""
        warm_up.begin()
        session.start_engine()
        if prompt is not None:
            session.set_prompt(prompt)
        if lesson is None:
            window.files.open_first(target, form)
        else:
            window.lessons.begin(lesson)
        session.saving.find_kept(window.offer_kept)

    _after_first_paint(window, begin)
    code = app.exec()
    close()
    return code


def compose(
    engine_command: str | None, settings: Path | None = None
) -> tuple[QApplication, Window, Session, Callable[[], None]]:
    """The application and its window, not yet shown; the engine is not yet started.

    `settings` takes the place of the user's own file.  The last item ends the engine and
    everything that runs in the background.
    """
    from PySide6.QtGui import QGuiApplication, QIcon
    from PySide6.QtWidgets import QApplication

    from explorer.session.connection.chosen_engine import ChosenEngine
    from explorer.session.session import Session
    from explorer.ui.access.focus_ring import FocusRings
    from explorer.ui.access.shortcut_guard import ShortcutGuard
    from explorer.ui.look.appearance import Appearance
    from explorer.ui.settings.settings import Settings
    from explorer.ui.threads.bridge import Bridge
    from explorer.ui.threads.gc_timer import GcTimer
    from explorer.ui.window import Window

    # A painter waits this long whenever another thread runs Python; 5 ms, the usual, are felt.
    sys.setswitchinterval(0.001)
    QGuiApplication.setDesktopFileName("decoder-explorer")
    app = QApplication.instance() or QApplication(["decoder-explorer"])
    assert isinstance(app, QApplication)
    app.setApplicationName("Decoder Explorer")
    app.setWindowIcon(QIcon(str(places.asset("decoder-explorer.svg"))))
    ShortcutGuard(app)
    FocusRings(app)
    garbage = GcTimer(app)
    memory = Settings(settings)
    look = Appearance(app, memory, app, dressed=False)
    bridge = Bridge(app)
    command = engine_command or memory.chosen_engine()
    session = Session(ChosenEngine(_words(command)), bridge.post)
    window = Window(session, look, memory)
    # Under a style sheet every addWidget polishes its whole subtree again: half of the start.
    look.dress()

    def close() -> None:
        session.close()
        bridge.close()
        garbage.stop()

    return app, window, session, close


def _words(command: str) -> tuple[str, ...]:
    """Of a command line; none if it is damaged, which only a file of settings can be."""
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return ()


def _after_first_paint(window: Window, begin: Callable[[], None]) -> None:
    from PySide6.QtCore import QTimer

    # A timer of 0 comes after the events that are waiting: showing and painting.
    QTimer.singleShot(0, lambda: QTimer.singleShot(0, begin))


def _start_log() -> None:
    """Details go to a file; a windowed build has no stderr at all."""
    from explorer.session.connection.log import RotatingLog

    log = RotatingLog(places.log_file())

    class ToFile(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log.write((self.format(record) + "\n").encode("utf-8", "backslashreplace"))

    handler = ToFile()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)


def _catch_surprises(window: Window, session: Session) -> None:
    """What no code foresaw: details to the log, one sentence to the window."""
    words = window.tr(
        "An unexpected error occurred. Your run is still here. Open the log for details."
    )

    def on_exception(kind: type[BaseException], value: BaseException, trace: object) -> None:
        _log.error("%s", "".join(traceback.format_exception(value)))
        if session.state.error != words:  # the same again and again must not change the state
            session.report(words)

    sys.excepthook = on_exception
    threading.excepthook = lambda a: _log.error(
        "in thread %s: %s",
        a.thread and a.thread.name,
        "".join(traceback.format_exception(a.exc_value)) if a.exc_value else a.exc_type,
    )


def _close_on_signals(app: QApplication, window: Window) -> None:
    """Ctrl-C, kill and a terminal that closes end the program in good order, without a question.

    An unsaved run is offered at the next start.  Qt's loop alone would not see the signals.
    """
    import signal
    import socket

    from PySide6.QtCore import QSocketNotifier

    inner, outer = socket.socketpair()
    inner.setblocking(False)
    outer.setblocking(False)
    signal.set_wakeup_fd(outer.fileno())
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # Windows has no hang-up
            signal.signal(getattr(signal, name), lambda *_: None)
    notifier = QSocketNotifier(inner.fileno(), QSocketNotifier.Type.Read, app)

    def close() -> None:
        inner.recv(64)
        window.end()
        app.quit()  # also from a dialog that waits for an answer

    def stop() -> None:
        signal.set_wakeup_fd(-1)
        notifier.setEnabled(False)
        outer.close()
        inner.close()

    notifier.activated.connect(close)
    app.aboutToQuit.connect(stop)


def _import_before_qt() -> None:
    """What needs no Qt: once PySide6 is there it reads the source of every module imported."""
    for name in (
        "session.connection.remote",
        "session.session",
        "session.saving.recovery",
        "figures.attention.head_means",
    ):
        importlib.import_module(f"explorer.{name}")


def _bindings_problem() -> str:
    """PySide6 6.12 kills the process on Python 3.10 and 3.11: each void call drops a None."""
    _import_before_qt()
    from PySide6.QtCore import QObject

    before = sys.getrefcount(None)
    thing = QObject()
    for _ in range(64):
        thing.setObjectName("x")
    if sys.getrefcount(None) > before - 48:
        return ""
    return (
        "This PySide6 does not work with this Python; "
        'install another one: pip install "PySide6-Essentials<6.12".'
    )


def _refuse(sentence: str) -> int:
    from explorer.figures.text.sentences import fitting

    if sys.stderr is not None:
        print(fitting(sentence), file=sys.stderr)
    return 2


def _pictures(arguments: Sequence[str]) -> int:
    if len(arguments) != 3 or arguments[0] != "--pictures":
        return _refuse("Use: python -m explorer.app --pictures FOLDER FILE.dxt")
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    problem = display.problem() or _bindings_problem()
    if problem:
        return _refuse(problem)
    from explorer.ui.offscreen import screenshots

    with tempfile.TemporaryDirectory() as scratch:
        app, window, session, close = compose(None, Path(scratch) / "settings.ini")
        try:
            names = screenshots.take(app, window, session, Path(arguments[1]), Path(arguments[2]))
        except screenshots.PictureError as error:
            return _refuse(str(error))
        finally:
            close()
    print(*names, sep="\n")
    return 0


def _pace(model: str, began: str) -> int:
    """Measures the window on `model`, in a home of its own; prints one JSON object."""
    if display.problem():
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    problem = display.problem() or _bindings_problem()
    if problem:
        return _refuse(problem)
    import json

    with tempfile.TemporaryDirectory() as scratch:
        app, window, session, close = compose(None, Path(scratch) / "settings.ini")
        from explorer.ui.offscreen import window_bench

        try:
            found = window_bench.measure(app, window, session, model, float(began))
        except RuntimeError as error:
            return _refuse(str(error))
        finally:
            close()
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(_pace(*given[1:]) if given[:1] == ["--pace"] and len(given) == 3 else _pictures(given))
