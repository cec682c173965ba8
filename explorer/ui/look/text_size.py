"""How large text is: small text beside the ordinary, and the least that a back row can read."""

from __future__ import annotations

from PySide6.QtGui import QFont
from PySide6.QtWidgets import QWidget

from explorer.ui.look.theme import unit

USUAL_LEAST_PX = 8
_least_px = USUAL_LEAST_PX


def set_least(px: int = USUAL_LEAST_PX) -> None:
    """From now on no text is smaller; without a number: as at the desk."""
    global _least_px
    _least_px = px


def least_px() -> int:
    """No text is smaller than this, in pixels."""
    return _least_px


def for_back_row() -> bool:
    """True in presenter mode: text is large, and a sentence wraps instead of being cut."""
    return _least_px > USUAL_LEAST_PX


def small_px(scale: float, px: float = 11) -> int:
    """What `px` pixels are at a zoom, in whole pixels."""
    return max(_least_px, round(px * scale))


def small_font(widget: QWidget, px: float = 11) -> QFont:
    """A widget's font at another size, which is `px` pixels at a zoom of 1."""
    font = QFont(widget.font())
    font.setPixelSize(small_px(unit(widget), px))
    return font
