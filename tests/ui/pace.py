"""How much slower the machine is right now than where the limits of speed were set.

Processor time depends on what else runs where others share a core's caches, or the core itself
belongs to a virtual machine: threefold was seen.  A fixed piece of work, of the same kinds as a
step of the window, tells by how much.
"""

from __future__ import annotations

import statistics
from time import thread_time

import numpy as np
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QImage, QPainter

QUIET_MS = 3.2  # of `_work`, on the machine of the limits with nothing else running


def slowness() -> float:
    """1 on that machine when quiet; 2 where the same work takes twice the processor time."""
    return max(1.0, statistics.median(_work() for _ in range(9)) / QUIET_MS)


def _work() -> float:
    """Milliseconds of this thread for a little of all that a step does."""
    began = thread_time()
    image = QImage(400, 300, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.white)
    painter = QPainter(image)
    for row in range(60):
        painter.drawText(QPointF(4, 4 + 5 * row), f"token {row}: {row / 60:.3f}")
    painter.end()
    found = {str(number): (number, number * 0.5) for number in range(6_000)}
    values = np.random.default_rng(0).standard_normal(40_000)
    order = np.argsort(values)
    assert found
    assert len(order) == len(values)
    return 1000 * (thread_time() - began)
