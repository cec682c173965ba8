"""The button that fetches SmolLM2, with its progress; nothing once the model is there."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QProgressBar, QPushButton, QSizePolicy, QWidget

from explorer import smollm2
from explorer.session.changes import changed
from explorer.session.session import Session
from explorer.session.state import DownloadState, State
from explorer.ui.kit import boxes
from explorer.ui.kit.scrolled import Wrapping
from explorer.ui.kit.sentence import SentenceLabel
from explorer.wording import progress_percent


class Smollm2Download(Wrapping):
    """Follows the session's download; hidden while there is nothing to fetch or to tell."""

    chosen = Signal(str)  # the model, to be opened

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._here = smollm2.is_here()
        self.words = SentenceLabel()
        self.problem = SentenceLabel(look="error")
        self.bar = QProgressBar()
        self.bar.setRange(0, 1000)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(self.tr("Progress of the download"))
        self.fetch = self._button(session.downloads.fetch_smollm2)
        self.stop = self._button(session.downloads.cancel)
        self.stop.setText(self.tr("Cancel"))
        self.open_button = self._button(lambda: self.chosen.emit(smollm2.NAME))
        self.open_button.setText(self.tr("Open SmolLM2"))
        self.open_button.setProperty("look", "primary")
        for button in (self.fetch, self.open_button):
            button.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        acts = boxes.line(None, self.fetch, self.open_button, (self.bar, 1), self.stop, gap=6)
        acts.addStretch(0)
        boxes.column(self, self.words, self.problem, acts, gap=4)
        self._show(session.state)

    def _button(self, act: object) -> QPushButton:
        button = QPushButton()
        button.setAutoDefault(False)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        assert callable(act)
        button.clicked.connect(lambda: act())
        return button

    def show_state(self, old: State | None, new: State) -> None:
        if not changed(old, new, "download", "library", "opened"):
            return
        if old is None or old.download.stage != new.download.stage or old.library != new.library:
            self._here = smollm2.is_here()
        self._show(new)

    def _show(self, state: State) -> None:
        now = state.download if state.download.repo == smollm2.NAME else DownloadState()
        opened = any(key.model == smollm2.NAME for key in state.opened)
        fetching, done = now.stage == "fetching", now.stage == "done"
        self.words.setText(self._words(now))
        self.problem.setText(now.problem)
        self.problem.setVisible(bool(now.problem))
        self.words.setVisible(not now.problem)
        begun = now.fraction is not None or smollm2.part().exists()
        size = smollm2.DOWNLOAD_MB
        named = self.tr("Resume download") if begun else self.tr("Download ({0} MB)").format(size)
        self.fetch.setText(named)
        self.fetch.setEnabled(not state.download.busy)  # one download at a time
        self.fetch.setVisible(not fetching and not done)
        self.bar.setVisible(fetching)
        self.bar.setValue(round(1000 * (now.fraction or 0)))
        self.stop.setVisible(fetching)
        self.open_button.setVisible(done)
        self.setVisible(not opened and (not self._here or fetching or done))
        self.updateGeometry()

    def _words(self, now: DownloadState) -> str:
        if now.stage == "done":
            return self.tr("SmolLM2 is now on this computer.")
        if now.stage != "fetching":
            return self.tr(
                "SmolLM2, a small language model that writes English, is not on this computer yet."
            )
        if not now.text or now.fraction is None:
            return self.tr("Starting the download…")
        return self.tr("SmolLM2: {0} of {1} MB").format(
            progress_percent(now.fraction), smollm2.DOWNLOAD_MB
        )
