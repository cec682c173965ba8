"""Python's cycle collector, run in Qt's thread and between events only.

Left to itself it runs in whichever thread happens to allocate.  In the thread that computes
figures it would destroy widgets there, which Qt does not survive; in a paint event it is a stall.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer

_EVERY_MS = 500


class GcTimer(QObject):
    """Collects in the thread that made it, for as long as it lives."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._limits = gc.get_threshold()
        self._frozen = False
        self._was_on = gc.isenabled()
        gc.disable()
        self._timer = QTimer(self)
        self._timer.timeout.connect(self.collect)
        self._timer.start(_EVERY_MS)

    def collect(self) -> int | None:
        """Collect the oldest generation that is due; its number, or None if none was."""
        if not self._frozen:
            # What is there once the program stands stays to its end: not worth looking at again.
            gc.freeze()
            self._frozen = True
        for generation in reversed(range(3)):
            if gc.get_count()[generation] > self._limits[generation]:
                gc.collect(generation)
                return generation
        return None

    def stop(self) -> None:
        """Leave the collector as it was found."""
        self._timer.stop()
        gc.unfreeze()
        if self._was_on:
            gc.enable()
