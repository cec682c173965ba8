"""The program in the user's own menu on Linux: its icon, its entry, and the type of .dxt files.

Everything goes into ~/.local/share, or where XDG_DATA_HOME says; nothing needs root, and all of
it can be removed again. Standard library only, and readable by Python 3.9.
"""

import contextlib
import os
import sys

from setup_env import ROOT
from setup_messages import SetupError, say

OFFER = (
    "To have the program in your menu, and .dxt files open with it: "
    "python3 packaging/run.py --install-desktop"
)
_HERE = os.path.join(ROOT, "packaging", "desktop")
_ICON = os.path.join(ROOT, "assets", "decoder-explorer.svg")
ENTRY = "applications/decoder-explorer.desktop"
FILES = {
    "icons/hicolor/scalable/apps/decoder-explorer.svg": _ICON,
    "icons/hicolor/scalable/mimetypes/application-x-decoder-explorer-session.svg": _ICON,
    "mime/packages/decoder-explorer.xml": os.path.join(_HERE, "decoder-explorer.xml"),
    "metainfo/decoder-explorer.metainfo.xml": os.path.join(_HERE, "decoder-explorer.metainfo.xml"),
    ENTRY: os.path.join(_HERE, "decoder-explorer.desktop"),
}
_UPDATES = (
    ("update-mime-database", "mime"),
    ("update-desktop-database", "applications"),
    ("gtk-update-icon-cache", "-q", "-t", "-f", "icons/hicolor"),
)


def possible():
    """Whether this system has such menus."""
    return sys.platform.startswith("linux")


def install(python):
    """Put the entry, which starts this checkout's program, and what belongs to it in place."""
    _need_linux()
    share = data_home()
    for name, source in FILES.items():
        with open(source, encoding="utf-8") as file:
            text = file.read()
        if name == ENTRY:
            text = entry(text, [python, "-P", "-m", "explorer"])
        _write(os.path.join(share, name), text)
    _update(share)
    say(f"Decoder Explorer is in your menu, and .dxt files open with it ({share}).")
    say("To remove it from there: python3 packaging/run.py --remove-desktop")


def remove():
    """Take away what `install` put in place."""
    _need_linux()
    share = data_home()
    there = [name for name in FILES if os.path.exists(os.path.join(share, name))]
    for name in there:
        try:
            os.remove(os.path.join(share, name))
        except OSError as error:
            raise SetupError(f"{error.filename} could not be removed: {error.strerror}.") from error
    if there:
        _update(share)
    say("Decoder Explorer is no longer in your menu." if there else "It was not in your menu.")


def data_home():
    """The user's folder for such files; a relative XDG_DATA_HOME is to be ignored."""
    chosen = os.environ.get("XDG_DATA_HOME", "")
    if os.path.isabs(chosen):
        return chosen
    return os.path.join(os.path.expanduser("~"), ".local", "share")


def entry(text, command):
    """The entry with this command in place of the program's bare name."""
    words = " ".join([*map(quoted, command), "%f"])
    return text.replace("Exec=decoder-explorer %f", f"Exec={words}")


def quoted(word):
    """One argument of an Exec line: quoted, and then escaped as any value of such a file."""
    inner = "".join("\\" + c if c in '"`$\\' else c for c in word).replace("%", "%%")
    return '"' + inner.replace("\\", "\\\\") + '"'


def _need_linux():
    if not possible():
        raise SetupError("Menu entries of this kind are for Linux; start the program with run.py.")


def _write(path, text):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise SetupError(f"{path} could not be written: {error.strerror}.") from error


def _update(share):
    """Tell the desktop; without these programs it finds out by itself, only later."""
    import subprocess

    for program, *options in _UPDATES:
        folder = os.path.join(share, options[-1])
        if os.path.isdir(folder):
            command = [program, *options[:-1], folder]
            with contextlib.suppress(OSError):
                subprocess.run(command, capture_output=True, check=False)
