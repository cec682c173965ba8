"""The models on this computer: found, filtered, weighed against the memory, opened."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import get_args

from PySide6.QtCore import QEvent, QModelIndex, QObject, Qt, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent, QShowEvent
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QHeaderView,
    QInputDialog,
    QLabel,
    QLineEdit,
    QMenu,
    QPushButton,
    QTableView,
    QWidget,
)

from explorer import smollm2
from explorer.figures.text.sentences import fitting
from explorer.session.changes import changed
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.found_models import FoundModel, Library
from explorer.trace.request import MOST_GPU_LAYERS, CacheType, Form, usual_form
from explorer.ui.dialogs import engines, loading_words
from explorer.ui.dialogs.engines import EnginesDialog
from explorer.ui.dialogs.model_table import ModelFilter, ModelTable
from explorer.ui.inputs.smollm2_download import Smollm2Download
from explorer.ui.kit import boxes
from explorer.ui.kit.names import literal
from explorer.ui.kit.screen_fit import Dialog
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.wheel_guard import ComboBox, SpinBox
from explorer.ui.settings.settings import Settings
from explorer.wording import short_bytes

_DEVICES = ["cpu", "auto", "cuda", "mps"]


class ModelPicker(Dialog):
    """Stays open beside the window; what it shows is the session's library."""

    # What to open, dtype, form, type of the cached keys, layers on a GPU, device.
    chosen = Signal(str, str, str, str, int, str)
    download = Signal()

    def __init__(self, session: Session, memory: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session, self._memory = session, memory
        self._engines: EnginesDialog | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._library = Library()
        self._commands: list[tuple[str, ...]] = []  # of the engines, in their order
        self.engine = ComboBox()
        self.engine.setAccessibleName(self.tr("Engine"))
        self.engine.setToolTip(self.tr("Whose processor computes. Listed are the models there."))
        self.engine.activated.connect(self._choose_engine)
        self.resize(1000, 520)
        self.table = ModelTable(self)
        self.rows = ModelFilter(self.table, self)
        self.filter = QLineEdit()
        self.filter.setPlaceholderText(self.tr("Filter by name, architecture or folder"))
        self.filter.setAccessibleName(self.tr("Filter"))
        self.filter.setClearButtonEnabled(True)
        self.filter.textChanged.connect(self._narrow)
        self.filter.installEventFilter(self)
        self.view = self._build_view()
        self.note = self._label("muted")
        self.smollm2 = Smollm2Download(session)
        self.smollm2.chosen.connect(self._open_smollm2)
        self.needs = self._label("")
        self.dtype = ComboBox()
        self.dtype.addItems(list(loading_words.DTYPES))
        self.dtype.setAccessibleName(self.tr("Open as dtype"))
        self.dtype.currentIndexChanged.connect(self._weigh)
        self.device = ComboBox()
        self.device.setEditable(True)  # for a limit, or the number of a GPU
        self.device.addItems(_DEVICES)
        self.device.setAccessibleName(self.tr("Device"))
        self.device.setToolTip(
            self.tr(
                "cpu; cuda or mps for a GPU; auto to spread a large model over GPUs, memory and "
                "disk; auto:2GB to leave it no more than 2 GB of memory. No GPU has been tested."
            )
        )
        self.keys_label = QLabel(self.tr("Keys in"))
        self.cache_type_k = ComboBox()  # of a .gguf file that is opened as it is
        self.cache_type_k.addItems(list(get_args(CacheType)))
        self.cache_type_k.setAccessibleName(self.tr("Keep keys in"))
        self.cache_type_k.setToolTip(
            self.tr(
                "How llama.cpp keeps the keys of a file opened as it is. Smaller types take less "
                "memory and change the model's numbers. Values stay in f16: llama.cpp packs them "
                "only with flash attention, which shows no attention weights."
            )
        )
        self.gpu_label = QLabel(self.tr("GPU layers"))
        self.gpu_layers = SpinBox()  # likewise
        self.gpu_layers.setMaximum(MOST_GPU_LAYERS)
        self.gpu_layers.setAccessibleName(self.tr("GPU layers"))
        self.gpu_layers.setToolTip(
            self.tr(
                "How many layers llama.cpp puts on the GPU, from the last one back. A number "
                "above the model's means all. This program has not been tested with a GPU."
            )
        )
        self._conversions = self._label("small")
        self._build_buttons()
        self._lay_out()

    def _label(self, look: str) -> QLabel:
        return SentenceLabel(look=look)

    def _build_view(self) -> QTableView:
        view = QTableView()
        view.setModel(self.rows)
        view.setAccessibleName(self.tr("Models"))
        view.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        view.setSelectionMode(QTableView.SelectionMode.SingleSelection)
        view.setSortingEnabled(True)
        self.rows.sort(-1)
        view.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        view.setShowGrid(False)
        view.setTabKeyNavigation(False)
        view.setWordWrap(False)
        view.setTextElideMode(Qt.TextElideMode.ElideMiddle)  # what tells files apart ends a name
        view.verticalHeader().hide()
        view.horizontalHeader().setHighlightSections(False)
        view.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        view.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        view.setStyleSheet("QTableView::item { padding: 0 8px; }")
        view.activated.connect(self._open)
        view.selectionModel().currentRowChanged.connect(self._weigh)
        return view

    def _build_buttons(self) -> None:
        self.add = QPushButton(self.tr("Add folder…"))
        self.add.clicked.connect(self._ask_folder)
        self.folders = QPushButton(self.tr("Folders"))
        self.folders.setToolTip(self.tr("Folders you added. Click one to stop searching it."))
        self._folder_menu = QMenu(self.folders)
        self.folders.setMenu(self._folder_menu)
        self.engines_button = QPushButton(self.tr("Engines…"))
        self.engines_button.setToolTip(self.tr("Run models on another machine, by ssh"))
        self.engines_button.clicked.connect(self._edit_engines)
        self.again = QPushButton(self.tr("Rescan"))
        self.again.clicked.connect(lambda: self._session.models.find())
        self.hub = QPushButton(self.tr("Download from the Hub…"))
        self.hub.clicked.connect(self.download)
        self.clear = QPushButton(self.tr("Clear"))
        self.clear.setAccessibleName(self.tr("Clear converted GGUF files"))
        self.clear.clicked.connect(lambda: self._session.models.find(clear_conversions=True))
        self.open_button = QPushButton(self.tr("Open"))
        self.open_button.setProperty("look", "primary")
        self.open_button.clicked.connect(self._open)
        self.other_button = QPushButton()  # of a .gguf file: the form that is not the usual one
        self.other_button.clicked.connect(lambda: self._open_in(_forms(self.current())[1]))
        self.close_button = QPushButton(self.tr("Close"))
        self.close_button.clicked.connect(self.close)
        for button in self.findChildren(QPushButton):
            button.setAutoDefault(False)

    def _lay_out(self) -> None:
        top, middle, bottom = QHBoxLayout(), QHBoxLayout(), QHBoxLayout()
        top.addWidget(self.engine)
        top.addWidget(self.engines_button)
        top.addWidget(self.filter, 1)
        for button in (self.add, self.folders, self.again, self.hub):
            top.addWidget(button)
        middle.addWidget(self.needs, 1)
        middle.addWidget(QLabel(self.tr("Open as")))
        middle.addWidget(self.dtype)
        middle.addWidget(QLabel(self.tr("on")))
        middle.addWidget(self.device)
        middle.addWidget(self.keys_label)
        middle.addWidget(self.cache_type_k)
        middle.addWidget(self.gpu_label)
        middle.addWidget(self.gpu_layers)
        bottom.addWidget(self._conversions)
        bottom.addWidget(self.clear)
        bottom.addStretch(1)
        bottom.addWidget(self.close_button)
        bottom.addWidget(self.other_button)
        bottom.addWidget(self.open_button)
        self.view.setMinimumHeight(60)
        column = boxes.column(None, self.smollm2, top, (self.view, 1), self.note, middle)
        self.lay_out(column, bottom)

    # -- what is shown

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._unsubscribe is None:
            self._unsubscribe = self._session.subscribe(self._follow)
            state = self._session.state
            self.dtype.setCurrentText(state.request.dtype)
            self.device.setCurrentText(state.request.device)
            self.cache_type_k.setCurrentText(state.request.cache_type_k)
            self.gpu_layers.setValue(state.request.gpu_layers)
            self._list_engines()
            self._show(state)
            self.smollm2.show_state(None, state)
            self._session.models.find()
        self.filter.setFocus()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _follow(self, old: State, new: State) -> None:
        self.smollm2.show_state(old, new)
        if changed(old, new, "library", "finding", "library_problem", "host"):
            self._show(new)
        began = old.status.activity == "starting" != new.status.activity
        if began and new.status.activity != "lost":
            self._session.models.find()  # of the engine that was chosen
        fetched = new.download.stage == "done" != old.download.stage
        if fetched and new.download.repo == smollm2.NAME:
            self._session.models.find()  # the list shows it at once

    def _show(self, state: State) -> None:
        kept = self.current()
        self.setWindowTitle(
            self.tr("Models on {0}").format(fitting(state.host))
            if state.host
            else self.tr("Models on this computer")
        )
        self._library = state.library or Library()
        self.table.set_models(self._library.models, self._library.available_bytes)
        self._select(kept)
        looking = self.tr("Searching for models…") if state.finding else ""
        nothing = self.tr(
            "No models found. Add the folder that contains yours, or download one from the Hub."
        )
        empty = "" if self.table.models or state.library is None else nothing
        self.note.setText(state.library_problem or looking or empty)
        self.note.setVisible(bool(self.note.text()))
        self.again.setEnabled(not state.finding)
        self.hub.setEnabled(not self._library.offline)
        self.hub.setToolTip(self._library.offline)
        self._show_places()
        self._weigh()

    def _show_places(self) -> None:
        self._folder_menu.clear()
        for folder in self._library.folders:
            self._folder_menu.addAction(
                self.tr("Stop searching {0}").format(literal(folder)),
                partial(self._session.models.find, remove_folder=folder),
            )
        self.folders.setVisible(bool(self._library.folders))
        size = self._library.conversions_bytes
        self._conversions.setText(
            self.tr("Converted GGUF files use {0} of disk space").format(short_bytes(size))
        )
        self._conversions.setVisible(bool(size))
        self.clear.setVisible(bool(size))

    def current(self) -> FoundModel | None:
        """The model of the selected row."""
        return self.rows.found(self.view.currentIndex())

    def _select(self, wanted: FoundModel | None) -> None:
        """The row that was selected before, else the first."""
        shown = [self.rows.index(row, 0) for row in range(self.rows.rowCount())]
        named = None if wanted is None else (wanted.name, wanted.path)
        found = ((at, self.rows.found(at)) for at in shown)
        same = (at for at, one in found if one is not None and (one.name, one.path) == named)
        at = next(same, shown[0] if shown else QModelIndex())
        self.view.setCurrentIndex(at)

    def _narrow(self, text: str) -> None:
        kept = self.current()
        self.rows.set_words(text)
        self._select(kept)
        self._weigh()

    def _weigh(self) -> None:
        found = self.current()
        self._name_buttons(found)
        if found is None:
            self.needs.setText("")
            return
        dtype, available = self.dtype.currentText(), self._library.available_bytes
        needs = loading_words.needs(found, dtype, available, self.tr)
        cautions = loading_words.cautions(found, self._library.gpu, self.tr)
        self.needs.setText(f"{needs} {cautions}".strip())
        fits = any(loading_words.fits(found, form, available) for form in (dtype, "as-is"))
        look = "" if fits else "error"
        if self.needs.property("look") != look:
            self.needs.setProperty("look", look)
            self.needs.style().polish(self.needs)

    def _name_buttons(self, found: FoundModel | None) -> None:
        """One button opens a model; a .gguf file has one for each form, the usual one last."""
        ready = found is not None and not found.incomplete
        both = ready and found is not None and found.is_gguf
        words = {
            "as-is": self.tr("Open as it is"),
            "float32": self.tr("Open as {0}").format(self.dtype.currentText()),
        }
        self.open_button.setEnabled(ready)
        usual, other = _forms(found)
        self.open_button.setText(words[usual] if usual else self.tr("Open"))
        self.other_button.setText(words.get(other, ""))
        for widget in (self.other_button, self.keys_label, self.cache_type_k):
            widget.setVisible(both)
        for gpu in (self.gpu_label, self.gpu_layers):
            gpu.setVisible(both and self._library.gpu)

    # -- engines

    def _list_engines(self) -> None:
        """This computer, the user's engines, and one that was given on the command line."""
        now = self._session.engine_command
        known = [(one.name, engines.words_of(one.command)) for one in self._memory.engines()]
        self._commands = [(), *(words for _, words in known if words)]
        self.engine.clear()
        self.engine.addItem(self.tr("This computer"))
        self.engine.addItems([name for name, words in known if words])
        if now not in self._commands:
            self._commands.append(now)
            self.engine.addItem(fitting(" ".join(now)))
        self.engine.setCurrentIndex(self._commands.index(now))

    def _choose_engine(self, place: int) -> None:
        command = self._commands[place]
        self._memory.put("engine", shlex.join(command))
        self._session.choose_engine(command)

    def _edit_engines(self) -> None:
        if self._engines is None:
            self._engines = EnginesDialog(self._session, self._memory, self)
            self._engines.changed.connect(self._list_engines)
        self._engines.show()

    # -- requests

    def _open(self) -> None:
        self._open_in(_forms(self.current())[0])

    def _open_in(self, form: str) -> None:
        found = self.current()
        if found is not None and not found.incomplete:
            keys, gpu_layers, device = "f16", 0, self.device.currentText().strip() or "cpu"
            if form == "as-is":
                keys, device = self.cache_type_k.currentText(), "cpu"
                gpu_layers = self.gpu_layers.value() if self._library.gpu else 0
            target = loading_words.target(found)
            self.chosen.emit(target, self.dtype.currentText(), form, keys, gpu_layers, device)
            self.close()

    def _open_smollm2(self, name: str) -> None:
        self.chosen.emit(name, self.dtype.currentText(), "", "f16", 0, "cpu")
        self.close()

    def _ask_folder(self) -> None:
        title, host = self.tr("Search this folder for models"), self._session.state.host
        if host:
            words = self.tr("Folder on {0}").format(fitting(host))
            folder = QInputDialog.getText(self, title, words)[0]
        else:
            folder = QFileDialog.getExistingDirectory(self, title)
        if folder:
            self._session.models.find(add_folder=folder)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """In the filter, up and down move in the list, and Enter opens."""
        if watched is self.filter and isinstance(event, QKeyEvent):
            pressed = event.type() == QEvent.Type.KeyPress
            if pressed and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._open()
                return True
            if pressed and event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down):
                self.view.keyPressEvent(event)
                return True
        return super().eventFilter(watched, event)


def _forms(found: FoundModel | None) -> tuple[Form, Form]:
    """The usual form of a .gguf file, and the other one; two empty ones of any other model."""
    if found is None or not found.is_gguf:
        return "", ""
    return (
        ("float32", "as-is") if usual_form(Path(found.path)) == "float32" else ("as-is", "float32")
    )
