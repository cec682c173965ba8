"""Two charts of one thing under what they say in words, as the cache and timings panels have.

With room for both they lie side by side, or over one another; with less, one is seen and a list
turns to the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from PySide6.QtGui import QActionGroup, QResizeEvent
from PySide6.QtWidgets import QMenu, QToolButton, QVBoxLayout, QWidget

from explorer.ui.access import mnemonics
from explorer.ui.canvases.charts.chart import Chart
from explorer.ui.kit import boxes
from explorer.ui.kit.elided import ResultLabel
from explorer.ui.look.theme import unit
from explorer.ui.panel.paged_panel import Page

_BOTH_FROM = (620, 120)  # pixels at a zoom of 1, width and height
_OVER_FROM = (150, 300)  # the same where they lie over one another
_MORE_FROM = (158, 176)  # pixels of height at a zoom of 1


class ChartPair(QWidget):
    """A headline, a line that also reads out the place under the cursor, and two charts."""

    def __init__(
        self, first: Chart, second: Chart, names: tuple[str, str], tip: str = "",
        parent: QWidget | None = None, over: bool = False,
    ) -> None:  # fmt: skip
        """`names` are those of the charts in the list; `tip` explains the headline.

        `over`: the first over the second.
        """
        super().__init__(parent)
        self.first, self.second = first, second
        self._names = names
        self._front = 0
        self._both_from = _OVER_FROM if over else _BOTH_FROM
        self._headline = ResultLabel(tip=tip)
        self._line = ResultLabel(look="small")
        self._words = "", ""
        self._more = (ResultLabel(), ResultLabel())
        for part in self._more:
            part.setProperty("look", "small")
        self._list = self._build_list()
        top = boxes.line(None, (self._headline, 1), self._list, gap=4)
        charts = (boxes.column if over else boxes.line)(None, first, second, gap=10)
        boxes.column(self, top, self._line, *self._more, (charts, 1), gap=1)
        for chart in (first, second):
            chart.hovered.connect(self._read_out)
        self.show_in_front(0)

    def _build_list(self) -> QToolButton:
        button = QToolButton()
        button.setProperty("look", "title-button")
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        button.setToolTip(self.tr("Which chart is shown"))
        menu = QMenu(button)
        mnemonics.follow(menu)
        self._choices = QActionGroup(button)
        for place, name in enumerate(self._names):
            choice = menu.addAction(name, partial(self.show_in_front, place))
            choice.setCheckable(True)
            self._choices.addAction(choice)
        button.setMenu(menu)
        return button

    @property
    def in_front(self) -> int:
        """0 or 1: the chart that is seen where there is room for one."""
        return self._front

    def show_in_front(self, place: int) -> None:
        """Turn to the first (0) or the second (1) chart."""
        self._front = place
        self._choices.actions()[place].setChecked(True)
        self._list.setText(self._names[place])
        self._list.setAccessibleName(self.tr("Chart: {0}").format(self._names[place]))
        self._make_room()

    @property
    def seen(self) -> tuple[Chart, ...]:
        """The charts that there is room for."""
        both = (self.first, self.second)
        return both if self._roomy else both[self._front : self._front + 1]

    def set_words(self, headline: str, line: str = "", *more: str) -> None:
        """What the charts say.  Without a line the headline reads out what is under the cursor.

        `more`: up to two further lines, seen where there is room for them.
        """
        self._words = headline, line
        if self.first.over is None and self.second.over is None:
            self._read_out("")
        for part, words in zip(self._more, (*more, "", ""), strict=False):
            part.setText(words)
        self._make_room()

    @property
    def words(self) -> tuple[str, ...]:
        """The headline, the line below it, and two lines of what else there is to say."""
        return tuple(part.text() for part in (self._headline, self._line, *self._more))

    def _read_out(self, words: str) -> None:
        headline, line = self._words
        read = " · ".join(words.splitlines())
        self._headline.setText(headline if line else read or headline)
        self._line.setText(line and (read or line))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._make_room()

    @property
    def _roomy(self) -> bool:
        u = unit(self)
        wide, high = self._both_from
        return self.width() >= wide * u and self.height() >= high * u

    def _make_room(self) -> None:
        seen = self.seen
        for chart in (self.first, self.second):
            chart.setVisible(chart in seen)
            if chart not in seen:
                chart.resize(seen[0].size())  # a picture of it is as large
        self._list.setVisible(len(seen) == 1)
        self._line.setVisible(bool(self._words[1]))
        for part, least in zip(self._more, _MORE_FROM, strict=True):
            part.setVisible(self.height() >= least * unit(self) and bool(part.text()))


class ChartPairPage(Page):
    """A page that is two charts and nothing else; a subclass hands them to `set_charts`."""

    charts: ChartPair

    def set_charts(self, charts: ChartPair) -> None:
        """Fill the page with them."""
        self.charts = charts
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(charts)

    def choices(self) -> dict[str, str | float]:
        return {"chart": float(self.charts.in_front)}

    def choose(self, choices: Mapping[str, str | float]) -> None:
        place = choices.get("chart")
        if place in (0.0, 1.0):
            self.charts.show_in_front(int(place))
