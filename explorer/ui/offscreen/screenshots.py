"""Pictures of the real window on a saved session, taken without anybody at the screen."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QApplication, QWidget

from explorer import disk
from explorer.session.session import Session
from explorer.ui.files import export
from explorer.ui.offscreen.event_loop import run_until
from explorer.ui.window import Window

SIZE = (1440, 900)
PATIENCE_MS = 60_000
QUIET_MS = 400  # nothing was repainted for so long: the workers are done


class PictureError(Exception):
    """One sentence: the session could not be opened, or a picture not written."""


def take(
    app: QApplication, window: Window, session: Session, folder: Path, file: Path
) -> list[Path]:
    """Open `file`, and save the window and each panel, light and dark, as PNG in `folder`."""
    if not file.exists():
        raise PictureError(f"There is no file {file}; save one with `decoder-explorer trace`.")
    window.resize(*SIZE)
    window.show()
    session.saving.open(str(file))
    run_until(
        app, lambda: session.state.trace is not None or bool(session.state.error), PATIENCE_MS
    )
    if session.state.trace is None:
        raise PictureError(session.state.error or f"{file} could not be opened in time.")
    window.reset_layout()  # the session may have been left with one panel in place of all
    names: list[Path] = []
    folder.mkdir(parents=True, exist_ok=True)
    for theme in ("light", "dark"):
        window.look.set_theme(theme)
        run_until(app, lambda: False, QUIET_MS)  # maps that are worked out in the background
        names.append(_save(window, folder / f"window-{theme}.png"))
        for dock in (dock for dock in window.docks.docks if not dock.isHidden()):
            names.append(_save(dock, folder / f"{dock.place.id}-{theme}.png"))
    return names


def _save(widget: QWidget, path: Path) -> Path:
    try:
        disk.write(path, export.png(widget.grab().toImage()))
    except OSError as error:
        words = f"The picture {path} could not be written: {disk.why(error)}."
        raise PictureError(words) from error
    return path
