"""What a screen reader hears: of custom-painted widgets, of lists, and when something happens.

Qt calls a bare QWidget "filler".  A widget here sets its accessible name once and calls `say` when
the line that describes it changes.  Each thing is said once: by an announcement and nothing else.
"""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QAccessibleInterface
from PySide6.QtWidgets import QAccessibleWidget, QComboBox, QLabel, QWidget

_ROLE = "accessibleRole"  # a dynamic property, so that the factory can know such a widget


def describe(widget: QWidget, role: QAccessible.Role = QAccessible.Role.Graphic) -> None:
    """Give a custom-painted widget a role of its own; call it first, before a name is set.

    Until something is said of it, its method `summary`, if it has one, gives the line.  What it
    paints runs from left to right in every language: tokens, layers, steps and figures.
    """
    widget.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
    widget.setProperty(_ROLE, role.value)
    _install()


def say(widget: QWidget, line: str, aloud: bool = False) -> None:
    """Change the line that describes a widget; `aloud` has a screen reader speak it now.

    No event tells of the line itself: it would be heard twice.
    """
    if line == getattr(widget, "_spoken", ""):
        return
    widget._spoken = line  # type: ignore[attr-defined]
    if aloud:
        announce(widget, line)


def line_of(widget: QWidget) -> str:
    """What a screen reader reads of a widget beside its name."""
    said = getattr(widget, "_spoken", "")
    summary = getattr(widget, "summary", None)
    return said or (summary() if callable(summary) else widget.accessibleDescription())


def announce(source: QWidget, sentence: str, urgent: bool = False) -> None:
    """Have a screen reader speak a sentence; `urgent` in place of what it speaks now."""
    if not sentence or not QAccessible.isActive():
        return
    event = QAccessibleAnnouncementEvent(source, sentence)
    manners = QAccessible.AnnouncementPoliteness
    event.setPoliteness(manners.Assertive if urgent else manners.Polite)
    _send(event)


def label_lists(root: QWidget) -> None:
    """Give every list a label, which on Linux alone says what it is for: its name is its choice."""
    for box in root.findChildren(QComboBox):
        place, name = box.parentWidget(), box.accessibleName()
        if not name or place is None:
            continue
        if any(label.buddy() is box for label in place.findChildren(QLabel)):
            continue
        label = QLabel(name.replace("&", "&&"), place)
        label.setBuddy(box)
        label.hide()


class _Face(QAccessibleWidget):
    """Reads name and line off the widget when it is asked."""

    def text(self, kind: QAccessible.Text) -> str:
        widget = self.object()
        if isinstance(widget, QWidget):
            if kind == QAccessible.Text.Description:
                return line_of(widget)
            if kind == QAccessible.Text.Name and isinstance(widget, QLabel):
                return widget.text()
        return super().text(kind)


_send = QAccessible.updateAccessibility


@cache
def _install() -> None:
    QAccessible.installFactory(_interface)


def _interface(_class: str, target: QObject) -> QAccessibleInterface | None:
    if not isinstance(target, QWidget) or target.property(_ROLE) is None:
        return None
    made = _Face(target, QAccessible.Role(target.property(_ROLE)))
    target._accessible = made  # type: ignore[attr-defined]  # Qt does not keep it alive
    return made
