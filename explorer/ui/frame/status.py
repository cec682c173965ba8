"""The status bar: what the engine does, how far, a way to stop it, and the self-check light."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from PySide6.QtCore import QCoreApplication, QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QProgressBar, QPushButton, QWhatsThis, QWidget

from explorer.figures.text import sentences, tokens
from explorer.figures.text.sentences import fitting
from explorer.session.changes import changed
from explorer.session.state import Fetching, State
from explorer.trace.card import ModelCard, SelfCheck
from explorer.ui.access.accessible import announce
from explorer.ui.access.tips import tip
from explorer.ui.frame.context_meter import ContextMeter
from explorer.ui.kit.boxes import line
from explorer.ui.kit.elided import ElidedLabel, ResultLabel
from explorer.ui.kit.forms import keep_place
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.look.theme import Theme, unit
from explorer.ui.panel.how_it_runs import as_is_words, where

_SAID_MS = 8000  # long enough to be read after a look elsewhere


_ENDS = ("end token", "stop string", "length", "context")  # of a run, told in words


class CheckLight(QAbstractButton):
    """Grey until checked, green or red after; the figures on hover and click."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._passed: bool | None = None
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.clicked.connect(self._show_figures)

    @property
    def failed(self) -> bool:
        """True if a check found something wrong."""
        return self._passed is False

    def show_check(self, check: SelfCheck, running: bool, possible: bool) -> None:
        self._passed = check.passed
        self.setText(self._words(check, running, possible))
        self.setToolTip(tip(figures(check)) or self.tr("Nothing has been checked yet."))
        self.setAccessibleName(self.text())
        self.setAccessibleDescription(self.toolTip())
        self.updateGeometry()
        self.update()

    def _words(self, check: SelfCheck, running: bool, possible: bool) -> str:
        if check.passed:
            return self.tr("Self-check passed")
        if check.passed is False:
            broken = [check_name(c.name) for c in check.checks if not c.passed]
            return self.tr("Self-check failed: {0}").format(sentences.name(", ".join(broken), 28))
        if running:
            return self.tr("Self-check running…")
        return self.tr("Not checked yet") if possible else self.tr("Nothing to check yet")

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        metrics, u = self.fontMetrics(), unit(self)
        return QSize(
            round(metrics.horizontalAdvance(self.text()) + 30 * u), round(metrics.height() + 4 * u)
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        theme, u = self._theme, unit(self)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour = {None: theme.muted, True: theme.good, False: theme.danger}[self._passed]
        size = round(11 * u)
        top = (self.height() - size) // 2
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colour))
        painter.drawEllipse(round(4 * u), top, size, size)
        # Colour is never the only sign: a tick or a cross inside.
        painter.setPen(QColor(theme.window))
        mark = {None: "", True: "✓", False: "✕"}[self._passed]
        painter.drawText(round(4 * u), top, size, size, int(Qt.AlignmentFlag.AlignCenter), mark)
        painter.setPen(QColor(theme.text))
        area = self.rect().adjusted(round(20 * u), 0, 0, 0)
        painter.drawText(area, int(Qt.AlignmentFlag.AlignVCenter), self.text())

    def _show_figures(self) -> None:
        # Unlike a tip, this can't be told to take its text as it is.
        words = f"<p>{escape(self.toolTip())}</p>".replace("\n", "<br>")
        QWhatsThis.showText(self.mapToGlobal(QPoint(0, 0)), words, self)


_CHECKS = {
    "finite_weights": QT_TRANSLATE_NOOP("checks", "All weights are finite"),
    "kernel_output": QT_TRANSLATE_NOOP("checks", "Matches the library's own attention"),
    "eager_weights": QT_TRANSLATE_NOOP("checks", "Matches eager attention weights"),
    "row_sums": QT_TRANSLATE_NOOP("checks", "Rows sum to 1"),
    "upper_triangle": QT_TRANSLATE_NOOP("checks", "No attention to later tokens"),
    "cut_cells": QT_TRANSLATE_NOOP("checks", "No attention on cut cells"),
    "future_visible": QT_TRANSLATE_NOOP("checks", "Every layer attends to later tokens"),
    "prefix_property": QT_TRANSLATE_NOOP("checks", "Earlier outputs ignore the last token"),
    "cached_equals_uncached": QT_TRANSLATE_NOOP("checks", "Cached = uncached"),
    "padded_equals_alone": QT_TRANSLATE_NOOP("checks", "Padded = unpadded"),
    "greedy_equals_generate": QT_TRANSLATE_NOOP("checks", "Greedy = generate()"),
    "same_on_cpu": QT_TRANSLATE_NOOP("checks", "Same on the CPU"),
}


def check_name(name: str) -> str:
    """What one check of the engine is called in the window."""
    return QCoreApplication.translate("checks", _CHECKS.get(name, name))


def figures(check: SelfCheck) -> str:
    """Each check with what was measured and what was allowed, one a line."""
    return "\n".join(
        f"{'✓' if c.passed else '✕'} {check_name(c.name)}: {c.measured:.3g} "
        f"(at most {c.tolerance:.3g})" + (f". {c.note}" if c.note else "")
        for c in check.checks
    )


