"""Makes what is handed in from what is on screen, and writes it in the background."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QStandardPaths, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from explorer.notebooks import script
from explorer.notebooks.notebook_file import notebook
from explorer.notebooks.script import OnScreen, ScriptCell, ScriptError
from explorer.session.session import Session
from explorer.session.state import State
from explorer.ui.dialogs.hand_in import gif_file, report_page
from explorer.ui.dialogs.hand_in.gif_dialog import GifDialog
from explorer.ui.dialogs.hand_in.report import Answer, Picture, Report
from explorer.ui.dialogs.hand_in.report_dialog import ReportDialog
from explorer.ui.dialogs.hand_in.trimmed import trimmed
from explorer.ui.files import export, save_dialog
from explorer.ui.files.background_saving import BackgroundSaving
from explorer.ui.frame.docks import Docks

_FILMED = ("attention", "next-token")  # panels, in this order


class HandIn(QObject):
    """One for a window; `saving.button` shows what is being written, and cancels it."""

    failed = Signal(str)  # one sentence
    copied = Signal()

    def __init__(self, session: Session, docks: Docks, window: QWidget) -> None:
        super().__init__(window)
        self._session, self._docks, self._window = session, docks, window
        self.saving = BackgroundSaving(self)
        self.saving.failed.connect(self.failed)

    # -- the run as Python

    def copy_python(self) -> None:
        """Put a script that repeats the run on the clipboard."""
        cells = self._cells()
        if cells:
            QGuiApplication.clipboard().setText(script.python(cells))
            self.copied.emit()

    def save_notebook(self) -> None:
        """Ask for a name and save the same as a notebook."""
        cells = self._cells()
        if cells:
            self._ask(
                self.tr("Save as notebook"),
                "ipynb",
                self.tr("Jupyter notebook (*.ipynb)"),
                notebook(cells),
            )

    def _cells(self) -> list[ScriptCell]:
        """The cells of the script; none, and a sentence for the user, if there can be none."""
        state = self._session.state
        trace, index = state.trace, state.step_index
        if trace is None or index is None:
            return []
        known = state.card if state.model_of_run and state.card is not None else trace.card
        card = trace.card if trace.card.path else known
        seen = state.selection
        at = OnScreen(step=index, layer=seen.layer, head=seen.head, query=seen.query)
        try:
            return script.cells(trace, card, at)
        except ScriptError as error:
            self.failed.emit(str(error))
            return []

    # -- the report

    def make_report(self) -> None:
        """Ask what goes into a report; answers given in lessons can be among it."""
        state = self._session.state
        if state.trace is None or not state.trace.steps:
            return
        answers = [Answer(*row) for row in self._session.answers.rows]
        dialog = ReportDialog(state, self._pictures(), answers, self._window)
        dialog.wanted.connect(self._save_report)
        dialog.open()

    def _pictures(self) -> list[Picture]:
        """What every panel on screen shows."""
        found = []
        for dock in self._docks.docks:
            # Disabled: a lesson covers it until its question is answered.
            if not dock.in_front or dock.panel.empty or not dock.panel.isEnabled():
                continue
            for name, view in dock.panel.views().items():
                if view.widget.isVisibleTo(dock.panel):  # not one that another page hides
                    caption = dock.panel.caption_of(name, view)
                    picture = trimmed(export.picture(view.widget))
                    found.append(Picture(name, caption, picture))
        return found

    def _save_report(self, report: Report, kind: str) -> None:
        words = self.tr("PDF (*.pdf)") if kind == "pdf" else self.tr("Web page (*.html)")
        make = report_page.pdf if kind == "pdf" else report_page.html
        self._ask(self.tr("Save the report"), kind, words, make(report), report.title)

    # -- the moving picture

    def save_gif(self) -> None:
        """Ask how, then paint the steps of the run and write them."""
        state = self._session.state
        if state.trace is None or not state.trace.steps:
            return
        if any(dock.made and not dock.panel.isEnabled() for dock in self._docks.docks):
            self.failed.emit(
                self.tr(
                    "A GIF would show the answer to the lesson's question. Answer the question "
                    "first, then save the GIF."
                )
            )
            return
        panels = [d.panel for d in self._docks.docks if d.place.id in _FILMED]
        dialog = GifDialog(state, panels, panels[0].theme, self._window)
        name = f"{self._stem('')}.gif"
        dialog.asked.connect(
            lambda: save_dialog.ask(
                dialog,
                self.tr("Save as GIF"),
                Path(documents()) / name,
                self.tr("GIF (*.gif)"),
                dialog.paint,
            )
        )
        dialog.made.connect(self._write_gif)
        dialog.open()

    def _write_gif(self, path: Path, frames: list[Any], frame_ms: int) -> None:
        self.saving.write(path, gif_file.writing(path, frames, frame_ms))

    def _ask(self, title: str, ending: str, kinds: str, data: bytes, name: str = "") -> None:
        """Ask for a name, then write `data` there."""
        start = Path(documents()) / f"{self._stem(name)}.{ending}"
        save_dialog.ask(
            self._window,
            title,
            start,
            kinds,
            lambda path: self.saving.write(path, export.whole(path, data)),
        )

    def _stem(self, name: str) -> str:
        return export.file_stem(model_name(self._session.state), name or "run")


def documents() -> str:
    """The user's folder for documents."""
    return QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)


def model_name(state: State) -> str:
    """The model of the run, as a name."""
    return "" if state.trace is None else state.trace.model_name
