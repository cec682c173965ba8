"""Room that is too small scrolls: whatever stands in it stays within reach.

This holds at every zoom, on every screen, and with words of any length.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QStackedWidget, QWidget

from explorer.ui.look.theme import unit

MOST = 16777215  # pixels: Qt's largest size


class Scrolled(QScrollArea):
    """Its content at the size of the room, and never smaller than the content can be."""

    def __init__(
        self,
        content: QWidget,
        least: tuple[int | None, int | None],
        *,
        zoomed: bool = True,
        parent: QWidget | None = None,
    ) -> None:
        """`least` pixels at a zoom of 1, width and height; None: as the content needs.

        Not `zoomed`: at any zoom.
        """
        super().__init__(parent)
        self._zoomed = zoomed
        self._least = least
        self._content = content
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setWidget(content)
        content.setAutoFillBackground(False)
        self.viewport().setAutoFillBackground(False)

    def minimumSizeHint(self) -> QSize:
        content, (width, height) = self._needed(), self._least
        u = unit(self) if self._zoomed else 1.0
        bar = self.verticalScrollBar().sizeHint().width()
        return QSize(
            content.width() + bar if width is None else min(content.width(), round(width * u)),
            content.height() if height is None else min(content.height(), round(height * u)),
        )

    def sizeHint(self) -> QSize:
        return self._content.sizeHint()

    def _needed(self) -> QSize:
        return self._content.minimumSizeHint().expandedTo(self._content.minimumSize())

    def _fit(self) -> None:
        """Qt's own way gives wrapped text all the height it would like, not what it needs."""
        room, needed = self.maximumViewportSize(), self._needed()
        if needed.height() > room.height():
            room.setWidth(room.width() - self.verticalScrollBar().sizeHint().width())
        if needed.width() > room.width():
            room.setHeight(room.height() - self.horizontalScrollBar().sizeHint().height())
        self._content.resize(room.expandedTo(needed))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def event(self, event: QEvent) -> bool:
        done = super().event(event)
        if event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.StyleChange):
            self.updateGeometry()
            self._fit()
        return done

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Tab brings the control that it goes to into view."""
        moved = super().focusNextPrevChild(forward)
        focus = self._content.focusWidget()
        if moved and focus is not None and self.isAncestorOf(focus):
            self.ensureWidgetVisible(focus, 8, 8)
        return moved


class Wrapping(QWidget):
    """As high as its wrapped text needs at the width that it has."""

    def minimumSizeHint(self) -> QSize:
        return least(self, self.width(), super().minimumSizeHint())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()


class Snug(Wrapping):
    """No higher than it needs, while that is on: another part of a splitter has the rest."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._snug = False

    def set_snug(self, on: bool) -> None:
        """Hold the height, or leave it to the splitter."""
        self._snug = on
        self._hold()

    def _hold(self) -> None:
        self.setMaximumHeight(self.minimumSizeHint().height() if self._snug else MOST)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._hold()

    def event(self, event: QEvent) -> bool:
        done = super().event(event)
        if event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.StyleChange):
            self._hold()
        return done


def least(widget: QWidget, width: int, hint: QSize | None = None) -> QSize:
    """The smallest size at which nothing in a widget is cut, at about this width."""
    size = (hint or widget.minimumSizeHint()).expandedTo(widget.minimumSize())
    layout = widget.layout()
    if layout is not None and layout.hasHeightForWidth():
        size.setHeight(layout.minimumHeightForWidth(max(width, size.width())))
    return size


class OneOf(QStackedWidget):
    """Pages of which only the one that is seen asks for room."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.currentChanged.connect(lambda: self.updateGeometry())

    def sizeHint(self) -> QSize:
        page = self.currentWidget()
        return QSize() if page is None else page.sizeHint()

    def minimumSizeHint(self) -> QSize:
        page = self.currentWidget()
        if page is None:
            return QSize()
        return least(page, self.width())

    def hasHeightForWidth(self) -> bool:
        return False  # what the highest of the pages would like

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()
