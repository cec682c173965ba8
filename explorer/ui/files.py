"""Opening and saving: dialogs, recent files, what is dropped on the window, the clipboard."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QMimeData, QObject, QStandardPaths, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QWidget

from explorer import places
from explorer.session.session import Session
from explorer.ui.memory import Memory

BUNDLED = ("smollm2", "copycat")


class Files(QObject):
    """Tells the session what to open; remembers what was."""

    recentChanged = Signal()

    def __init__(self, session: Session, memory: Memory, window: QWidget) -> None:
        super().__init__(window)
        self._session = session
        self._memory = memory
        self._window = window

    def open(self, target: str, dtype: str | None = None) -> None:
        """A bundled name, a model folder, a .gguf or a .dxt file; `dtype` None = as before."""
        if target.lower().endswith(".dxt"):
            self._session.open_trace(target)
        else:
            self._session.open_model(target, dtype)
        if target not in BUNDLED:
            self._memory.add_recent(target)
            self.recentChanged.emit()

    def ask_file(self) -> None:
        kinds = self.tr("Sessions and models (*.dxt *.gguf)")
        chosen, _ = QFileDialog.getOpenFileName(
            self._window, self.tr("Open file"), self._folder(), kinds
        )
        if chosen:
            self._took(chosen)

    def ask_folder(self) -> None:
        chosen = QFileDialog.getExistingDirectory(
            self._window, self.tr("Open model folder"), self._folder()
        )
        if chosen:
            self._took(chosen)

    def ask_save(self) -> None:
        start = str(Path(self._folder()) / "session.dxt")
        chosen, _ = QFileDialog.getSaveFileName(
            self._window, self.tr("Save session"), start, self.tr("Session (*.dxt)")
        )
        if not chosen:
            return
        path = chosen if chosen.lower().endswith(".dxt") else f"{chosen}.dxt"
        self._memory.put("folder", str(Path(path).parent))
        self._session.save_trace(path)
        self._memory.add_recent(path)
        self.recentChanged.emit()

    def reopen_last(self) -> None:
        """Model, prompt and settings of the last session."""
        last = self._memory.last_session()
        if last is None or not last.request.model:
            return
        request, session = last.request, self._session
        session.open_model(request.model, request.dtype, request.device, request.mode)
        session.set_prompt(request.prompt)
        session.set_chat(request.chat)
        session.set_special_as_text(request.special_as_text)
        session.set_causal_mask(request.causal_mask)
        session.set_cache(request.cache)
        session.set_padding(request.padding, request.pad)
        session.set_sampling(last.sampling)

    def open_first(self, target: str | None) -> None:
        """At the start: what was asked for, else a bundled model that is there."""
        if target is None:
            there = (places.models_folder() / "smollm2").is_dir()
            target = "smollm2" if there else "copycat"
        self.open(target)

    def copy_generated(self) -> None:
        """The generated tokens as text; half characters at the end are left out."""
        trace = self._session.state.trace
        if trace is not None:
            data = b"".join(token.raw for token in trace.chosen if not token.special)
            QGuiApplication.clipboard().setText(data.decode("utf-8", "ignore"))

    @staticmethod
    def droppable(data: QMimeData) -> str:
        """The local path that was dropped if it can be opened; else ""."""
        urls = [url for url in data.urls() if url.isLocalFile()]
        if len(urls) != 1:
            return ""
        path = Path(urls[0].toLocalFile())
        return str(path) if path.is_dir() or path.suffix.lower() in (".dxt", ".gguf") else ""

    def _took(self, chosen: str) -> None:
        self._memory.put("folder", str(Path(chosen).parent))
        self.open(chosen)

    def _folder(self) -> str:
        remembered = self._memory.text("folder")
        if remembered and Path(remembered).is_dir():
            return remembered
        return QStandardPaths.writableLocation(QStandardPaths.StandardLocation.HomeLocation)
