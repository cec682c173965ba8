"""What the desktop asks of every program: dark or light, high contrast, the size of text.

Qt tells it where it knows the desktop.  On a bare X server it does not: there the settings portal
is asked, where QtDBus and a session bus are there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from PySide6.QtCore import SLOT, QObject, Qt, Signal, Slot
from PySide6.QtGui import QFontDatabase, QFontInfo, QGuiApplication

from explorer.ui.look.theme import BASE_FONT_PX

try:
    from PySide6.QtDBus import QDBusConnection, QDBusMessage, QDBusPendingCallWatcher

    _DBUS = True
except ImportError:  # a Qt without it: only what Qt itself knows
    _DBUS = False

_PORTAL = (
    "org.freedesktop.portal.Desktop",
    "/org/freedesktop/portal/desktop",
    "org.freedesktop.portal.Settings",
)
SCHEME = ("org.freedesktop.appearance", "color-scheme")  # 1 dark, 2 light, 0 none
CONTRAST = ("org.freedesktop.appearance", "contrast")  # 1 more
TEXT = ("org.gnome.desktop.interface", "text-scaling-factor")  # 1.0 normal
_LEAST, _MOST = 0.5, 3.0  # times normal text; else it is no size that anyone asked for


class SystemLook(QObject):
    """What is asked for now; `changed` tells when that becomes something else."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._told: dict[tuple[str, str], object] = {}  # by the portal
        self._reads: list[object] = []
        self._hints = QGuiApplication.styleHints()
        self._hints.colorSchemeChanged.connect(self.refresh)
        # Since Qt 6.10.
        ask = getattr(self._hints, "accessibility", None)
        self._access = ask() if ask is not None else None
        if self._access is not None:
            self._access.contrastPreferenceChanged.connect(self.refresh)
        self._now = self._wishes()
        self._ask_portal()

    @property
    def theme(self) -> str:
        """The name of the theme that suits the desktop."""
        dark, strong, _ = self._now
        return "high_contrast" if strong else "dark" if dark else "light"

    @property
    def text(self) -> float:
        """How large text is, 1 being this program's own; never smaller."""
        return self._now[2]

    def refresh(self) -> None:
        """Look again: the desktop's fonts or colours may be others now."""
        now = self._wishes()
        if now != self._now:
            self._now = now
            self.changed.emit()

    def _wishes(self) -> tuple[bool, bool, float]:
        """Dark, high contrast, size of text."""
        scheme = self._hints.colorScheme()
        if scheme == Qt.ColorScheme.Unknown:
            dark = self._told.get(SCHEME) == 1
        else:
            dark = scheme == Qt.ColorScheme.Dark
        strong = self._told.get(CONTRAST) == 1
        if self._access is not None:
            strong = (
                strong or self._access.contrastPreference() == Qt.ContrastPreference.HighContrast
            )
        return dark, strong, self._text_size()

    def _text_size(self) -> float:
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
        factor = self._told.get(TEXT, 1.0)
        factor = factor if isinstance(factor, float) and _LEAST <= factor <= _MOST else 1.0
        # A desktop's usual font is a little smaller or larger than this program's.
        return min(max(1.0, QFontInfo(font).pixelSize() / BASE_FONT_PX, factor), _MOST)

    # -- the portal

    def _ask_portal(self) -> None:
        if not _DBUS or not _session_bus():
            return
        bus = QDBusConnection.sessionBus()
        if not bus.isConnected():
            return
        service, path, interface = _PORTAL
        slot = SLOT("_on_setting(QDBusMessage)")
        # The stubs ask for bytes, which PySide refuses.
        bus.connect(service, path, interface, "SettingChanged", self, slot)  # type: ignore[call-overload]
        for which in (SCHEME, CONTRAST, TEXT):
            call = QDBusMessage.createMethodCall(service, path, interface, "Read")
            call.setArguments(list(which))
            read = QDBusPendingCallWatcher(bus.asyncCall(call), self)
            read.finished.connect(lambda done, which=which: self._on_read(which, done))
            self._reads.append(read)

    def _on_read(self, which: tuple[str, str], read: QDBusPendingCallWatcher) -> None:
        answer = read.reply()
        if answer.type() == QDBusMessage.MessageType.ReplyMessage and answer.arguments():
            self.tell(which, answer.arguments()[0])

    @Slot("QDBusMessage")
    def _on_setting(self, message: QDBusMessage) -> None:
        space, name, value = (*message.arguments(), None, None, None)[:3]
        if (space, name) in (SCHEME, CONTRAST, TEXT):
            self.tell((space, name), value)

    def tell(self, which: tuple[str, str], value: object) -> None:
        """Take the value of one of the desktop's settings."""
        while hasattr(value, "variant"):  # one in another, from older portals
            value = value.variant()
        self._told[which] = value
        self.refresh()


def _session_bus() -> bool:
    """True if there is one already: asking for it must not start one."""
    if not sys.platform.startswith("linux"):
        return False
    if os.environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return True
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return bool(runtime) and Path(runtime or "", "bus").exists()
