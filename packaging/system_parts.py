"""What Qt needs from the system: a display, its libraries, a font. Standard library only."""

import os
import sys

import debian_packages
from setup_env import VENV, venv_python
from setup_messages import SetupError, say

_CHECKED = os.path.join(VENV, "system-parts.ok")

# Library -> the Debian and Ubuntu package that holds it.
_ANY_SCREEN = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libX11.so.6": "libx11-6",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libxkbcommon.so.0": "libxkbcommon0",
}
_X11 = {
    "libX11-xcb.so.1": "libx11-xcb1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
}
_FONT_PACKAGE = "fonts-dejavu-core"
_TEST_TOOLS = {"Xvfb": "xvfb", "xauth": "xauth", "openbox": "openbox", "xdotool": "xdotool"}
_SSH_SERVER = "openssh-server"
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"  # not on every user's PATH
_SERVICES = "/run/systemd/system"  # there only where services are started

# Run by .venv's Python, anew each time: a process may remember that a library was not there.
_FIND_MISSING = """
import ctypes, glob, os, sys
def missing(name):
    try:
        ctypes.CDLL(name)
    except OSError as error:
        return name if os.sep not in name else str(error).split(":")[0]
found = [missing(name) for name in sys.argv[2:]]
plugins = os.path.join(sys.argv[1], "Qt", "plugins", "platforms")
found += [missing(os.path.join(plugins, "libq" + name + ".so")) for name in ("offscreen", "xcb")]
print("\\n".join(sorted({name for name in found if name})))
"""


def need_qt_parts(display):
    """Sees that Qt can start, by apt where that is possible; SetupError with what is missing."""
    if not sys.platform.startswith("linux") or os.path.exists(_CHECKED):
        return
    missing = missing_libraries()
    packages = sorted({_package(name) for name in missing} - {""})
    if not has_font():
        packages.append(_FONT_PACKAGE)
    if packages and debian_packages.install(packages, "Qt needs system libraries that are missing"):
        missing = missing_libraries()
    _tell_missing(missing, display)
    if not missing and has_font():
        with open(_CHECKED, "w", encoding="utf-8"):
            pass


def need_test_tools():
    """Gets what the tests use where apt may: a virtual screen, and an ssh server of their own.

    Without the one they run offscreen, without the other some are left out.
    """
    import shutil

    if not sys.platform.startswith("linux"):
        return
    packages = [package for tool, package in _TEST_TOOLS.items() if not shutil.which(tool)]
    if packages and not debian_packages.install(packages, "The tests use a virtual screen"):
        say(f"Without {', '.join(packages)} the tests of the window run offscreen.")
    if not has_ssh_server() and not _install_ssh_server():
        say(
            f"Without {_SSH_SERVER} the tests of an engine on another machine are left out. On "
            f"Debian and Ubuntu it comes with: apt install {_SSH_SERVER}"
        )


def has_ssh_server():
    """Whether sshd is installed."""
    import shutil

    return shutil.which("sshd", path=os.environ.get("PATH", "") + ":" + _SBIN) is not None


def _install_ssh_server():
    """Not where that would also open this machine to the network."""
    if os.path.isdir(_SERVICES):
        return False
    return debian_packages.install([_SSH_SERVER], "Tests run an engine through ssh")


def missing_libraries():
    """Names of the libraries that Qt's platform plugins ask for in vain."""
    import subprocess

    qt = _pyside_folder()
    command = [venv_python(), "-c", _FIND_MISSING, qt, *_ANY_SCREEN, *_X11]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split()


def has_font():
    """Whether any font file lies where fontconfig looks by default."""
    home = os.path.expanduser("~")
    folders = ["/usr/share/fonts", "/usr/local/share/fonts", home + "/.fonts"]
    folders.append(home + "/.local/share/fonts")
    for folder in folders:
        for _, _, names in os.walk(folder):
            if any(name.lower().endswith((".ttf", ".otf", ".ttc")) for name in names):
                return True
    return False


def display_works():
    """Whether a window can be shown: asked of the display itself, as Qt would ask."""
    platform = os.environ.get("QT_QPA_PLATFORM", "").split(";")[0].split(":")[0]
    if platform:
        return not platform.startswith(("offscreen", "minimal"))
    if not sys.platform.startswith("linux"):
        return True
    return _x11_answers() or _wayland_answers()


def _x11_answers():
    display = os.environ.get("DISPLAY")
    if not display:
        return False
    import ctypes

    try:
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError:
        return _is_listening("/tmp/.X11-unix/X" + display.rpartition(":")[2].split(".")[0])
    xcb.xcb_connect.restype = ctypes.c_void_p
    connection = ctypes.c_void_p(xcb.xcb_connect(None, None))
    refused = xcb.xcb_connection_has_error(connection)
    xcb.xcb_disconnect(connection)
    return not refused


def _wayland_answers():
    name = os.environ.get("WAYLAND_DISPLAY")
    if not name:
        return False
    return _is_listening(os.path.join(os.environ.get("XDG_RUNTIME_DIR", ""), name))


def _is_listening(path):
    import socket

    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(path) == 0


def _tell_missing(missing, display):
    if not missing:
        return
    packages = sorted({_package(name) or name for name in missing})
    text = (
        f"Qt needs system libraries that are missing here: {', '.join(missing)}. On Debian and "
        f"Ubuntu they come with: apt install {' '.join(packages)}"
    )
    if display or any(name not in _X11 for name in missing):
        raise SetupError(text)
    say(text)


def _package(library):
    return _ANY_SCREEN.get(library) or _X11.get(library) or ""


def _pyside_folder():
    import glob

    found = glob.glob(os.path.join(VENV, "lib", "python3*", "site-packages", "PySide6"))
    return found[0] if found else ""
