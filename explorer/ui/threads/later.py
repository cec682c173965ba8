"""Something to be done a moment later, by something that may be gone by then."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer


def later(owner: QObject, act: Callable[[], object], ms: int = 0) -> None:
    """Do it once, `ms` milliseconds from now, unless `owner` has been deleted.

    `QTimer.singleShot` would hold an owner that is deleted before, and all that it holds, for good.
    """
    timer = QTimer(owner)
    timer.setSingleShot(True)
    timer.timeout.connect(act)
    timer.timeout.connect(timer.deleteLater)
    timer.start(ms)
