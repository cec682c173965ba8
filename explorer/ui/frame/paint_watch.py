"""Notices when all of a step is on screen, so that its display time can be told."""

from __future__ import annotations

import time

from PySide6.QtCore import QTimer

from explorer.session.session import Session
from explorer.ui.frame.docks import Docks

_QUIET_MS = 200  # nothing painted for so long: what is on screen is all there is to see


class PaintWatch:
    """Told of every painting of the window; asks the panels only while a step is waited for."""

    def __init__(self, session: Session, docks: Docks) -> None:
        self._session = session
        self._docks = docks
        self._last = 0.0  # when the window was last painted with a step still to come
        self._quiet = QTimer(docks)
        self._quiet.setSingleShot(True)
        self._quiet.setInterval(_QUIET_MS)
        self._quiet.timeout.connect(self._on_quiet)

    def on_painted(self) -> None:
        """The window has just painted what was to be painted."""
        if not self._session.stopwatch.waiting:
            return
        self._last = time.perf_counter()
        if self._docks.settled:
            self._quiet.stop()
            self._session.painted(self._last)
        else:
            self._quiet.start()

    def _on_quiet(self) -> None:
        """A panel may have found that nothing needs painting: then the last picture was it."""
        if not self._session.stopwatch.waiting:
            return
        if self._docks.settled:
            self._session.painted(self._last)
        else:
            self._quiet.start()
