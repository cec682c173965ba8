"""A ring around whatever has the focus: one for controls, maps, charts and lists alike.

A style sheet can only recolour the line that a control has anyway, which is too little to see
next to a light line, and reaches nothing that paints itself.  The ring lies over the window, so
that no control changes its size or its own look for it.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QRegion
from PySide6.QtWidgets import QApplication, QCheckBox, QRadioButton, QTabBar, QWidget
from shiboken6 import isValid

from explorer.ui.look.theme import unit

_MOVED = {
    QEvent.Type.Move,
    QEvent.Type.Resize,
    QEvent.Type.Show,
    QEvent.Type.Hide,
    QEvent.Type.ParentChange,
}


class FocusRing(QWidget):
    """Drawn around one widget of its window; takes no mouse and no focus."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._around = window
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAttribute(Qt.WidgetAttribute.WA_NoSystemBackground)
        self.setObjectName("focus-ring")

    def surround(self, widget: QWidget) -> None:
        """Go around this widget, or out of sight where nothing of it can be seen."""
        line = max(2, round(2 * unit(self)))
        wide = line + 2  # with a gap on either side
        part = widget.mapTo(self._around, QPoint())
        place = _marked(widget).translated(part).adjusted(-wide, -wide, wide, wide)
        place &= _seen(widget, self._around)
        self.setVisible(place.width() > 2 * wide and place.height() > 2 * wide)
        self.setGeometry(place)
        whole = self.rect()
        inner = whole.adjusted(wide, wide, -wide, -wide)
        self.setMask(QRegion(whole).subtracted(QRegion(inner)))  # painting below costs no more
        self.raise_()

    def paintEvent(self, event: QPaintEvent) -> None:
        """The line between two gaps, so that it stands out from any colour it lies on."""
        painter = QPainter(self)
        colours = self.palette()
        painter.fillRect(self.rect(), colours.color(QPalette.ColorRole.Window))
        line = QRegion(self.rect().adjusted(1, 1, -1, -1))
        wide = max(2, round(2 * unit(self)))
        line -= QRegion(self.rect().adjusted(1 + wide, 1 + wide, -1 - wide, -1 - wide))
        painter.setClipRegion(line)
        painter.fillRect(self.rect(), colours.color(QPalette.ColorRole.Accent))


class FocusRings(QObject):
    """Follows the focus through the program's windows."""

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        self._watched: list[QWidget] = []
        self._focus: QWidget | None = None
        self._rings: list[FocusRing] = []
        self._again = QTimer(self, singleShot=True, interval=0)  # once for all that moved
        self._again.timeout.connect(self._place)
        app.focusChanged.connect(self._follow)

    def _follow(self, _old: QWidget | None, new: QWidget | None) -> None:
        for widget in filter(isValid, self._watched):
            widget.removeEventFilter(self)
        for ring in self._shown():
            if new is None or new.isWindow() or ring.parentWidget() is not new.window():
                ring.hide()
        # Nor around a whole window, which has the keys while nothing in it needs them.
        none = new is None or new.isWindow() or new.window().windowType() == Qt.WindowType.Popup
        self._focus = None if none else new
        self._watched = [] if self._focus is None else _up_to_window(self._focus)
        for widget in self._watched:
            widget.installEventFilter(self)
        self._place()

    def _place(self) -> None:
        if self._focus is not None and isValid(self._focus):
            self._ring(self._focus.window()).surround(self._focus)

    def _shown(self) -> list[FocusRing]:
        """Those that are seen now; a window that is being deleted is hidden before."""
        self._rings = [ring for ring in self._rings if isValid(ring)]
        return [ring for ring in self._rings if ring.isVisible()]

    def _ring(self, window: QWidget) -> FocusRing:
        """The ring of a window; never searched for in it: while a window goes, that aborts."""
        self._rings = [ring for ring in self._rings if isValid(ring)]
        for ring in self._rings:
            if ring.parentWidget() is window:
                return ring
        self._rings.append(FocusRing(window))
        return self._rings[-1]

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in _MOVED and not self._again.isActive():
            self._again.start()
        return False


def _up_to_window(widget: QWidget) -> list[QWidget]:
    """The widget and everything it lies in."""
    found = [widget]
    while not found[-1].isWindow() and (above := found[-1].parentWidget()) is not None:
        found.append(above)
    return found


def _marked(widget: QWidget) -> QRect:
    """The part of a widget that the ring goes around, in its own coordinates."""
    if isinstance(widget, QTabBar) and widget.count():
        return widget.tabRect(widget.currentIndex())
    area = widget.rect()
    if isinstance(widget, (QCheckBox, QRadioButton)):  # not the room beside its words
        needed = min(area.width(), widget.sizeHint().width())
        if widget.layoutDirection() == Qt.LayoutDirection.RightToLeft:
            area.setLeft(area.right() + 1 - needed)
        area.setWidth(needed)
    return area


def _seen(widget: QWidget, window: QWidget) -> QRect:
    """What is not cut off around it, in the window's coordinates."""
    area = window.rect()
    for above in _up_to_window(widget)[1:-1]:
        if above.parentWidget() is not None:
            area &= QRect(above.mapTo(window, QPoint()), above.size())
    return area
