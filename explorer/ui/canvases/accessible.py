"""Custom-painted widgets for screen readers: a role, a name and what the cursor is on.

Qt calls a bare QWidget "filler".  A widget here sets its accessible name once and calls `say` when
the line that describes it changes.
"""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import QObject
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QAccessibleEvent,
    QAccessibleInterface,
)
from PySide6.QtWidgets import QAccessibleWidget, QWidget

_ROLE = "accessibleRole"  # a dynamic property, so that the factory can know such a widget


def describe(widget: QWidget, role: QAccessible.Role = QAccessible.Role.Graphic) -> None:
    """Give a custom-painted widget a role of its own; call it first, before a name is set."""
    widget.setProperty(_ROLE, role.value)
    _install()


def say(widget: QWidget, line: str, aloud: bool = False) -> None:
    """Change the line that describes a widget; `aloud` has a screen reader speak it now."""
    if line == widget.accessibleDescription():
        return
    widget.setAccessibleDescription(line)
    if not QAccessible.isActive():
        return
    QAccessible.updateAccessibility(QAccessibleEvent(widget, QAccessible.Event.DescriptionChanged))
    if aloud:
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, line))


@cache
def _install() -> None:
    QAccessible.installFactory(_interface)


def _interface(_class: str, target: QObject) -> QAccessibleInterface | None:
    if not isinstance(target, QWidget) or target.property(_ROLE) is None:
        return None
    made = QAccessibleWidget(target, QAccessible.Role(target.property(_ROLE)))
    target._accessible = made  # type: ignore[attr-defined]  # Qt does not keep it alive
    return made