class StatusBar(QWidget):
    """Fixed height, so that nothing jumps when a job begins or ends."""

    cancel = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = ResultLabel()
        self._progress = QProgressBar()
        self._progress.setTextVisible(False)
        self._progress.setFixedWidth(140)
        self._progress.setAccessibleName(self.tr("Progress"))
        self._cancel = QPushButton(self.tr("Cancel"))
        self._cancel.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._cancel.setProperty("look", "flat")
        self._cancel.clicked.connect(self.cancel)
        self._model = ElidedLabel()
        self._model.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._model.setProperty("look", "muted")
        self.light = CheckLight(theme)
        self.context = ContextMeter(theme)
        for widget in (self._progress, self._cancel):
            keep_place(widget)
        # Last, where nothing that changes its words can push them about.
        last = (self._progress, self._cancel)
        parts = ((self._text, 1), (self._model, 1), self.context, self.light, *last)
        self._row = line(self, *parts, gap=10, edges=(10, 0, 8, 2))
        self._said = ""
        self._simple = self._alone = False
        self._until = QTimer(self)
        self._until.setSingleShot(True)
        self._until.setInterval(_SAID_MS)
        self._until.timeout.connect(self._end_said)
        self._state: State | None = None

    def add_job(self, button: QWidget) -> None:
        """Show a job of its own, which its button ends, beside what goes on."""
        self._row.insertWidget(1, button)

    def set_simple(self, on: bool) -> None:
        """Without how the model is stored and run, unless that is on another machine."""
        self._simple = on
        self.show_meter_alone(False)

    def show_meter_alone(self, on: bool) -> None:
        """How full the context is, and nothing else: a class has no room for more."""
        self._alone = on
        self._text.setVisible(not on)
        self._show_model()
        self.light.setVisible(not on)

    def _show_model(self) -> None:
        elsewhere = self._state is not None and bool(self._state.host)
        self._model.setVisible(not self._alone and (elsewhere or not self._simple))

    def say(self, words: str) -> None:
        """Confirm something, for a while, in place of what to do next."""
        self._said = words
        announce(self, words)
        self._until.start()
        if self._state is not None:
            self._show_activity(self._state)

    def _end_said(self) -> None:
        self._said = ""
        if self._state is not None:
            self._show_activity(self._state)

    @property
    def text(self) -> str:
        """What goes on, or what to do next."""
        return self._text.text()

    @property
    def model_text(self) -> str:
        """How the open model runs."""
        return self._model.text()

    @property
    def waiting(self) -> bool:
        """True while something takes long enough to have a progress bar."""
        return not self._progress.isHidden()

    def show_state(self, old: State | None, new: State) -> None:
        self._state = new
        self.context.show_state(old, new)
        if old is not None and old.step_index != new.step_index:
            self._said = ""  # it was about another token
        told = ("status", "trace", "request", "card", "opened", "sampling", "step_index")
        if changed(old, new, *told, "fetching"):
            self._show_activity(new)
        if changed(old, new, "card", "trace", "request", "opened", "host"):
            self._model.setText(_model_words(new, self.tr))
            self._show_model()
        if changed(old, new, "card", "host", "other_versions"):
            details = "\n".join(_details(new, self.tr))
            self._model.setToolTip(tip(details) if details else "")
        if old is None or _light_differs(old, new):
            self._show_light(new)
        if old is not None and old.status.activity != new.status.activity:
            announce(self, self._heard(old, new))

    def _heard(self, old: State, new: State) -> str:
        """What a screen reader says of a job that begins or ends; empty of all others."""
        before, now = old.status.activity, new.status.activity
        if now in ("running", "loading"):
            return new.status.text
        if before == "loading" and now != "lost":
            return self._text.text()
        if before == "checking" and self.light.failed:
            return self.light.text()
        if before != "running" or now == "lost":
            return ""
        step, trace = new.step_index, new.trace
        if new.status.text or trace is None or step is None or trace.stop_reason in _ENDS:
            return self._text.text()
        return self.tr("Token {0}: {1}").format(step + 1, tokens.written(trace.chosen[step]))

    def _show_activity(self, state: State) -> None:
        status = state.status
        # The light tells of the self-check, which begins by itself; the words stay the run's.
        checking = status.activity == "checking"
        doing = "" if checking else status.text
        if status.step_waits and status.activity == "loading":
            doing += "" if doing.endswith("…") else "."
            doing = self.tr("{0} Your step runs once the model is open.").format(doing)
        self._text.setText(doing or self._said or self._idle_words(state))
        busy = status.activity == "loading"
        busy = busy or (status.activity == "starting" and bool(status.text))
        # The steps themselves are the progress of a run: a bar that moves costs repaints.
        busy = busy or (status.activity == "running" and status.fraction is not None)
        self._progress.setVisible(busy)
        if status.fraction is None:
            self._progress.setRange(0, 0 if busy else 1)
        else:
            self._progress.setRange(0, 1000)
            self._progress.setValue(round(status.fraction * 1000))
        self._cancel.setVisible(status.activity in ("loading", "running", "checking"))

    def _idle_words(self, state: State) -> str:
        if state.fetching is not None:
            return fetching_words(state.fetching, state.host, self.tr)
        if state.trace is not None and state.request_changed:
            return self.tr("The prompt or settings have changed. Step will start a new run.")
        if state.looks_back:
            return self._words_for_earlier(state)
        reason = "" if state.trace is None else state.trace.stop_reason
        ended = {
            "end token": self.tr("Stopped: the model generated an end token") + _last_token(state),
            "stop string": self.tr("Stopped: the text contains a stop string")
            + _stop_string(state),
            "length": self.tr("Stopped: token limit reached"),
            "context": self.tr("Stopped: the model's context is full")
            if state.trace is None or not state.trace.request.context.limit(0)
            else self.tr("Stopped: the context limit of this run is reached"),
        }
        if reason in ended:
            return ended[reason]
        if state.card is None and state.trace is not None:
            return self.tr("Saved session, shown without its model. Step opens the model.")
        if state.trace is not None and state.other_model:
            return self.tr("Step opens {0} and continues this run").format(state.trace.card.name)
        if state.card is None:
            return self.tr("No model open: choose one at the top left")
        return self.tr("Ready. Press Space to step, R to run.")

    def _words_for_earlier(self, state: State) -> str:
        """What Step does while an earlier token is selected."""
        assert state.trace is not None
        assert state.step_index is not None
        if state.branch_point is not None:
            words = self.tr(
                "The sampling settings have changed. Step will begin a branch after token {0}."
            )
            return words.format(state.branch_point)
        words = self.tr("Token {0} of {1}. Step (Space) goes to the next one, R generates more.")
        return words.format(state.step_index + 1, len(state.trace.steps))

    def _show_light(self, state: State) -> None:
        check = SelfCheck() if state.trace is None else state.trace.self_check
        running = state.status.activity == "checking"
        self.light.show_check(check, running, state.step_index is not None)


