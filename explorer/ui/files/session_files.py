"""Opening and saving: dialogs, recent files, what is dropped on the window, the clipboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QMimeData, QObject, QStandardPaths, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QWidget

from explorer import disk, smollm2
from explorer.session.changes import changed
from explorer.session.saving import recovery
from explorer.session.saving.saved_sessions import NOTHING_TO_SAVE
from explorer.session.session import Session
from explorer.session.state import State, model_key
from explorer.ui.files import save_dialog
from explorer.ui.files.dropped_files import local_files
from explorer.ui.files.unsaved_question import Unsaved
from explorer.ui.settings.settings import LastSession, Settings

MOST_PROMPT_BYTES = 1 << 20  # a quarter of a million tokens; the field stays quick to type in
BUNDLED = ("smollm2", "copycat")


class SessionFiles(QObject):
    """Tells the session what to open; remembers what was."""

    recentChanged = Signal()
    saved = Signal(str)  # the name of a file
    copied = Signal()
    dealtWith = Signal(str)  # the path of a kept session that was opened or deleted

    def __init__(
        self, session: Session, memory: Settings, window: QWidget, kept: bool = True
    ) -> None:
        """`kept`: what is on screen when the program ends can be opened again at the next start."""
        super().__init__(window)
        self._session = session
        self._memory = memory
        self._window = window
        self.unsaved = Unsaved(session, self._save_changes, window, self, kept)
        self._unsubscribe = session.subscribe(self._on_state)

    def open(
        self,
        target: str,
        dtype: str | None = None,
        form: str = "",
        cache_type_k: str | None = None,
        gpu_layers: int | None = None,
        device: str | None = None,
        then: Callable[[], object] | None = None,
        anew: bool = True,
    ) -> None:
        """A bundled name, a model folder, a .gguf or a .dxt file; `dtype` None = as before.

        `form` of a .gguf file: empty = as this file was opened last.  `cache_type_k` and
        `gpu_layers` of one opened as it is, None = as before.  `anew`: the user asks for it.

        Over an unsaved run the user is asked first; `then` follows once it is being opened.
        """

        def act() -> None:
            self._open(target, dtype, form, cache_type_k, gpu_layers, device, anew)
            if then is not None:
                then()

        self.unsaved.before(act)

    def _open(
        self,
        target: str,
        dtype: str | None,
        form: str,
        cache_type_k: str | None,
        gpu_layers: int | None,
        device: str | None,
        anew: bool,
    ) -> None:
        if target.lower().endswith(".dxt"):
            self._session.saving.open(target, failed=lambda: self._drop_recent(target))
        else:
            form = form or self._memory.form_of(target)
            self._memory.keep_form(target, form)
            self._session.open_model(
                target,
                dtype,
                device,
                cache_type_k=cache_type_k,
                gpu_layers=gpu_layers,
                form=form,
                anew=anew,
            )
        if target not in BUNDLED:
            self._memory.add_recent(target)
            self.recentChanged.emit()

    def _on_state(self, old: State | None, new: State) -> None:
        if new.unopened and changed(old, new, "unopened"):
            self._drop_recent(new.unopened)

    def _drop_recent(self, target: str) -> None:
        """What can't be opened is offered no more."""
        self._memory.drop_recent(target)
        self.recentChanged.emit()

    def close(self) -> None:
        """Follow the session no longer."""
        self._unsubscribe()

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

    def ask_save(self, then: Callable[[], object] | None = None) -> None:
        """Ask for a name and save; `then` follows once it is written."""
        problem = self._nothing_to_save()
        if problem:
            self._session.report(problem)
            return
        known = self._session.state.file
        start = Path(known) if known else Path(self._folder()) / "session.dxt"
        save_dialog.ask(
            self._window,
            self.tr("Save session"),
            start,
            self.tr("Session (*.dxt)"),
            lambda path: self._save(path, then),
        )

    def _nothing_to_save(self) -> str:
        """Why a session can't be saved yet; empty if it can."""
        state = self._session.state
        if state.step_index is not None or state.batch is not None or state.tree:
            return ""
        if state.status.activity == "running":
            return self.tr(
                "Not saved: the prompt is still being read. You can save the run after its first "
                "token."
            )
        return NOTHING_TO_SAVE

    def _save_changes(self, then: Callable[[], object]) -> None:
        """To the file that was just named to the user, else to one that is asked for."""
        known = self._session.state.file
        if known:
            self._save(Path(known), then)
        else:
            self.ask_save(then)

    def _save(self, path: Path, then: Callable[[], object] | None) -> None:
        self._memory.put("folder", str(path.parent))

        def saved() -> None:
            self._memory.add_recent(str(path))
            self.recentChanged.emit()
            self.saved.emit(path.name)
            if then is not None:
                then()

        self._session.saving.save(path, saved)

    def recover(self, path: str) -> None:
        """Open a session that a crash left."""

        def act() -> None:
            def done() -> None:  # one that can't be read stays on disk, and is offered no more
                self.dealtWith.emit(path)

            self._session.saving.open(path, own=True, then=done, failed=done)

        self.unsaved.before(act)

    def discard_kept(self, path: str) -> None:
        """Delete a session that a crash left."""
        recovery.discard(Path(path))
        self.dealtWith.emit(path)

    def keep_last(self) -> None:
        """Remember what is on screen for `reopen_last`."""
        file = self._session.saving.keep(self._memory.last_run)
        self._memory.remember_session(self._session.state, file)

    def reopen_last(self) -> None:
        """Model, prompt, settings and run of the last session."""
        last = self._memory.last_session()
        if last is not None and last.request.model:
            self.unsaved.before(lambda: self._reopen(last))

    def _reopen(self, last: LastSession) -> None:
        request = last.request
        self._session.open_model(*model_key(request))
        self._set(last)
        if last.file and Path(last.file).is_file():
            own = Path(last.file) == self._memory.last_run
            # What was set may be newer than the run.
            self._session.saving.open(last.file, own, lambda: self._set(last))

    def _set(self, last: LastSession) -> None:
        request, session = last.request, self._session
        session.set_prompt(request.prompt)
        session.set_chat(request.chat)
        session.set_special_as_text(request.special_as_text)
        session.set_causal_mask(request.causal_mask)
        session.set_cache(request.cache)
        session.set_padding(request.padding, request.pad)
        session.set_sampling(last.sampling)

    def open_first(self, target: str | None, form: str = "") -> None:
        """At the start: what was asked for, else a bundled model that is there."""
        bundled = smollm2.NAME if smollm2.is_here() else "copycat"
        self.open(target or bundled, form=form, anew=target is not None)

    def copy_generated(self) -> None:
        """The generated tokens as text; half characters at the end are left out."""
        trace = self._session.state.trace
        if trace is not None:
            data = b"".join(token.raw for token in trace.chosen if not token.special)
            QGuiApplication.clipboard().setText(data.decode("utf-8", "ignore"))
            self.copied.emit()

    @staticmethod
    def droppable(data: QMimeData) -> str:
        """The local path that was dropped if it can be opened; else ""."""
        files = local_files(data)
        if len(files) != 1:
            return ""
        path = Path(files[0])
        return str(path) if path.is_dir() or path.suffix.lower() in (".dxt", ".gguf") else ""

    def take(self, data: QMimeData) -> str:
        """Open what was dropped, or put its text in the prompt; else a sentence why not."""
        path = self.droppable(data)
        if path:
            self.open(path)
            return ""
        files = local_files(data)
        if len(files) != 1:
            return self.tr("Drop one file or folder from this computer at a time.")
        if Path(files[0]).suffix.lower() != ".txt":
            return self.tr(
                "{0} can't be opened. Drop a model folder, a .gguf file, a saved "
                "session (.dxt) or a prompt as a text file (.txt)."
            ).format(Path(files[0]).name)
        try:
            self._session.set_prompt(disk.read_text(files[0], MOST_PROMPT_BYTES))
        except disk.TextError as error:
            return str(error)
        return ""

    def _took(self, chosen: str) -> None:
        self._memory.put("folder", str(Path(chosen).parent))
        self.open(chosen)

    def _folder(self) -> str:
        remembered = self._memory.text("folder")
        if remembered and Path(remembered).is_dir():
            return remembered
        return QStandardPaths.writableLocation(QStandardPaths.StandardLocation.HomeLocation)
