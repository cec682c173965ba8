"""The program's own pictures (assets/icons), drawn in the colours of a theme.

Each file is one SVG on a 24 × 24 grid that draws with `currentColor`.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from PySide6.QtCore import QByteArray, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QIconEngine, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from explorer import disk, places
from explorer.ui.look.theme import Theme

_ARROWS = {
    "down": '<path d="M5 9l7 7 7-7" {line}/>',
    "up": '<path d="M5 15l7-7 7 7" {line}/>',
    "check": '<path d="M5 12.5l5 5 9-11" {line}/>',
    "dot": '<circle cx="12" cy="12" r="5" fill="{colour}"/>',
}


def icon(name: str, theme: Theme, role: str = "text") -> QIcon:
    """One picture in a theme's colour (`role` names it), greyed while disabled.

    FileNotFoundError if assets/icons has no such name.
    """
    return QIcon(_Engine(name, getattr(theme, role), theme.disabled, theme.on_selection))


@cache
def svg(name: str, colour: str) -> bytes:
    """The picture with `currentColor` replaced."""
    text = places.asset("icons", f"{name}.svg").read_text("utf-8")
    return text.replace("currentColor", colour).encode()


class _Engine(QIconEngine):
    """Draws from the SVG at whatever size and pixel ratio is asked for, so it is always sharp."""

    def __init__(self, name: str, colour: str, disabled: str, checked: str) -> None:
        super().__init__()
        self._name, self._tints = name, (colour, disabled, checked)
        self._renderers: dict[int, QSvgRenderer] = {}
        svg(name, colour)  # a name that does not exist is found out here

    def clone(self) -> QIconEngine:
        return _Engine(self._name, *self._tints)

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        which = 0
        if mode == QIcon.Mode.Disabled:
            which = 1
        elif state == QIcon.State.On:
            which = 2
        if which not in self._renderers:  # most are never asked for
            self._renderers[which] = QSvgRenderer(QByteArray(svg(self._name, self._tints[which])))
        self._renderers[which].render(painter, QRectF(rect))

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        pixmap = QPixmap(size)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        self.paint(painter, pixmap.rect(), mode, state)
        painter.end()
        return pixmap


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="decoder-explorer-")


@cache
def arrow_folder(muted: str, text: str, on_accent: str) -> str:
    """A folder with the small marks of combo boxes, spin boxes and check boxes in these colours.

    Gone when the program ends; an empty name if no temporary file can be written.
    """
    try:
        folder = Path(_temporary().name) / f"{muted}{text}{on_accent}".replace("#", "")
        folder.mkdir(exist_ok=True)
        for name, colour in {
            "down": muted,
            "up": muted,
            "check": on_accent,
            "check-text": text,
            "dot": on_accent,
        }.items():
            disk.write(folder / f"{name}.svg", _arrow(name.split("-")[0], colour).encode())
    except OSError:
        return ""
    return folder.as_posix()


def _arrow(name: str, colour: str) -> str:
    line = (
        f'stroke="{colour}" stroke-width="3" fill="none" stroke-linecap="round" '
        'stroke-linejoin="round"'
    )
    body = _ARROWS[name].format(line=line, colour=colour)
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24">{body}</svg>'
