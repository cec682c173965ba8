"""Plain covers over the panels that would answer a question, until it is answered."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget

from explorer.ui.kit.sentence import SentenceLabel


class Cover(QWidget):
    """Lies over all of a widget and takes the mouse in its place."""

    def __init__(self, over: QWidget, title: str) -> None:
        super().__init__(over)
        self._over = over
        self.setProperty("look", "card")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAutoFillBackground(True)
        self.words = SentenceLabel(self.tr("{0} is hidden until you answer.").format(title))
        self.words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setAccessibleName(self.words.text())
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 0, 8, 0)  # the strip of a class has one line
        column.addWidget(self.words)
        over.installEventFilter(self)
        self._fit()
        self.show()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Show, QEvent.Type.LayoutRequest):
            self._fit()
        return False

    def _fit(self) -> None:
        self.setGeometry(self._over.rect())
        self.raise_()


class Covers:
    """Which parts of the window are covered; what lies under a cover can't be reached by keys."""

    def __init__(self) -> None:
        self._covers: dict[str, Cover] = {}
        self._parts: dict[str, tuple[QWidget, ...]] = {}

    @property
    def ids(self) -> frozenset[str]:
        """The IDs of what is covered."""
        return frozenset(self._covers)

    def put(
        self, ids: Collection[str], places: Iterable[tuple[str, QWidget, str, tuple[QWidget, ...]]]
    ) -> None:
        """Cover these and nothing else; `places` are (ID, what is covered, title, its parts)."""
        for name in [name for name in self._covers if name not in ids]:
            self._drop(name)
        for name, over, title, parts in places:
            if name in ids and name not in self._covers:
                self._covers[name] = Cover(over, title)
                self._parts[name] = parts
                for part in parts:
                    part.setEnabled(False)

    def _drop(self, name: str) -> None:
        cover = self._covers.pop(name)
        cover.hide()
        cover.deleteLater()
        for part in self._parts.pop(name):
            part.setEnabled(True)
