"""One token as a box; its origin shows in form as well as in colour."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPen, QPolygonF

from explorer.figures.drawing.colormaps import lut
from explorer.figures.text.sentences import fitting
from explorer.figures.text.tokens import Label
from explorer.trace.chat import Part
from explorer.trace.step import Token
from explorer.ui.look.theme import Ink, Theme, contrast

translate = QCoreApplication.translate


def paint_box(
    painter: QPainter,
    rect: QRectF,
    radius: float,
    token: Token,
    text: str,
    theme: Theme,
    unit: float,
    part: Part = "message",
    role: str = "",
    level: float | None = None,
    faint: bool = False,
) -> None:
    """Prompt: a plain box; generated: a bar below; forced: a corner as well; padding: hatched.

    In a conversation, the prompt has the colour of the turn's role; what a chat template put there
    has a bar above, and the accent's colour where no role is known.  A `level` of 0..1 fills the
    box with its colour.  `faint`: no surface of its own, a dotted edge and grey text.
    """
    ink = theme.origin(token.origin)
    if level is not None:
        ink = level_ink(level, ink, 7.0 if theme.name == "high_contrast" else 4.5)
    elif role:
        ink = theme.role(role)
    elif part != "message":
        ink = Ink(theme.selection, theme.accent, theme.on_selection)
    if faint:
        ink = Ink(theme.card, ink.edge, theme.muted)
    padding = token.origin == "padding"
    inner = rect.adjusted(0.5, 0.5, -0.5, -0.5)
    line = Qt.PenStyle.DashLine if padding else Qt.PenStyle.SolidLine
    line = Qt.PenStyle.DotLine if faint else line
    painter.setPen(QPen(QColor(ink.edge), 1, line))
    painter.setBrush(QColor(ink.fill))
    painter.drawRoundedRect(inner, radius, radius)
    painter.setPen(Qt.PenStyle.NoPen)
    if padding:
        hatch = QColor(theme.hatch)
        hatch.setAlphaF(0.5)
        painter.setBrush(QBrush(hatch, Qt.BrushStyle.BDiagPattern))
        painter.drawRoundedRect(inner, radius, radius)
    painter.setBrush(QColor(ink.edge))
    if part != "message":
        wide = max(rect.width() - 2 * radius, 1)
        painter.drawRect(QRectF(rect.left() + radius, rect.top(), wide, 2 * unit))
    if token.origin in ("generated", "forced"):
        high = 2.5 * unit
        wide = max(rect.width() - 2 * radius, 1)
        painter.drawRect(QRectF(rect.left() + radius, rect.bottom() - high, wide, high))
    if token.origin == "forced":
        corner, size = rect.topRight(), 6.5 * unit
        left, below = corner - QPointF(size, 0), corner + QPointF(0, size)
        painter.drawPolygon(QPolygonF([corner, left, below]))
    painter.setPen(QColor(ink.text))
    # Bytes before their character, also where it is of a script that runs the other way.
    painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
    space = rect.adjusted(2, 0, -2, 0 if token.origin == "prompt" else -unit)
    painter.drawText(space, Qt.AlignmentFlag.AlignCenter, text)


def level_ink(level: float, ink: Ink, least: float = 4.5, colours: str = "viridis") -> Ink:
    """The colour of a level, with text that can be read on it; the edge stays.

    Where neither black nor white reaches the contrast `least`, the colour gives way.
    """
    fill = QColor(*(int(c) for c in lut(colours)[round(255 * level)]))
    black, white = (contrast(fill.name(), text) for text in ("#000000", "#ffffff"))
    text = "#000000" if black > white else "#ffffff"
    while contrast(fill.name(), text) < least:
        fill = fill.lighter(104) if black > white else fill.darker(104)
    return Ink(fill.name(), ink.edge, text)


def paint_joint(
    painter: QPainter, rect: QRectF, ends: tuple[bool, bool], edge: str, unit: float
) -> None:
    """A line above the tokens that spell a character together; `ends`: the first, the last."""
    left = rect.left() + (2 * unit if ends[0] else 0)
    right = rect.right() - (2 * unit if ends[1] else 0)
    painter.fillRect(QRectF(left, rect.top() - 2 * unit, right - left, 1.5 * unit), QColor(edge))


def paint_strike(painter: QPainter, rect: QRectF, colour: str, unit: float) -> None:
    """A line through a box."""
    place = QRectF(rect.left() + 3 * unit, rect.center().y(), rect.width() - 6 * unit, 1.5 * unit)
    painter.fillRect(place, QColor(colour))


def paint_boundary(
    painter: QPainter, rect: QRectF, colour: str, unit: float, dashes: int = 1
) -> None:
    """A line before a box, whole or in so many dashes."""
    top, whole = rect.top() - 2 * unit, rect.height() + 4 * unit
    high = whole / (2 * dashes - 1)
    for dash in range(dashes):
        place = QRectF(rect.left() - 2 * unit, top + 2 * dash * high, 2 * unit, high)
        painter.fillRect(place, QColor(colour))


def in_words(
    slot: int,
    token: Token,
    label: Label,
    read: bool,
    part: Part | None = None,
    role: str = "",
    reused: bool = False,
    more: str = "",
    forgotten: bool = False,
) -> str:
    """One slot in words: its text, id, bytes and origin, and what it spells with others; `more`."""
    origins = {
        "prompt": translate("TokenStrip", "from the prompt"),
        "generated": translate("TokenStrip", "generated"),
        "forced": translate("TokenStrip", "chosen by you"),
        "padding": translate("TokenStrip", "padding"),
    }
    parts = {
        "template": translate("TokenStrip", "added by the chat template"),
        "message": translate("TokenStrip", "from the message"),
        "opening": translate("TokenStrip", "chat template: start of the answer"),
    }
    spells = translate("TokenStrip", "positions {0} to {1} together spell {2}").format(
        label.first, label.last, label.whole
    )
    said = [
        translate("TokenStrip", "position {0}: {1}").format(slot, label.quoted),
        translate("TokenStrip", "special token") if token.special else "",
        translate("TokenStrip", "id {0}").format(token.id),
        translate("TokenStrip", "bytes {0}").format(token.raw.hex(" ").upper())
        if token.raw
        else "",
        origins[token.origin],
        parts[part] if part else "",
        translate("TokenStrip", "turn of: {0}").format(role) if role else "",
        translate("TokenStrip", "its keys and values were in the cache") if reused else "",
        translate("TokenStrip", "forgotten: newer tokens no longer attend to it")
        if forgotten
        else "",
        spells if label.whole else "",
        "" if read else translate("TokenStrip", "not read yet when this token was generated"),
    ]
    return fitting("; ".join(filter(None, (", ".join(filter(None, said)), more))))
