"""The one save dialog: asks for a name, adds the ending, asks before it replaces a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

translate = QCoreApplication.translate


def ask(
    parent: QWidget, title: str, start: Path, kinds: str, then: Callable[[Path], object]
) -> None:
    """Ask where to save; `then` gets the path, with the ending of `start`.

    Nothing happens if the user gives no name, or keeps the file that has it.
    """
    chosen, _ = QFileDialog.getSaveFileName(parent, title, str(start), kinds)
    if not chosen:
        return
    path = with_ending(Path(chosen), start.suffix.lower())
    # The dialog has asked about the name that it gave, but not about the one with an ending.
    if path == Path(chosen) or not path.exists():
        then(path)
    else:
        _ask_to_replace(parent, path, then)


def with_ending(path: Path, ending: str) -> Path:
    """The same name with `ending` (".csv") at its end, once; dots within a name are a name's."""
    return path if path.name.lower().endswith(ending) else path.with_name(path.name + ending)


def _ask_to_replace(parent: QWidget, path: Path, then: Callable[[Path], object]) -> None:
    box = QMessageBox(
        QMessageBox.Icon.Warning, translate("save_as", "Replace the file?"), "", parent=parent
    )
    box.setObjectName("replace")
    box.setText(translate("save_as", "{0} already exists.").format(path.name))
    box.setInformativeText(translate("save_as", "Its current content will be lost."))
    replace = box.addButton(translate("save_as", "Replace"), QMessageBox.ButtonRole.DestructiveRole)
    keep = box.addButton(QMessageBox.StandardButton.Cancel)
    box.setDefaultButton(keep)
    replace.clicked.connect(lambda: then(path))
    present(box)


def present(box: QMessageBox) -> None:
    """Show a question without stopping the program; names in it are letters, never markup."""
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.open()
