"""What the looks of the tokens in the strip mean: one small box for each that is on screen."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.trace.chat import Part, PromptParts
from explorer.trace.step import Origin, Token
from explorer.ui.canvases.canvas import Canvas
from explorer.ui.canvases.opaque import painter_of
from explorer.ui.canvases.tokens.token_box import paint_box, paint_strike
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.look.text_size import small_font
from explorer.ui.look.theme import Theme, unit

_WORDS = {
    "prompt": QT_TRANSLATE_NOOP("StripLegend", "prompt"),
    "system": QT_TRANSLATE_NOOP("StripLegend", "system"),
    "user": QT_TRANSLATE_NOOP("StripLegend", "user"),
    "assistant": QT_TRANSLATE_NOOP("StripLegend", "assistant"),
    "forgotten": QT_TRANSLATE_NOOP("StripLegend", "forgotten"),
    "template": QT_TRANSLATE_NOOP("StripLegend", "chat template"),
    "generated": QT_TRANSLATE_NOOP("StripLegend", "generated"),
    "special": QT_TRANSLATE_NOOP("StripLegend", "special token"),
    "padding": QT_TRANSLATE_NOOP("StripLegend", "padding"),
    "forced": QT_TRANSLATE_NOOP("StripLegend", "chosen by you"),
    "unread": QT_TRANSLATE_NOOP("StripLegend", "not read yet"),
    "selected": QT_TRANSLATE_NOOP("StripLegend", "selected"),
}
_ROLES = ("system", "user", "assistant")
_ORIGINS: dict[str, Origin] = {
    "padding": "padding", "generated": "generated", "forced": "forced", "unread": "generated",
}  # fmt: skip


def kinds(
    tokens: Sequence[Token],
    read: int,
    parts: PromptParts | None,
    selected: bool,
    forgotten: bool = False,
) -> tuple[str, ...]:
    """Which looks these tokens have, in the order of the legend; those from `read` on are faint."""
    found: set[str] = {token.origin for token in tokens}
    if any(token.special for token in tokens):
        found.add("special")
    if parts is not None and "prompt" in found:
        found.add("template")
        slots = [slot for slot, token in enumerate(tokens) if token.origin == "prompt"]
        roles = {parts.role(slot) for slot in slots}
        found |= roles.intersection(_ROLES)
        if found.intersection(_ROLES) and roles.issubset(_ROLES):
            found.discard("prompt")  # each of its tokens has the colour of a role
    if read < len(tokens):
        found.add("unread")
    if forgotten:
        found.add("forgotten")
    if selected:
        found.add("selected")
    return tuple(kind for kind in _WORDS if kind in found)


class StripLegend(Canvas):
    """As many as there is room for; the tip names them all."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._kinds: tuple[str, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)

    @property
    def words(self) -> tuple[str, ...]:
        """The name of each look that is shown."""
        return tuple(QCoreApplication.translate("StripLegend", _WORDS[k]) for k in self._kinds)

    def set_kinds(self, shown: tuple[str, ...]) -> None:
        if shown == self._kinds:
            return
        self._kinds = shown
        self.setAccessibleName(self._said())
        self.updateGeometry()
        self.update()

    def tip_at(self, point: QPoint) -> str:
        return self._said()

    def _said(self) -> str:
        return self.tr("Tokens: {0}").format(", ".join(self.words)) if self._kinds else ""

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        metrics = QFontMetricsF(small_font(self))
        width = sum(self._width(metrics, word) for word in self.words)
        return QSize(round(width) + 1, round(metrics.height() + 2))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def _width(self, metrics: QFontMetricsF, word: str) -> float:
        return metrics.horizontalAdvance(word) + 29 * unit(self)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, u, font = painter_of(self), unit(self), small_font(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(font)
        metrics, x = QFontMetricsF(font), 0.0
        for kind, word in zip(self._kinds, self.words, strict=True):
            wide = self._width(metrics, word)
            if x + wide > self.width() + 1:
                return
            high = 12 * u
            box = QRectF(x + 2 * u, round((self.height() - high) / 2), 15 * u, high)
            self._paint_sample(painter, kind, box)
            painter.setPen(QColor(self._theme.muted))
            place = QRectF(x + 20 * u, 0, wide, self.height())
            painter.drawText(place, Qt.AlignmentFlag.AlignVCenter, word)
            x += wide

    def _paint_sample(self, painter: QPainter, kind: str, box: QRectF) -> None:
        u = unit(self)
        token = Token(0, b"", _ORIGINS.get(kind, "prompt"))
        radius = box.height() / 2 if kind == "special" else 3 * u
        part: Part = "template" if kind == "template" else "message"
        role = kind if kind in _ROLES else ""
        if kind == "template":  # it has the colours of the roles, if those are known
            role = next((one for one in _ROLES[::-1] if one in self._kinds), "")
        faint = kind in ("unread", "forgotten")
        paint_box(painter, box, radius, token, "", self._theme, u, part, role, faint=faint)
        if kind == "forgotten":
            paint_strike(painter, box, self._theme.muted, u)
        if kind == "selected":
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(self._theme.accent), 2.5))
            painter.drawRoundedRect(box, radius, radius)
        painter.setBrushOrigin(QPointF())
