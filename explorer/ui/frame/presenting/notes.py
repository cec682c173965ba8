"""The notes of whoever presents: what the class sees, what comes next, the clock, the controls."""

from __future__ import annotations

from PySide6.QtCore import QElapsedTimer, QLocale, QSize, Qt, QTime, QTimer
from PySide6.QtGui import QAction, QCloseEvent, QKeyEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from explorer.ui.frame.offered_actions import OfferedActions
from explorer.ui.kit.flow import Flow
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.look.theme import unit

_TICK_MS = 1000
_TURNING = ("previous-panel", "next-panel")
_RUNNING = ("back", "step", "run")


class NotesWindow(QWidget):
    """Stays on the first screen while the window fills the second; its keys are the window's."""

    def __init__(self, actions: OfferedActions, keys: list[QAction], window: QWidget) -> None:
        super().__init__(window, Qt.WindowType.Window)
        self.setWindowTitle(self.tr("Notes: Decoder Explorer"))
        self.setAccessibleName(self.windowTitle())
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.addActions(keys)
        self._leave = actions.by_id["presenter"]
        self._shown = SentenceLabel(look="heading")
        self._next = SentenceLabel()
        self._token = SentenceLabel(look="muted")
        self._clock, self._elapsed = QLabel(), QLabel()
        self._clock.setProperty("look", "heading")
        self._began = QElapsedTimer()
        self._tick = QTimer(self)
        self._tick.setInterval(_TICK_MS)
        self._tick.timeout.connect(self._tell_time)
        self._lesson = QVBoxLayout()
        self._lay_out(actions)

    def _lay_out(self, actions: OfferedActions) -> None:
        time = QHBoxLayout()
        time.addWidget(self._clock)
        time.addStretch(1)
        time.addWidget(self._elapsed)
        keys = SentenceLabel(
            self.tr(
                "← and →, or a clicker: the other panels. Space: step. Shift+← and Shift+→: move "
                "along the run. Esc: leave presenter mode."
            ),
            look="muted",
        )
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 12, 14, 12)
        column.setSpacing(10)
        column.addLayout(time)
        column.addWidget(self._shown)
        column.addWidget(self._next)
        column.addWidget(self._token)
        for names in (_TURNING, _RUNNING, ("presenter",)):
            column.addWidget(self._buttons(actions, names))
        column.addLayout(self._lesson, 6)
        column.addStretch(1)
        column.addWidget(keys)

    def _buttons(self, actions: OfferedActions, names: tuple[str, ...]) -> QWidget:
        row = QWidget()
        flow = Flow(row)
        for name in names:
            button = QToolButton()
            button.setDefaultAction(actions.by_id[name])
            button.setIconSize(QSize(*[round(18 * unit(self))] * 2))
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # Space goes on stepping
            button.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
            flow.addWidget(button)
        return row

    def set_lesson(self, card: QWidget) -> None:
        """A card of a lesson, under the controls."""
        self._lesson.addWidget(card)

    def say(self, shown: str, following: str, token: str) -> None:
        """Which panel the class sees, which one comes next, and which token is selected."""
        self._shown.setText(self.tr("On screen: {0}").format(shown))
        self._next.setText(self.tr("Next: {0}").format(following) if following else "")
        self._next.setVisible(bool(following))
        self._token.setText(token)

    @property
    def words(self) -> tuple[str, str, str]:
        """What the class sees, what comes next, and the selected token."""
        return self._shown.text(), self._next.text(), self._token.text()

    @property
    def time_words(self) -> tuple[str, str]:
        """The time of day, and for how long the class has been looking."""
        return self._clock.text(), self._elapsed.text()

    def _tell_time(self) -> None:
        locale = QLocale.system()
        self._clock.setText(locale.toString(QTime.currentTime(), QLocale.FormatType.ShortFormat))
        minutes, seconds = divmod(self._began.elapsed() // 1000, 60)
        self._elapsed.setText(self.tr("{0} min {1} s").format(minutes, f"{seconds:02d}"))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape leaves presenter mode, as it does in the window."""
        if event.key() == Qt.Key.Key_Escape:
            self._leave.trigger()
        else:
            super().keyPressEvent(event)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.setFocus()  # no button has it: Space steps
        self._began.start()
        self._tell_time()
        self._tick.start()

    def closeEvent(self, event: QCloseEvent) -> None:
        self._tick.stop()
        super().closeEvent(event)
