"""What a widget looks like on screen, as numbers."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QRect
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QWidget


def pixels(widget: QWidget, area: QRect | None = None) -> np.ndarray:
    """(height, width, 3) uint8 red, green, blue of a widget, or a part of it, as it is painted."""
    picture = widget.grab(area) if area is not None else widget.grab()
    image = picture.toImage().convertToFormat(QImage.Format.Format_RGB32)
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), -1, 4)
    return rows[:, : image.width(), 2::-1].copy()


def luminance(colours: np.ndarray) -> np.ndarray:
    """WCAG relative luminance, 0 to 1, of (…, 3) uint8 colours."""
    part = colours / 255.0
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return linear @ np.array([0.2126, 0.7152, 0.0722])


def contrasts(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """WCAG contrast, 1 to 21, of each pixel of the one to the same of the other."""
    a, b = luminance(first), luminance(second)
    return (np.maximum(a, b) + 0.05) / (np.minimum(a, b) + 0.05)
