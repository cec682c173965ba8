"""The steps of a run painted one after another, by copies of panels that nobody sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QObject, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QWidget

from explorer.figures.text import sentences
from explorer.session.state import State
from explorer.ui.dialogs.hand_in import gif_file, report
from explorer.ui.files import export
from explorer.ui.look.theme import Theme
from explorer.ui.panel.panel import Panel
from explorer.ui.threads.later import later

_LOOK_MS = 10  # between two looks at whether the panels are drawn
_TEXT = 26  # pixels of the line above the pictures
_MOST_LETTERS = 110


class Film(QObject):
    """Begins with `start`; frames come one by one, and `ended` with all of them."""

    drew = Signal(int)  # frames so far
    ended = Signal(object)  # list of Pillow images

    def __init__(
        self, state: State, panels: Sequence[Panel], theme: Theme, size: QSize, parent: QObject
    ) -> None:
        """`panels` are copied as they are turned now; `size` is that of a frame."""
        super().__init__(parent)
        self._state, self._theme, self._size = state, theme, size
        self._panels = [_copy(panel) for panel in panels]
        self._steps: Sequence[int] = ()
        self._frames: list[Any] = []
        self._before: State | None = None
        self._look = QTimer(self)
        self._look.setInterval(_LOOK_MS)
        self._look.timeout.connect(self._take)
        self._fitted = False
        self._room = QSize(size.width() // len(self._panels), size.height() - _TEXT)
        for panel in self._panels:
            panel.resize(self._room)
            panel.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
            panel.show()

    def start(self, steps: Sequence[int]) -> None:
        """Paint these steps of the run, in this order."""
        self._steps = steps
        self._begin()

    def stop(self) -> None:
        """Paint no more, and let the panels go."""
        self._look.stop()
        self._frames = []
        while self._panels:
            self._panels.pop().deleteLater()

    def _begin(self) -> None:
        """The next step, to be taken once it is drawn."""
        step = self._steps[len(self._frames)]
        selection = replace(self._state.selection, step=step, query=None, key=None, token_id=None)
        state = replace(self._state, selection=selection, comparing=False)
        for panel in self._panels:
            panel.show_state(self._before, state)
        self._before = state
        self._look.start()

    def _take(self) -> None:
        if any(panel.busy for panel in self._panels) or self._fit():
            return
        self._look.stop()
        self._frames.append(gif_file.paletted(self._frame(self._steps[len(self._frames)])))
        self.drew.emit(len(self._frames))
        if len(self._frames) < len(self._steps):
            # A turn of the loop in between: a click on Cancel gets through.
            later(self, self._go_on)
        else:
            self.ended.emit(self._frames)

    def _fit(self) -> bool:
        """Once, make the panels so large that their pictures alone fill the frame."""
        if self._fitted:
            return False
        self._fitted = True
        for panel in self._panels:
            panel.resize(self._room + panel.size() - _shown(panel).size())
        return True

    def _go_on(self) -> None:
        if self._panels:
            self._begin()

    def _frame(self, step: int) -> QImage:
        frame = QImage(self._size, QImage.Format.Format_RGB32)
        frame.fill(QColor(self._theme.card))
        painter = QPainter(frame)
        painter.setPen(QColor(self._theme.text))
        line = QRect(10, 0, self._size.width() - 20, _TEXT)
        painter.drawText(line, int(Qt.AlignmentFlag.AlignVCenter), self._words(step))
        left = 0
        for panel in self._panels:
            picture = export.picture(_shown(panel), scale=1)
            painter.drawImage(left, _TEXT, picture, 0, 0, self._room.width(), self._room.height())
            left += self._room.width()
        painter.end()
        return frame

    def _words(self, step: int) -> str:
        trace = self._state.trace
        assert trace is not None
        text = report.generated_text(trace.truncated(step + 1)).strip()
        return self.tr("Token {0}: … {1}").format(step + 1, sentences.name(text, _MOST_LETTERS))


def _copy(panel: Panel) -> Panel:
    """A panel of the same kind, turned to the same, in no window."""
    made = type(panel)(panel.session, panel.theme)
    made.preferences = panel.preferences
    made.choose(panel.choices())
    return made


def _shown(panel: Panel) -> QWidget:
    """What a panel paints first: the map, or the bars."""
    found = panel.view_of(None)
    return panel if found is None else found[1].widget
