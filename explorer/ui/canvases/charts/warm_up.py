"""Loads pyqtgraph before the first chart needs it, and after the window is on screen."""

from __future__ import annotations

import importlib
import threading

_PLOT = "explorer.ui.canvases.charts.plot"


def begin() -> None:
    """Import it in a thread of its own: in the window's it would hang for half a second.

    A chart that is seen before it is there waits for what is left.
    """
    threading.Thread(target=importlib.import_module, args=(_PLOT,), daemon=True).start()
