"""Padding: a batch of prompts compared with each one run alone, with deliberate mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import (
    QButtonGroup,
    QLabel,
    QProgressBar,
    QPushButton,
    QSpinBox,
    QToolButton,
    QWidget,
)

from explorer.figures.batch import loss as losses
from explorer.figures.batch import padding as figures
from explorer.session.changes import changed
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.batch import BatchRequest, BatchResult
from explorer.trace.card import ModelCard
from explorer.trace.request import Side
from explorer.ui.access.tips import tip
from explorer.ui.files import caption
from explorer.ui.glossary.labels import TermLabel, stand_for
from explorer.ui.kit import forms
from explorer.ui.kit.elided import ResultLabel
from explorer.ui.kit.flow import Flow
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.kit.wheel_guard import SpinBox, TabWidget
from explorer.ui.look.theme import Theme, unit
from explorer.ui.panel.convert_button import ConvertButton
from explorer.ui.panel.panel import Panel, View
from explorer.ui.panels.padding.loss_page import LossPage
from explorer.ui.panels.padding.mistakes import Mistakes
from explorer.ui.panels.padding.pages import GridPage
from explorer.ui.panels.padding.prompts import PromptList

_RERUN_MS = 300  # so that a spin box that is being turned asks once
_MOST_EXTRA, _MOST_STEPS = 64, 32
_SPIN, _MADE = 58, 130  # pixels at a zoom of 1
_OF_RESULTS = (1, 3)  # tabs that need a batch that ran


class PaddingPanel(Panel):
    """Its prompts and switches are its own; what ran is the state's."""

    ID = "padding"
    TITLE = QT_TRANSLATE_NOOP("PaddingPanel", "Padding")
    TERM = "padding"
    BESIDE = "attention"
    EXPLANATION = QT_TRANSLATE_NOOP(
        "PaddingPanel",
        "Prompts of different lengths in one batch",
    )
    EMPTY = QT_TRANSLATE_NOOP(
        "PaddingPanel",
        "Open a model at the top left. Then run several prompts here as one padded "
        "batch. Step (Space) and Run apply to the single prompt above.",
    )

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self._result: BatchResult | None = None
        self._model: str | None = None  # that is open
        self._asked: BatchRequest | None = None
        self._refusal = ""
        self._running = False  # a batch of this panel has the engine
        self._prompts_wanted = False  # a file or scene turns to them, even beside results
        self._selected = 0
        self._again = QTimer(self)
        self._again.setSingleShot(True)
        self._again.setInterval(_RERUN_MS)
        self._again.timeout.connect(self._run_again)
        self.prompts = PromptList()
        self.prompts.failed.connect(self.failed)
        self.prompts.changed.connect(self._show_buttons)
        self.prompts.chatChanged.connect(self._on_changed)
        self.mistakes = Mistakes()
        self.mistakes.fedChanged.connect(self._on_changed)
        self.mistakes.lossChanged.connect(self._show_loss)
        self.tabs = TabWidget()
        self.tabs.addTab(self.prompts, self.tr("Prompts"))
        self._batch, self._loss = self._build_batch(), self._build_loss()
        self.tabs.addTab(self._batch, self.tr("Batch"))
        self.tabs.addTab(self.mistakes, "")
        self.tabs.addTab(self._loss, self.tr("Loss"))
        self.content.setSpacing(2)
        self.content.addLayout(self._build_tools())
        self.content.addLayout(self._build_made())
        self.content.addWidget(self.tabs, 1)
        self._narrow()
        self._show_result(None)
        self._show_buttons()

    # -- building

    def _build_tools(self) -> Flow:
        """In several lines where the panel is narrow, so that all of it is in reach."""
        self.sides = QButtonGroup(self)
        row = Flow()
        sides = []
        row.setSpacing(6)
        for index, words in enumerate((self.tr("left"), self.tr("right"))):
            button = QToolButton()
            button.setText(words)
            button.setCheckable(True)
            button.setAccessibleName(self.tr("Pad on the {0}").format(words))
            self.sides.addButton(button, index)
            sides.append(button)
        row.addWidget(forms.together(TermLabel(self.tr("Pad"), term="padding"), *sides))
        stand_for(self.sides.button(0), term="left-padding")
        stand_for(self.sides.button(1), term="right-padding")
        self.sides.button(1).setChecked(True)
        self.sides.idToggled.connect(lambda _, on: self._on_changed() if on else None)
        self.extra = self._spin(row, self.tr("extra"), 0, _MOST_EXTRA)
        self.extra.setToolTip(self.tr("Extra padding positions beyond the longest prompt"))
        self.steps = self._spin(row, self.tr("tokens"), 1, _MOST_STEPS)
        self.steps.setToolTip(
            self.tr("Number of passes. The first is the prefill; each chooses one token.")
        )
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setFixedWidth(60)
        self.progress.setAccessibleName(self.tr("Progress of the batch"))
        policy = self.progress.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.progress.setSizePolicy(policy)
        self.run_button = QPushButton(self.tr("Run batch"))
        self.run_button.setProperty("look", "primary")
        self.run_button.clicked.connect(self._on_run)
        # Each in a place of its own: a second click must not end what the first began.
        self.cancel_button = QPushButton(self.tr("Cancel"))
        self.cancel_button.setToolTip(self.tr("Stop the batch. The results shown are kept."))
        self.cancel_button.setEnabled(False)
        self.cancel_button.clicked.connect(self.session.cancel)
        row.addWidget(forms.together(self.run_button, self.cancel_button))
        return row

    def _build_made(self) -> Flow:
        """What the results are of, how far the next ones are, and one of their rows in full."""
        self.made = ResultLabel()
        self.convert_button = ConvertButton(self.session)
        row = Flow(first_grows=True)
        for part in (self.made, self.convert_button, self.progress, self.look_button):
            row.addWidget(part)
        return row

    def _spin(self, row: Flow, words: str, least: int, most: int) -> QSpinBox:
        label, spin = QLabel(words), SpinBox()
        spin.setRange(least, most)
        spin.setAccessibleName(words)
        spin.valueChanged.connect(self._on_changed)
        label.setBuddy(spin)
        row.addWidget(forms.together(label, spin))
        return spin

    def _narrow(self) -> None:
        """Room for two digits, so that the panel fits a projector beside others."""
        for spin in (self.extra, self.steps):
            spin.setFixedWidth(round(_SPIN * unit(self)))
        self.made.setMinimumWidth(round(_MADE * unit(self)))

    def _build_batch(self) -> GridPage:
        page = GridPage(
            self.theme,
            self.tr("What this batch shows"),
            self.tr("The padded batch, one block per prompt"),
        )
        page.picked.connect(self._select)
        self.look_button = QPushButton()
        self.look_button.clicked.connect(self._look_at_attention)
        self.look_button.setToolTip(
            self.tr(
                "Make this prompt, with its padding, the main run. The Attention panel "
                "then shows its maps, with padding hatched. Undo restores the earlier "
                "run."
            )
        )
        return page

    def _build_loss(self) -> LossPage:
        page = LossPage(self.theme)
        page.picked.connect(self._select)
        return page

    # -- state

    def show_state(self, old: State | None, new: State) -> None:
        if new.card is None and new.batch is None:
            self.show_empty()
        if new.card is not None:
            self.prompts.offer_chat(new.card.has_chat_template)
        self._model = None if new.card is None else new.card.name
        self._refusal = self._refused(new.card)
        self.convert_button.offer(bool(self._refusal))
        why = new.card.words("right_padding") if new.card is not None and self._refusal else ""
        self.run_button.setToolTip(tip(why))
        ended = self._running and new.status.activity != "running"
        self._running = self._running and not ended
        self._show_progress(new)
        if new.batch is not self._result or (ended and new.batch is None):
            self._show_result(new.batch)
        self._show_buttons()
        some = new.card is not None or new.batch is not None
        if some and (self.empty or changed(old, new, "batch")):
            self.show_content()

    def _refused(self, card: ModelCard | None) -> str:
        """Why no batch can be run on a file that is open as it is; empty if one can."""
        sides = ("left_padding", "right_padding")
        if card is None or card.form != "as-is" or any(map(card.offers, sides)):
            return ""
        return self.tr("A .gguf file that runs as it is takes no padding.")

    def _show_progress(self, state: State) -> None:
        fraction = state.status.fraction if self._running else None
        self.progress.setVisible(self._running)
        self.progress.setRange(0, 0 if fraction is None else 1000)
        self.progress.setValue(round(1000 * (fraction or 0.0)))

    def _show_buttons(self) -> None:
        some = bool(self.prompts.prompts()) and self._model is not None
        self.run_button.setEnabled(some and not self._running and not self._refusal)
        self.cancel_button.setEnabled(self._running)
        self._show_made()
        count = self.mistakes.count
        self.tabs.setTabText(
            2,
            self.tr("Deliberate mistakes ({0})").format(count)
            if count
            else self.tr("Deliberate mistakes"),
        )

    @property
    def stale(self) -> bool:
        """True if the results on screen are not those of the controls and the model."""
        result = self._result
        return result is not None and not (
            figures.same_batch(result.request, self.request())
            and self._model in (None, result.model)
        )

    def _show_made(self) -> None:
        """What the results on screen were made with, and whether that still is what is set."""
        if self._result is None:
            self.made.setText(self._refusal)
            return
        text = self.tr("Results: {0}.")
        if self.stale and self._running:
            text = self.tr("Running. Earlier results: {0}.")
        elif self.stale:
            text = self.tr("Settings have changed. Press Run batch. Results: {0}.")
        self.made.setText(text.format(figures.made_with(self._result)))
        look = "warning" if self.stale else "muted"
        if self.made.property("look") != look:
            self.made.setProperty("look", look)
            self.made.style().polish(self.made)

    def _show_result(self, result: BatchResult | None) -> None:
        self._result = result
        if result is None and self.tabs.currentIndex() in _OF_RESULTS:
            self.tabs.setCurrentIndex(0)
        for tab in _OF_RESULTS:
            self.tabs.setTabEnabled(tab, result is not None)
        self.mistakes.show_result(result)
        self.look_button.setVisible(result is not None)
        if result is None:
            self._batch.grid.set_blocks(())
            self._loss.grid.set_blocks(())
            self._loss.show_result(None)
            self._batch.note.setText("")
            return
        self._batch.words.setText(" ".join(filter(None, [figures.finding(result),
                                                     result.decoded_apart])))  # fmt: skip
        if result.request != self._asked:
            self._adopt(result.request)
        words = figures.padding_words(result)
        if result.model != self._model:
            saved = self.tr("From a saved session, run on {0}.").format(result.model)
            words = f"{saved} {words}"
        self._batch.note.setText(words)
        self._batch.grid.set_blocks(figures.blocks(result))
        self._select(min(self._selected, len(result.rows) - 1))
        self._show_loss()

    def _show_loss(self) -> None:
        self._show_buttons()
        result = self._result
        if result is None or not result.request.loss:
            return
        pads, shifted = self.mistakes.pads_counted, not self.mistakes.unshifted
        words = [losses.summary(result)]
        if pads or not shifted:
            wrong = losses.mean(result, pads=pads, shifted=shifted)
            words.append(
                self.tr("With the mistake: {0} nats over {1} targets.").format(
                    f"{wrong.nats:.4f}", wrong.targets
                )
            )
        self._loss.words.setText(" ".join(words))
        self._loss.grid.set_blocks(
            losses.blocks(result, result.vocabulary, pads=pads, shifted=shifted)
        )
        note = self.tr(
            "A target counts if it and the token before it are both real (not "
            "padding). Colours: 0 (dark) to a uniform guess among {0} tokens (bright)."
        ).format(f"{result.vocabulary:,}")
        self._loss.show_result(result, note, pads=pads, shifted=shifted)

    # -- requests

    @property
    def side(self) -> Side:
        return "right" if self.sides.checkedId() == 1 else "left"

    def request(self) -> BatchRequest:
        """What the controls ask for."""
        return BatchRequest(
            prompts=self.prompts.prompts(),
            padding=self.side,
            extra=self.extra.value(),
            steps=self.steps.value(),
            wrong=self.mistakes.wrong,
            loss=True,
            chat=self.prompts.chat,
        )

    def _adopt(self, request: BatchRequest) -> None:
        """A batch that was not asked for here is from a file: the controls show its wishes."""
        self._asked = request
        widgets = (self.sides, self.extra, self.steps, self.prompts, self.mistakes)
        blocked = [widget.blockSignals(True) for widget in widgets]
        self.sides.button(int(request.padding == "right")).setChecked(True)
        self.extra.setValue(request.extra)
        self.steps.setValue(request.steps)
        self.prompts.show_prompts(request.prompts, request.chat)
        self.mistakes.show_wrong(request.wrong)
        for widget, before in zip(widgets, blocked, strict=True):
            widget.blockSignals(before)
        self._show_buttons()
        if self.tabs.currentIndex() == 0 and not self._prompts_wanted:
            self.tabs.setCurrentIndex(1)

    def _on_run(self) -> None:
        self._start()
        if self.tabs.currentIndex() == 0 and self._running:
            if self._result is None:
                self._batch.words.setText(self.tr("Running the batch, then each prompt alone…"))
                self.tabs.setTabEnabled(1, True)
            self.tabs.setCurrentIndex(1)

    def _start(self) -> None:
        self._again.stop()
        self._running = True
        self._asked = self.request()
        self.session.batches.run(self._asked)
        self._running = self.session.state.status.activity == "running"
        self._show_progress(self.session.state)
        self._show_buttons()

    def _on_changed(self) -> None:
        """A control was moved: what is on screen is run again, once it rests."""
        self._show_buttons()
        if self._result is not None or self._running:
            self._again.start()

    def _run_again(self) -> None:
        wanted = self.request()
        if wanted.prompts and (self._running or self._result is None
                               or wanted != self._result.request):  # fmt: skip
            self._start()

    def _select(self, row: int) -> None:
        self._selected = row
        self._batch.grid.set_selected(row)
        self._loss.grid.set_selected(row)
        self.look_button.setText(self.tr("Attention of prompt {0}").format(row + 1))

    def _look_at_attention(self) -> None:
        if self._result is None:
            return
        row = self._result.rows[self._selected]
        pads = len(row.real) - sum(row.real)
        side = self._result.request.padding if pads else None
        self.session.run_prompt(row.prompt, self._result.request.chat, side, pads)
        self.wanted.emit("attention")

    # -- looks

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self._narrow()

    def caption_of(self, name: str, view: View) -> str:
        result = self._result
        if result is None:
            return super().caption_of(name, view)
        sides = {"left": self.tr("padded left"), "right": self.tr("padded right")}
        side = sides[result.request.padding]
        model = Path(result.model).name
        return caption.words(model, [name, side], None, " / ".join(result.request.prompts))

    def choices(self) -> dict[str, str | float]:
        return {"tab": float(self.tabs.currentIndex())}

    def choose(self, choices: Mapping[str, str | float]) -> None:
        tab = choices.get("tab")
        self._prompts_wanted = tab == 0
        if isinstance(tab, float) and tab < self.tabs.count() and self.tabs.isTabEnabled(int(tab)):
            self.tabs.setCurrentIndex(int(tab))

    def views(self) -> Mapping[str, View]:
        if self._result is None:
            return {}
        result = self._result
        return {
            self.tr("Padded batch"): View(self._batch.grid, lambda: figures.table(result)),
            self.tr("Loss"): View(self._loss.grid, lambda: losses.table(result)),
            self.tr("Loss by position"): View(self._loss.chart, lambda: losses.table(result)),
        }
