"""Pictures without the empty room around what is painted."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QImage

_LEFT_OVER = 6  # pixels of empty room that stay, before the scale of the screen


def trimmed(image: QImage) -> QImage:
    """What is painted, with a narrow edge; a picture of one colour stays as it is."""
    plain = image.convertToFormat(QImage.Format.Format_ARGB32)
    width, height = plain.width(), plain.height()
    pixels = np.frombuffer(plain.constBits(), np.uint32).reshape(height, width)
    painted = pixels != pixels[0, 0]
    rows, columns = np.flatnonzero(painted.any(1)), np.flatnonzero(painted.any(0))
    if not rows.size:
        return image
    edge = round(_LEFT_OVER * image.devicePixelRatio())
    first = QPoint(int(columns[0]) - edge, int(rows[0]) - edge)
    last = QPoint(int(columns[-1]) + edge, int(rows[-1]) + edge)
    made = plain.copy(QRect(first, last).intersected(plain.rect()))
    made.setDevicePixelRatio(image.devicePixelRatio())
    return made
