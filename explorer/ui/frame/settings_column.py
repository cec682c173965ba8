"""The column beside the panels: the prompt, what to try, sampling and stop rules."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QEvent, Qt
from PySide6.QtWidgets import QSplitter, QWidget


class SettingsColumn(QSplitter):
    """Parts above one another; in the simple layout the prompt has what the others leave."""

    def __init__(self) -> None:
        super().__init__(Qt.Orientation.Vertical)
        self.setChildrenCollapsible(False)
        self._others: tuple[QWidget, ...] = ()
        self._simple = False
        self._full = QByteArray()  # the shares of before the simple layout

    def fill(self, prompt: QWidget, *others: QWidget) -> None:
        """From the top."""
        self._others = others
        for part in (prompt, *others):
            self.addWidget(part)
            self.setStretchFactor(self.count() - 1, int(part is prompt))

    def set_simple(self, on: bool, only_simple: QWidget, only_full: QWidget) -> None:
        """Show one of two parts, and the shares that belong to it."""
        if on and not self._simple:
            self._full = self.saveState()
        only_simple.setVisible(on)
        only_full.setVisible(not on)
        if self._simple and not on:
            self.restoreState(self._full)
        self._simple = on
        self._share()

    def event(self, event: QEvent) -> bool:
        done = super().event(event)
        if event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.Resize):
            self._share()
        return done

    def _share(self) -> None:
        """Every part but the first at its own height."""
        if not self._simple:
            return
        heights = [0 if part.isHidden() else part.maximumHeight() for part in self._others]
        between = self.handleWidth() * sum(not part.isHidden() for part in self._others)
        first = self.height() - sum(heights) - between
        if self.sizes() != [first, *heights]:
            self.setSizes([max(first, 1), *heights])
