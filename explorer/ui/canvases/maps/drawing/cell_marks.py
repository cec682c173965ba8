"""Marks on cells that are cut or allowed: a cross, a ring, boxed where only the next run has it.

What a mark says is in its shape, so that it shows on any colour and to any eye.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QImage, QPainter, QPen, QPixmap

from explorer.figures.attention.strokes import (
    ALLOWED_NEXT,
    ALLOWED_NOW,
    CUT_NEXT,
    CUT_NOW,
    RESTORED_NEXT,
    DrawnMask,
)
from explorer.figures.drawing.map_viewport import CellView
from explorer.ui.canvases.opaque import painter_of
from explorer.ui.look.theme import Theme

KINDS = {
    "cut": CUT_NOW,
    "allowed": ALLOWED_NOW,
    "cut-next": CUT_NEXT,
    "allowed-next": ALLOWED_NEXT,
    "restored-next": RESTORED_NEXT,
}
_GLYPHS_FROM = 8  # pixels per cell from which each has a mark of its own
_TILE = 7  # pixels of the pattern of smaller cells
LEAST = 5  # pixels that a mark takes each way, however small its cell
_LOOKED_AT = 512  # places each way that are looked through for kinds
_BOXED = (CUT_NEXT, ALLOWED_NEXT, RESTORED_NEXT)


def paint_marks(
    painter: QPainter, drawn: QRectF, view: CellView, mask: DrawnMask, theme: Theme, ratio: float
) -> frozenset[str]:
    """Mark the cells in view; which kinds there are."""
    if mask.empty or not view.rows:
        return frozenset()
    stride = max(1, int(1 / (view.scale * ratio)))
    queries = _seen(view.top, view.drawn_height / view.scale, view.rows)
    keys = _seen(view.left, view.drawn_width / view.scale, view.columns)
    states = mask.states(queries, keys, stride)
    kinds = frozenset(name for name, state in KINDS.items() if (states == state).any())
    if not kinds:
        return kinds
    painter.save()
    painter.setClipRect(drawn)
    if view.scale >= _GLYPHS_FROM:
        corner = QPointF(drawn.left() + view.x_of(keys[0]), drawn.top() + view.y_of(queries[0]))
        _paint_glyphs(painter, corner, view.scale, states, theme)
    else:
        image = _patterned(states, view, queries[0], keys[0], stride, theme, ratio)
        painter.drawImage(drawn.topLeft(), image)
    painter.restore()
    return kinds


def kinds_of(mask: DrawnMask | None, queries: int, keys: int) -> frozenset[str]:
    """Which kinds of marks a map of so many cells has, in view or not."""
    if mask is None or mask.empty or not queries:
        return frozenset()
    states = mask.states((0, queries), (0, keys), -(-max(queries, keys) // _LOOKED_AT))
    return frozenset(name for name, state in KINDS.items() if (states == state).any())


def _seen(first: float, length: float, whole: int) -> tuple[int, int]:
    return int(first), min(whole, int(np.ceil(first + length)))


def mark_brush(kind: str, theme: Theme, ratio: float, size: float) -> QBrush:
    """One mark as a swatch of the map's key, `size` pixels wide."""
    return QBrush(_swatch(KINDS[kind], theme, ratio, round(size)))


@lru_cache(maxsize=32)
def _swatch(state: int, theme: Theme, ratio: float, size: int) -> QPixmap:
    tile = QPixmap(round(size * ratio), round(size * ratio))
    tile.setDevicePixelRatio(ratio)
    tile.fill(QColor(theme.masked))
    painter = painter_of(tile)
    _paint_glyphs(painter, QPointF(0, 0), size, np.array([[state]], np.uint8), theme)
    painter.end()
    return tile


