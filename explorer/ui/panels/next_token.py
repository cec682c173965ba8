"""Next token: the most probable tokens, raw beside after sampling; a click forces one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from PySide6.QtWidgets import QWidget

from explorer.figures.prediction import next_token as figures
from explorer.figures.prediction.next_token import Bar, NextToken
from explorer.figures.text import tokens
from explorer.sampling import SamplingError
from explorer.session.changes import changed
from explorer.session.session import Session
from explorer.session.state import State
from explorer.ui.canvases.tokens.token_bars import BarRow, TokenBars
from explorer.ui.kit.elided import ResultLabel
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.look.theme import Theme
from explorer.ui.panel.panel import Panel, View
from explorer.ui.threads.worker import Worker
from explorer.wording import exact_percent, information, percent


class NextTokenPanel(Panel):
    """Follows the sampling controls without the model."""

    ID = "next-token"
    TITLE = QT_TRANSLATE_NOOP("NextTokenPanel", "Next token")
    TERM = "next-token"
    EXPLANATION = QT_TRANSLATE_NOOP("NextTokenPanel", "What may come next")
    EMPTY = QT_TRANSLATE_NOOP(
        "NextTokenPanel",
        "Type a prompt and press Step (Space) to see the probability of every next token.",
    )
    NEEDS = (*Panel.NEEDS, "sampling")

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self._worker = Worker(self)
        self._figure: NextToken | None = None
        self._state: State | None = None
        self._bars = TokenBars(theme, (self.tr("model"), self.tr("after sampling")))
        self._bars.setAccessibleName(self.tr("Most likely next tokens"))
        self._bars.clicked.connect(self._force)
        self._bars.hovered.connect(lambda key: session.select(token_id=key))
        self._bars.capacityChanged.connect(self._redraw)
        self._line = ResultLabel(look="small")
        self.content.addWidget(self._bars, 1)
        self.content.addWidget(self._line)

    def show_state(self, old: State | None, new: State) -> None:
        super().show_state(old, new)
        if changed(old, new, "selection.token_id"):
            self._bars.light(new.selection.token_id)

    def draw(self, new: State) -> None:
        self._state = new
        self._redraw()

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        if self._figure is not None:
            self._show(self._figure)

    @property
    def busy(self) -> bool:
        return self._worker.busy

    def views(self) -> Mapping[str, View]:
        return {self.tr("Next token"): View(self._bars, self._table)}

    def _redraw(self) -> None:
        state = self._state
        shown = None if state is None else state.shown
        if state is None or shown is None:
            self._worker.drop("chart")
            self._figure = None
            self.show_empty()
            return
        # One row less than fits: the last row is everything else.
        rows = max(1, self._bars.rows_that_fit() - 1)
        # Not in the window's thread: putting a large vocabulary in order holds the mouse up.
        work = partial(figures.chart, shown.trace, shown.step, state.sampling, rows)
        few = len(shown.last_pass.logits) <= figures.FEW
        self._worker.follow("chart", work, self._show, self._show_reason, at_once=few)

    def _show(self, figure: NextToken) -> None:
        self._figure = figure
        self._bars.set_rows(self._rows(figure))
        self._line.setText(self._words(figure))
        self.show_content()

    def _show_reason(self, error: Exception) -> None:
        if not isinstance(error, SamplingError):
            raise error
        self._figure = None
        self.show_empty(str(error))

    def _force(self, token_id: int) -> None:
        """Take another token, unless the bars are still those of an earlier step."""
        shown, figure = self.session.state.shown, self._figure
        if figure is not None and shown is not None and shown.last_pass is figure.step:
            self.session.force(token_id)

    def _rows(self, figure: NextToken) -> list[BarRow]:
        rows = [self._row(figure, place, bar) for place, bar in enumerate(figure.bars)]
        greedy = figure.sampling.takes_best
        if figure.rest_count:
            rows.append(
                BarRow(
                    key=-1,
                    label=self.tr("{0} others").format(f"{figure.rest_count:,}"),
                    first=figure.rest_raw,
                    first_text=percent(figure.rest_raw),
                    second=None if greedy else figure.rest_final,
                    second_text=percent(figure.rest_final),
                    muted=figure.rest_final == 0,
                    rest=True,
                    tip=self.tr("The sum of all tokens that are not listed."),
                )
            )
        return rows

    def _row(self, figure: NextToken, place: int, bar: Bar) -> BarRow:
        origin = figure.step.draw.how
        ink = self.theme.origin("forced" if origin == "forced" else "generated")
        return BarRow(
            key=bar.token_id,
            label=_label(bar),
            first=bar.raw,
            first_text=percent(bar.raw),
            # Greedy leaves no distribution: one token has everything, whatever the bars say.
            second=None if figure.sampling.takes_best else bar.final,
            second_text=percent(bar.final),
            muted=not bar.kept,
            mark=ink if bar.chosen else None,
            tip=self._tip(bar, place),
        )

    def _tip(self, bar: Bar, place: int) -> str:
        lines = [
            self.tr("{0}, id {1}").format(_label(bar), bar.token_id),
            self.tr("model {0}, after sampling settings {1}").format(
                exact_percent(bar.raw), exact_percent(bar.final)
            ),
        ]
        if bar.token is not None:
            lines.insert(1, self.tr("bytes {0}").format(bar.token.raw.hex(" ") or "–"))
        if bar.chosen:
            lines.append(self.tr("This token was chosen."))
        else:
            lines.append(self.tr("Click to force this token instead."))
        return "\n".join(lines)

    def _words(self, figure: NextToken) -> str:
        draw = figure.step.draw
        picked = {
            "greedy": self.tr("most likely token"),
            "drawn": self.tr("sampled with u = {0}").format(f"{draw.u or 0:.4f}"),
            "forced": self.tr("forced by you"),
        }[draw.how]
        text = self.tr("Chosen: {0}").format(picked)
        if draw.rank:
            text = self.tr("Chosen: {0} (rank {1})").format(picked, f"{draw.rank + 1:,}")
        entropy = self.tr("entropy {0}").format(information(draw.entropy_nats))
        parts = [text, entropy]
        if not figure.sampling.takes_best:
            left = (
                self.tr("1 token possible") if figure.kept == 1 else self.tr("{0} tokens possible")
            )
            parts.append(left.format(f"{figure.kept:,}"))
            parts.append(self._tie_words(figure))
        if not figure.same_settings:
            parts.append(
                self.tr("bars: {0}; chosen with: {1}").format(
                    figures.settings_words(figure.sampling),
                    figures.settings_words(figure.step.sampling),
                )
            )
        return " · ".join(filter(None, parts))

    def _tie_words(self, figure: NextToken) -> str:
        """Why there are more than k, or why only some of equal tokens."""
        if figure.beyond_k:
            words = self.tr("{0} more than top-k (ties with the last)")
            return words.format(f"{figure.beyond_k:,}")
        if figure.tied_out:
            words = self.tr("{0} ties with the last are cut (lower ids win)")
            return words.format(f"{figure.tied_out:,}")
        return ""

    def _table(self) -> Iterator[Sequence[object]]:
        assert self._figure is not None
        yield "id", "text", "bytes_hex", "raw_probability", "probability", "chosen"
        for bar in self._figure.bars:
            raw = b"" if bar.token is None else bar.token.raw
            yield bar.token_id, _label(bar), raw.hex(), bar.raw, bar.final, bar.chosen
        yield "", "all others", "", self._figure.rest_raw, self._figure.rest_final, ""


def _label(bar: Bar) -> str:
    """The token's visible text; its number where the bytes are not known."""
    return f"id {bar.token_id}" if bar.token is None else tokens.written(bar.token)
