"""Download from the Hub: a name is looked for, what would come is shown, then it is fetched."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QProgressBar,
    QPushButton,
    QWidget,
)

from explorer import smollm2
from explorer.figures.text import sentences
from explorer.figures.text.sentences import fitting
from explorer.session.session import Session
from explorer.session.state import DownloadState, State
from explorer.ui.kit import boxes, forms
from explorer.ui.kit.elided import ElidedLabel
from explorer.ui.kit.screen_fit import Dialog
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.wheel_guard import ComboBox
from explorer.wording import progress_percent, short_bytes


class HubDialog(Dialog):
    """May be closed while a download goes on; opened again, it shows how far that is."""

    chosen = Signal(str)  # what to open

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._unsubscribe: Callable[[], None] | None = None
        self.setWindowTitle(self.tr("Download from the Hub"))
        self.resize(600, 330)
        about = self._label("muted")
        about.setText(
            self.tr(
                "The program goes online only when you press a button here. It "
                "downloads weights, configuration and tokenizer to the Hugging Face "
                "cache. No downloaded code is run."
            )
        )
        self.repo = QLineEdit()
        self.repo.setPlaceholderText(
            self.tr("owner/name (HuggingFaceTB/SmolLM2-135M) or a search word")
        )
        self.repo.setAccessibleName(self.tr("Name of the model on the Hub"))
        self.repo.returnPressed.connect(self._look)
        self.repo.textChanged.connect(lambda: self._show(session.state))
        self.look = self._button(self.tr("Find"), self._look)
        self.results = QListWidget()
        self.results.setAccessibleName(self.tr("Models found on the Hub"))
        self.results.itemActivated.connect(lambda item: self._take(item.text()))
        self.results.itemClicked.connect(lambda item: self._take(item.text()))
        self.results.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.form = ComboBox()
        self.form.view().setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.form.setAccessibleName(self.tr("File to download"))
        self.form.activated.connect(self._choose_form)
        self.fetch = self._button(self.tr("Download"), session.downloads.fetch)
        self.fetch.setProperty("look", "primary")
        self.stop = self._button(self.tr("Stop"), session.downloads.cancel)
        self.open_button = self._button(self.tr("Open"), self._open)
        self.open_button.setProperty("look", "primary")
        self.leave = self._button(self.tr("Close"), self.close)
        self.offer = self._label("")
        self.problem = self._label("error")
        self.file = ElidedLabel()
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(self.tr("Progress of the download"))
        self._lay_out(about)

    def _label(self, look: str) -> QLabel:
        label = SentenceLabel(look=look)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        return label

    def _button(self, text: str, act: Callable[[], object]) -> QPushButton:
        button = QPushButton(text)
        button.setAutoDefault(False)
        button.clicked.connect(lambda: act())
        return button

    def _lay_out(self, about: QLabel) -> None:
        top, bottom = QHBoxLayout(), QHBoxLayout()
        top.addWidget(self.repo, 1)
        top.addWidget(self.look)
        bottom.addStretch(1)
        for button in (self.stop, self.leave, self.fetch, self.open_button):
            forms.keep_place(button)
            bottom.addWidget(button)
        below = (self.form, self.offer, self.problem, self.file, self.bar)
        column = boxes.column(None, about, top, (self.results, 1), *below, gap=8)
        self._spare = QWidget()  # takes the room while there is no list
        column.addWidget(self._spare, 1)
        self.lay_out(column, bottom)

    # -- what is shown

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._unsubscribe is None:
            self._unsubscribe = self._session.subscribe(self._follow)
            if not self.repo.text():
                self.repo.setText(self._session.state.download.repo)
            self._show(self._session.state)
        self.repo.setFocus()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _follow(self, old: State, new: State) -> None:
        if old.download != new.download or old.library is not new.library:
            self._show(new)
        if new.download.stage == "done" != old.download.stage:
            self._session.models.find()  # a list that is open shows it at once

    def _show(self, state: State) -> None:
        now = state.download
        text = self.repo.text().strip()
        same = text == now.repo
        offline = "" if state.library is None else state.library.offline
        self.repo.setReadOnly(now.busy)
        self.look.setText(self.tr("Find") if "/" in text or not text else self.tr("Search"))
        self.look.setEnabled(not now.busy and not offline and bool(text))
        self._show_found(now)
        self._show_forms(now, same)
        self.offer.setText(fitting(self._offer_words(now)) if same else "")
        self.problem.setText(fitting(offline or (now.problem if same else "")))
        self.file.setText(self._file_words(now))
        self._show_bar(now)
        self.fetch.setVisible(not now.busy and (now.stage != "done" or not same))
        self.fetch.setEnabled(
            same and now.stage == "offered" and now.offer is not None and not offline
        )
        self.fetch.setText(self.tr("Resume") if now.fraction else self.tr("Download"))
        self.stop.setVisible(now.busy)
        self.open_button.setVisible(now.stage == "done" and same)
        for label in (self.offer, self.problem):
            label.setVisible(bool(label.text()))

    def _show_found(self, now: DownloadState) -> None:
        found = list(now.found or ())
        if found != [self.results.item(row).text() for row in range(self.results.count())]:
            self.results.clear()
            self.results.addItems(found)
        self.results.setVisible(bool(found))
        self._spare.setVisible(not found)
        self.results.setEnabled(not now.busy)

    def _show_forms(self, now: DownloadState, same: bool) -> None:
        forms = now.offer.forms if now.offer is not None and same else ()
        shown = [self.form.itemData(row) for row in range(self.form.count())]
        if shown != [name for name, _ in forms]:
            self.form.clear()
            for name, size in forms:
                self.form.addItem(f"{sentences.name(name)} · {short_bytes(size)}", name)
        if now.offer is not None:
            self.form.setCurrentIndex(self.form.findData(now.offer.form))
        self.form.setVisible(len(forms) > 1)
        self.form.setEnabled(not now.busy)

    def _show_bar(self, now: DownloadState) -> None:
        self.file.setVisible(now.stage == "fetching")
        self.bar.setVisible(now.busy or now.stage == "done")
        if now.fraction is None:
            self.bar.setRange(0, 0 if now.busy else 1)
        else:
            self.bar.setRange(0, 1000)
            self.bar.setValue(round(now.fraction * 1000))

    def _offer_words(self, now: DownloadState) -> str:
        offer = now.offer
        if now.stage == "done" and now.repo == smollm2.NAME:
            return self.tr("SmolLM2 is now on this computer.")
        if now.stage == "done":
            return self.tr("{0} is now in the Hugging Face cache.").format(now.repo)
        if now.stage == "searching":
            return self.tr("Searching…")
        if now.stage == "looking":
            return self.tr("Searching…")
        if offer is None:
            nothing = self.tr("No text model on the Hub has “{0}” in its name.").format(now.repo)
            return nothing if now.found == () else ""
        count, size = len(offer.files), short_bytes(offer.bytes)
        files = self.tr("1 file") if count == 1 else self.tr("{0} files").format(count)
        words = self.tr("{0}, {1}. Free disk space: {2}.").format(
            files, size, short_bytes(offer.free_bytes)
        )
        return f"{words} {self._pickle_words()}" if offer.form == "pickle" else words

    def _pickle_words(self) -> str:
        return self.tr(
            "Warning: these weights are pickle files (.bin), which can contain "
            "programs. They are loaded in torch's restricted mode, which runs none."
        )

    def _file_words(self, now: DownloadState) -> str:
        share = "" if now.fraction is None else f"{progress_percent(now.fraction)} · "
        return share + (now.text or self.tr("Starting the download…"))

    # -- requests

    def _look(self) -> None:
        text = self.repo.text().strip()
        if not self.look.isEnabled():
            return
        if "/" in text:
            self._session.downloads.look(text)
        else:
            self._session.downloads.search(text)

    def _take(self, repo: str) -> None:
        """One of the models found, as if it had been typed."""
        self.repo.setText(repo)
        self._look()

    def _choose_form(self, row: int) -> None:
        self._session.downloads.look(self._session.state.download.repo, self.form.itemData(row))

    def _open(self) -> None:
        self.chosen.emit(self._session.state.download.target)
        self.close()