def _paint_glyphs(
    painter: QPainter, corner: QPointF, cell: float, states: np.ndarray, theme: Theme
) -> None:
    """A mark in each changed cell; the first is at `corner`."""
    crosses: list[QLineF] = []
    rings: list[QRectF] = []
    boxes: list[QRectF] = []
    dashes: list[QLineF] = []
    arm = min(0.24 * cell, 7.0)
    inset = max(1.0, 0.1 * cell)
    for row, column in np.argwhere(states):
        state = int(states[row, column])
        x, y = corner.x() + column * cell, corner.y() + row * cell
        middle = QPointF(x + cell / 2, y + cell / 2)
        if state in _BOXED:
            boxes.append(QRectF(x, y, cell, cell).adjusted(inset, inset, -inset, -inset))
        if state in (CUT_NOW, CUT_NEXT):
            crosses.append(QLineF(middle - QPointF(arm, arm), middle + QPointF(arm, arm)))
            crosses.append(QLineF(middle - QPointF(arm, -arm), middle + QPointF(arm, -arm)))
        elif state in (ALLOWED_NOW, ALLOWED_NEXT):
            rings.append(QRectF(middle.x() - arm, middle.y() - arm, 2 * arm, 2 * arm))
        else:
            dashes.append(QLineF(middle - QPointF(arm, 0), middle + QPointF(arm, 0)))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    line, halo = QColor(theme.mark), QColor(theme.mark_halo)
    if boxes:
        painter.setPen(QPen(line, 1))
        painter.setBrush(halo)
        painter.drawRects(boxes)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    thin = 1.4 if cell < 14 else 2.0
    for colour, width in ((halo, thin + 2), (line, thin)):
        painter.setPen(QPen(colour, width, c=Qt.PenCapStyle.RoundCap))
        painter.drawLines([*crosses, *dashes])
        for ring in rings:
            painter.drawEllipse(ring)


def _patterned(
    states: np.ndarray,
    view: CellView,
    first_query: int,
    first_key: int,
    stride: int,
    theme: Theme,
    ratio: float,
) -> QImage:
    """The marks of cells too small for one each, as patterns in device pixels."""
    size = round(view.drawn_height * ratio), round(view.drawn_width * ratio)
    rows = (view.top + np.arange(size[0]) / (view.scale * ratio)).astype(int) - first_query
    columns = (view.left + np.arange(size[1]) / (view.scale * ratio)).astype(int) - first_key
    rows = np.minimum(rows // stride, states.shape[0] - 1)
    columns = np.minimum(columns // stride, states.shape[1] - 1)
    seen = states[rows][:, columns]
    pixels = np.zeros(size, np.uint32)
    more = max(0, int(np.ceil((LEAST * ratio - max(view.scale * ratio, 1)) / 2)))
    for state in KINDS.values():
        where = seen == state
        if where.any():
            where = _grown(where, more)
            tile = _tile(state, theme, ratio)
            side = len(tile)
            repeated = tile[np.arange(size[0])[:, None] % side, np.arange(size[1])[None, :] % side]
            pixels[where] = repeated[where]
            if state == ALLOWED_NOW:  # its rings are far apart: a small area may hold none
                inner = ~_grown(~where, max(1, round(ratio)))
                pixels[where & ~inner] = QColor(theme.mark).rgba()
                pixels[inner & _grown(~inner, max(1, round(ratio)))] = QColor(
                    theme.mark_halo
                ).rgba()
    image = QImage(
        pixels.data, size[1], size[0], 4 * size[1], QImage.Format.Format_ARGB32_Premultiplied
    ).copy()
    image.setDevicePixelRatio(ratio)
    return image


def _grown(where: np.ndarray, by: int) -> np.ndarray:
    """(H, W) bool, with so many pixels more on every side."""
    for _ in range(by):
        for axis in (0, 1):
            found = where.copy()
            ahead, behind = [slice(None)] * 2, [slice(None)] * 2
            ahead[axis], behind[axis] = slice(1, None), slice(None, -1)
            found[tuple(ahead)] |= where[tuple(behind)]
            found[tuple(behind)] |= where[tuple(ahead)]
            where = found
    return where


@lru_cache(maxsize=32)
def _tile(state: int, theme: Theme, ratio: float) -> np.ndarray:
    """(n, n) uint32 of one pattern: the mark itself, small.

    What the run has lets its colours through, most where there is something to see.
    """
    side = round(_TILE * ratio * (2 if state == ALLOWED_NOW else 1))
    image = QImage(side, side, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(QColor(theme.mark_halo) if state in _BOXED else Qt.GlobalColor.transparent)
    painter = painter_of(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    thin, end, ring = max(1.0, ratio), side - 1.0, 2.1 * ratio
    for colour, width in ((theme.mark_halo, 3 * thin), (theme.mark, thin)):
        painter.setPen(QPen(QColor(colour), width))
        if state in (CUT_NOW, CUT_NEXT):
            painter.drawLine(QLineF(0, 0, end, end))
            painter.drawLine(QLineF(0, end, end, 0))
        elif state in (ALLOWED_NOW, ALLOWED_NEXT):
            painter.drawEllipse(QPointF(side / 2, side / 2), ring, ring)
        else:
            painter.drawLine(QLineF(side * 0.2, side / 2, side * 0.8, side / 2))
    if state in _BOXED:
        painter.drawLine(QLineF(0, 0, end, 0))
    painter.end()
    return np.frombuffer(image.constBits(), np.uint32).reshape(side, -1)[:, :side].copy()
