"""Is there a screen to draw on?  Asked before Qt is, because Qt ends the process if not.

Standard library only.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path

_ASK = (
    "run packaging/run.py, which installs what is missing, or install it with your package manager"
)
_NO_SCREEN = ("offscreen", "minimal", "minimalegl", "vnc", "linuxfb", "eglfs")


def problem(environment: Mapping[str, str] = os.environ) -> str:
    """Why no window can be shown, in one sentence with a next step; empty if one can."""
    if not sys.platform.startswith("linux"):
        return ""
    platform = environment.get("QT_QPA_PLATFORM", "").split(";")[0].split(":")[0]
    if platform in _NO_SCREEN:
        return _missing_library(platform)
    display, wayland = environment.get("DISPLAY"), environment.get("WAYLAND_DISPLAY")
    if not display and not wayland:
        return (
            "There is no display to show a window on (neither DISPLAY nor WAYLAND_DISPLAY is "
            "set); start it from a desktop session, or use `decoder-explorer trace` here."
        )
    if wayland and platform in ("", "wayland") and not _missing_library("wayland"):
        return ""
    if not display:
        return _missing_library("wayland")
    return _missing_library("xcb") or _refused(display)


def _missing_library(platform: str) -> str:
    """The first system library that Qt lacks for this platform, found by loading its plugin."""
    spec = importlib.util.find_spec("PySide6")
    if spec is None or spec.origin is None:
        return "PySide6 is not installed; run packaging/run.py, which installs everything."
    plugin = Path(spec.origin).parent / "Qt" / "plugins" / "platforms" / f"libq{platform}.so"
    if not plugin.exists():
        return ""  # a system-wide Qt keeps its plugins elsewhere
    try:
        ctypes.CDLL(str(plugin))
    except OSError as error:
        return f"The system library {str(error).split(':')[0]} that Qt needs is missing; {_ASK}."
    return ""


def _refused(display: str) -> str:
    """A sentence if nothing answers at an X display."""
    try:
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError:
        return ""
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    xcb.xcb_connection_has_error.argtypes = [ctypes.c_void_p]
    xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(display.encode(), None)
    failed = xcb.xcb_connection_has_error(connection)
    xcb.xcb_disconnect(connection)
    if not failed:
        return ""
    return (
        f"The display {display} does not answer; start the program from a desktop session, or set "
        "DISPLAY to a screen that is running."
    )
