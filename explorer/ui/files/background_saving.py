"""Saving and copying what takes long: in the background, with its progress, and a way to end it."""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic

from PySide6.QtCore import QMimeData, QObject, Signal
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QToolButton

from explorer.figures.text import sentences, table_text
from explorer.ui.files import export
from explorer.ui.files.export import Kind, View
from explorer.ui.kit.names import literal
from explorer.ui.threads.worker import TURN, Worker

_PORTION = 0.02  # seconds of one turn
_TOLD_EVERY = 0.2  # seconds
_MIME: dict[table_text.Form, str] = {"tab": "text/plain", "html": "text/html", "csv": "text/csv"}


class BackgroundSaving(QObject):
    """Writes files and tables; `button` shows how far the newest is, and cancels all."""

    failed = Signal(str)  # one sentence
    saved = Signal(str)  # the name of a file
    copied = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._worker: Worker | None = None  # made when something is first saved
        self._open: set[str] = set()  # what is being written
        self.button = QToolButton()
        self.button.setProperty("look", "title-button")
        self.button.setToolTip(self.tr("Cancel saving"))
        self.button.setVisible(False)
        self.button.clicked.connect(self.cancel)

    @property
    def busy(self) -> bool:
        """True while something is being written."""
        return bool(self._open)

    def save(self, view: View, title: str, path: Path, kind: Kind, caption: str = "") -> None:
        """Write a view as it is on screen now."""
        self.write(path, export.writing(view, title, path, kind, caption))

    def write(self, path: Path, rows: Generator[int]) -> None:
        """Let `rows` write a file; it says how far it is."""
        self._start(
            str(path),
            path.name,
            lambda: _told(rows),
            lambda error: self._fail(path, error),
            lambda: self.saved.emit(path.name),
        )

    def copy(self, rows: Iterable[Sequence[object]], picture: QImage | None = None) -> None:
        """Put a table on the clipboard as tab-separated text, HTML and CSV, with its picture."""
        ready = export.begun(rows)
        forms = {form: io.StringIO(newline="") for form in _MIME}
        self._start(
            "table",
            self.tr("table"),
            lambda: _told(table_text.write_forms(ready, forms)),
            None,
            lambda: self._put_on_clipboard(forms, picture),
        )

    def _put_on_clipboard(
        self, forms: Mapping[table_text.Form, io.StringIO], picture: QImage | None
    ) -> None:
        data = QMimeData()
        for form, out in forms.items():
            if out.tell():
                data.setData(_MIME[form], out.getvalue().encode("utf-8", "replace"))
        if picture is not None:
            data.setImageData(picture)
        QGuiApplication.clipboard().setMimeData(data)
        self.copied.emit()

    def cancel(self) -> None:
        """End what is being written; nothing of it stays."""
        for lane in self._open:
            assert self._worker is not None
            self._worker.drop(lane)
        self._open.clear()
        self.button.setVisible(False)

    def _start(
        self,
        lane: str,
        name: str,
        work: Callable[[], Iterator[object]],
        failed: Callable[[Exception], None] | None,
        done: Callable[[], None] = lambda: None,
    ) -> None:
        if self._worker is None:
            self._worker = Worker(self)
        self._open.add(lane)
        self._say(name, 0)

        def heard(rows: int | None) -> None:
            if rows is None:
                self._close(lane)
                done()
            else:
                self._say(name, rows)

        self._worker.ask(lane, work, heard, failed)

    def _close(self, lane: str) -> None:
        self._open.discard(lane)
        self.button.setVisible(self.busy)

    def _say(self, name: str, rows: int) -> None:
        how_far = self.tr("{0} rows").format(f"{rows:,}") if rows > 1 else "…"
        self.button.setText(self.tr("{0}: {1} ✕").format(literal(name), how_far))
        self.button.setAccessibleName(self.tr("Cancel saving {0}").format(name))
        self.button.setVisible(True)

    def _fail(self, path: Path, error: Exception) -> None:
        self._close(str(path))
        if not isinstance(error, OSError | MemoryError):
            raise error
        why = error.strerror if isinstance(error, OSError) else self.tr("not enough memory")
        self.failed.emit(
            self.tr(
                "{0} could not be saved: {1}. Your run is still here. Choose another folder."
            ).format(sentences.name(path.name), why or error)
        )


def _told(rows: Generator[int]) -> Iterator[object]:
    """Rows done now and then, turns in between, and None at the end; ended early it ends `rows`."""
    began = told = monotonic()
    try:
        for count in rows:
            now = monotonic()
            if now - told >= _TOLD_EVERY:
                began = told = now
                yield count
            elif now - began >= _PORTION:
                began = now
                yield TURN
        yield None
    finally:
        rows.close()
