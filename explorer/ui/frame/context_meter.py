"""How full the context is: a bar with its figures, and a warning near the limit."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.figures.cost.context_use import ContextUse, context_use
from explorer.session.changes import changed
from explorer.session.state import State
from explorer.ui.access.accessible import announce
from explorer.ui.access.tips import tip
from explorer.ui.look.text_size import for_back_row
from explorer.ui.look.theme import Theme, unit
from explorer.ui.panel.intervention_words import policy_words

_SHOWN_FROM = ("trace", "request", "card", "prompt_tokens", "opened")


class ContextMeter(QWidget):
    """Tokens of the run, or of the prompt that is typed, against the limit."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._use: ContextUse | None = None
        self._text = ""
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        self.hide()

    @property
    def text(self) -> str:
        """What stands beside the bar."""
        return self._text

    @property
    def warns(self) -> bool:
        """True near the limit."""
        return self._use is not None and self._use.near

    @property
    def matters(self) -> bool:
        """True near the limit, and where the newest token does not attend to all tokens."""
        return self._use is not None and (self._use.near or self._use.kept is not None)

    def show_state(self, old: State | None, new: State) -> None:
        if not changed(old, new, *_SHOWN_FROM):
            return
        warned, self._use = self.warns, _use_of(new)
        self._appear()
        if self._use is None:
            return
        text = self._short(self._use)
        if text != self._text:
            self._text = text
            self.updateGeometry()
        words = self._words(self._use, new)
        self.setAccessibleName(words)
        self.setToolTip(tip(words))
        if self.warns and not warned:
            announce(self, words)
        self.update()

    def _appear(self) -> None:
        """In front of a class, which has the room for other things, only where it matters."""
        self.setVisible(self._use is not None and (self.matters or not for_back_row()))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._appear()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def _short(self, use: ContextUse) -> str:
        used = f"{use.used:,}"
        if use.limit:
            used = self.tr("{0} of {1}").format(used, f"{use.limit:,}")
        if use.kept is not None:
            used = self.tr("{0} · {1} in reach").format(used, f"{use.kept:,}")
        return used

    def _words(self, use: ContextUse, state: State) -> str:
        said = self.tr("Context: {0} tokens").format(f"{use.used:,}")
        if use.limit:
            said = self.tr("Context: {0} of {1} tokens").format(f"{use.used:,}", f"{use.limit:,}")
        parts = [said]
        if use.used > use.limit > 0:
            parts.append(self.tr("over the limit"))
        elif use.used == use.limit > 0:
            parts.append(self.tr("full"))
        elif use.near:
            parts.append(self.tr("nearly full"))
        if use.kept is not None:
            parts.append(self.tr("the newest token attends to {0}").format(f"{use.kept:,}"))
        request = state.request if state.trace is None else state.trace.request
        return f"{', '.join(parts)}. {policy_words(request.context)}."

    # -- painting

    def sizeHint(self) -> QSize:
        metrics, u = self.fontMetrics(), unit(self)
        return QSize(
            round(metrics.horizontalAdvance(self._text) + 56 * u), round(metrics.height() + 4 * u)
        )

    def minimumSizeHint(self) -> QSize:
        """It gives way to everything else."""
        return QSize(0, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._use is None:
            return
        theme, u = self._theme, unit(self)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        high = 7 * u
        bar = QRectF(2 * u, (self.height() - high) / 2, 44 * u, high)
        painter.setPen(QPen(QColor(theme.strong_border), 1))
        painter.setBrush(QColor(theme.field))
        painter.drawRoundedRect(bar, 2 * u, 2 * u)
        inner = bar.adjusted(1, 1, -1, -1)
        inner.setWidth(max(inner.width() * self._use.share, 2 * u if self._use.used else 0))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.warning if self.warns else theme.accent))
        painter.drawRect(inner)
        painter.setPen(QColor(theme.warning if self.warns else theme.muted))
        area = self.rect().adjusted(round(52 * u), 0, 0, 0)
        if area.width() >= self.fontMetrics().horizontalAdvance(self._text):
            painter.drawText(area, int(Qt.AlignmentFlag.AlignVCenter), self._text)


def _use_of(state: State) -> ContextUse | None:
    """Of the run on screen; of the prompt, once that is another one."""
    trace = state.trace
    if trace is not None and (not state.request_changed or state.card is None):
        read = trace.read_slots(len(trace.steps) - 1) if trace.steps else len(trace.prompt)
        spans = trace.steps[-1].left_out if trace.steps else ()
        read -= sum(end - first for first, end in spans)
        return context_use(trace.request, trace.card, read)
    card = state.next_card
    if card is None or not state.prompt_tokens:
        return None
    pads = state.request.pad if state.request.padding else 0
    return context_use(state.request, card, len(state.prompt_tokens) + pads)