def fetching_words(fetching: Fetching, host: str, tr: Callable[[str], str]) -> str:
    """What is on its way from an engine on another machine."""
    name = sentences.name(host)
    if fetching.layer < 0:
        return tr("Drawing all heads on {0}…").format(name)
    first, last = fetching.heads
    if first == last:
        return tr("Fetching layer {0}, head {1} from {2}…").format(fetching.layer, first, name)
    words = tr("Fetching layer {0}, heads {1} to {2} from {3}…")
    return words.format(fetching.layer, first, last, name)


def _last_token(state: State) -> str:
    """Which of the model's end tokens it was."""
    if state.trace is None or not state.trace.chosen:
        return ""
    return f", {tokens.written(state.trace.chosen[-1])}"


def _stop_string(state: State) -> str:
    """Which of the strings ends last in what was generated."""
    if state.trace is None:
        return ""
    text = b"".join(token.raw for token in state.trace.chosen)
    ends = [
        (text.rfind(raw) + len(raw), string)
        for string in state.stops.strings
        if (raw := string.encode("utf-8", "surrogatepass")) and raw in text
    ]
    return f", {tokens.plain(max(ends)[1])}" if ends else ""


def _light_differs(old: State, new: State) -> bool:
    def seen(state: State) -> tuple[object, ...]:
        check = None if state.trace is None else state.trace.self_check
        return check, state.status.activity == "checking", state.step_index is None

    return seen(old) != seen(new)


def _model_words(state: State, tr: Callable[[str], str]) -> str:
    card = state.card
    host, known = state.host, []
    if card is not None:
        device = where(card, tr)
        device = tr("{0} of {1}").format(device, sentences.name(host)) if host else device
        known = [*_source(card), *_dtype_words(card, tr), device]
    elif host:
        known = [tr("engine on {0}").format(sentences.name(host))]
    if card is not None and state.other_model:
        known = [tr("{0} is open").format(fitting(card.name)), *known]
    return " · ".join(filter(None, known))


def _source(card: ModelCard) -> list[str]:
    """What was opened; of a file that runs as it is the words about that say it."""
    return [] if card.form == "as-is" else [card.source]


def _dtype_words(card: ModelCard, tr: Callable[[str], str]) -> list[str]:
    """The dtype that runs, and the one of the files where it is another."""
    if card.form == "as-is":
        return as_is_words(card, tr)
    if card.stored_dtype in ("", card.dtype):
        return [card.dtype]
    named = card.stored_dtype in card.source  # "from Q4_1 (dequantised)"
    stored = [] if named else [tr("stored as {0}").format(card.stored_dtype)]
    return [*stored, tr("run in {0}").format(card.dtype)]


def _details(state: State, tr: Callable[[str], str]) -> list[str]:
    card = state.card
    if card is None:
        return []
    return [
        f"{card.name} ({card.architecture})",
        tr("{0} parameters, {1} layers, {2} heads, {3} KV heads").format(
            f"{card.parameters:,}", card.layers, card.heads, card.kv_heads
        ),
        *(c.words for c in card.capabilities if c.words),
        *card.warnings,
        *([tr("It runs on {0}.").format(sentences.name(state.host))] if state.host else []),
        *filter(None, [state.other_versions]),
    ]
