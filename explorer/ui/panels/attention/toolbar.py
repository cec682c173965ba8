"""The row above the maps: what is shown, in which view, beside what, and how it is coloured."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QAction, QActionGroup, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QComboBox, QMenu, QToolButton, QWidget

from explorer.figures.attention.head_means import Figure
from explorer.figures.drawing.colormaps import COLOUR_MAPS
from explorer.figures.drawing.colour_scale import Scale
from explorer.ui.access import mnemonics
from explorer.ui.glossary.labels import stand_for
from explorer.ui.kit.flow import Flow
from explorer.ui.kit.term_elided import TermElided
from explorer.ui.kit.wheel_guard import ComboBox
from explorer.ui.look.icons import icon
from explorer.ui.look.theme import Theme, unit
from explorer.ui.panels.attention import scales
from explorer.ui.panels.attention.heads_side import FindHeads

_WORDED = Qt.ToolButtonStyle.ToolButtonTextBesideIcon
_WORDS_ONLY = Qt.ToolButtonStyle.ToolButtonTextOnly
_ICON_ONLY = Qt.ToolButtonStyle.ToolButtonIconOnly


class _Fitted(ComboBox):
    """A list as wide as its choice: beside the others there is no room for its longest."""

    def __init__(self) -> None:
        super().__init__()
        self.currentIndexChanged.connect(self.updateGeometry)

    def sizeHint(self) -> QSize:
        hint = super().sizeHint()
        self.view().setMinimumWidth(hint.width())  # the open list has room for all
        width = self.fontMetrics().horizontalAdvance
        longest = max((width(self.itemText(i)) for i in range(self.count())), default=0)
        return QSize(hint.width() - longest + width(self.currentText()), hint.height())

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()


class Toolbar(QWidget):
    """Reports every choice; `changed` covers all that decides what is worked out."""

    changed = Signal()
    compared = Signal(bool)
    coloured = Signal()
    drawing = Signal(bool)  # draw a mask, or stop
    goTo = Signal()  # ask for a token to go to
    zoomed = Signal(float)  # 0 = the whole map

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.name = TermElided(term="head", look="title")
        self.view = self._chooser(
            self.tr("View"),
            [
                (self.tr("Map"), "maps", self.tr("One row per query, one column per key")),
                (self.tr("Arcs"), "arcs", self.tr("Arcs from token to token")),
                (self.tr("Row"), "row", self.tr("Attention of the selected token, as bars")),
            ],
        )
        self.figure = self._chooser(self.tr("What is shown"), self._figures())
        self.scale = self._chooser(self.tr("Scale of the colours"), scales.choices())
        self.scale.currentIndexChanged.connect(self.coloured)
        self.compare = QToolButton()
        self.compare.setText(self.tr("Compare"))
        self.compare.setAccessibleName(self.compare.text())
        self.compare.setCheckable(True)
        self.compare.setToolTip(
            self.tr(
                "Compare with and without the causal mask, or interventions: side by side and as "
                "a difference"
            )
        )
        stand_for(self.compare, term="causal-mask")
        self.compare.setToolButtonStyle(_WORDED)
        self.compare.clicked.connect(self.compared)
        self.draw = QToolButton()
        self.draw.setAccessibleName(self.tr("Draw a mask"))
        self.draw.setCheckable(True)
        self.draw.setToolTip(self.tr("Draw a mask: cut or allow cells on the map"))
        self.draw.clicked.connect(self.drawing)
        self.more = QToolButton()
        self.more.setProperty("look", "flat")
        self.more.setToolTip(self.tr("Zoom, colours, go to token"))
        self.more.setAccessibleName(self.tr("Display"))
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.more.setMenu(self._build_menu())
        self.finder = FindHeads()  # in the simple layout, where the heads are not beside the map
        self.finder.hide()
        self._room = (0, 0)  # the width, and what of it the others take
        self._row = Flow(self, first_grows=True)
        self._row.setSpacing(1)  # at 1280 pixels, in high contrast, Compare just keeps its word
        self._choices = (self.draw, self.compare, self.view, self.figure, self.scale, self.more)
        for part in (self.name, self.finder, *self._choices):
            self._row.addWidget(part)
        self._tint()

    def _figures(self) -> list[tuple[str, str, str]]:
        return [
            (self.tr("One head"), "head", self.tr("Attention weights of one head")),
            (
                self.tr("No first token"),
                "sinkless",
                self.tr("One head without its attention to the first token, rescaled to 100 %"),
            ),
            (self.tr("Mean of heads"), "mean_heads", self.tr("Mean over this layer's heads")),
            (self.tr("Max of heads"), "max_heads", self.tr("Maximum over this layer's heads")),
            (self.tr("Mean of layers"), "mean_layers", self.tr("Mean over all heads and layers")),
            (self.tr("Max of layers"), "max_layers", self.tr("Maximum over all heads and layers")),
            (
                self.tr("Rollout"),
                "rollout",
                self.tr("Head means multiplied from layer 0 up to this layer"),
            ),
        ]

    def _chooser(self, name: str, items: list[tuple[str, str, str]]) -> QComboBox:
        box = _Fitted()
        box.setAccessibleName(name)
        box.setToolTip(name)
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        for place, (words, value, tip) in enumerate(items):
            box.addItem(words, value)
            box.setItemData(place, tip, Qt.ItemDataRole.ToolTipRole)
        metrics = box.fontMetrics()
        widest = max(metrics.horizontalAdvance(words) for words, _, _ in items)
        # Room for one more letter is in the style's own margins.
        box.setMinimumContentsLength(ceil(widest / metrics.horizontalAdvance("X")) - 1)
        box.setIconSize(QSize(0, 0))  # no icons: their room is the name's
        box.view().setTextElideMode(Qt.TextElideMode.ElideNone)
        box.currentIndexChanged.connect(self.changed)
        return box

    def _build_menu(self) -> QMenu:
        menu = QMenu(self)
        self._acts: list[tuple[QAction, str]] = []
        for name, words, factor in (
            ("zoom-in", self.tr("Zoom in\t+"), 1.5),
            ("zoom-out", self.tr("Zoom out\t-"), 1 / 1.5),
            ("fit", self.tr("Show the whole map\t0"), 0.0),
        ):
            act = menu.addAction(words, partial(self.zoomed.emit, factor))
            self._acts.append((act, name))
        menu.addAction(self.tr("Go to token…\tCtrl+G"), self.goTo.emit)
        menu.addSeparator()
        names: list[tuple[str, object]] = [(name.capitalize(), name) for name in COLOUR_MAPS]
        self._colours = self._group(menu, names, lambda: None)
        self._colours.triggered.connect(lambda _: self.coloured.emit())
        mnemonics.follow(menu)
        return menu

    def _group(
        self, menu: QMenu, items: list[tuple[str, object]], then: Callable[[], None]
    ) -> QActionGroup:
        group = QActionGroup(menu)
        for words, value in items:
            act = menu.addAction(words)
            act.setCheckable(True)
            act.setData(value)
            group.addAction(act)
        group.actions()[0].setChecked(True)
        group.triggered.connect(lambda _: then())
        return group

    # -- choices

    @property
    def chosen_view(self) -> str:
        """maps, arcs or row."""
        return str(self.view.currentData())

    @property
    def chosen_figure(self) -> Figure:
        """What is shown of the attention."""
        chosen: Figure = self.figure.currentData()
        return chosen

    @property
    def chosen_scale(self) -> Scale:
        """How weights become colours."""
        chosen: Scale = self.scale.currentData()
        return chosen

    @property
    def colours(self) -> str:
        """The colour map."""
        return str(self._colours.checkedAction().data())

    def offer_drawing(self, refusal: str) -> None:
        """Offer to draw a mask, or say why not."""
        self.draw.setEnabled(not refusal)
        self.draw.setToolTip(refusal or self.tr("Draw a mask: cut or allow cells on the map"))

    def choose(self, *, scale: Scale | None = None, colours: str | None = None) -> None:
        """Choose as the lists and the menu do."""
        if scale is not None:
            self.scale.setCurrentIndex(self.scale.findData(scale))
        for act in self._colours.actions():
            if act.data() == colours:
                act.trigger()

    # -- look

    def set_simple(self, on: bool) -> None:
        """The name and the way to other heads alone, or every choice."""
        self.finder.setVisible(on)
        for part in self._choices:
            part.setVisible(not on)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._tint()

    def _tint(self) -> None:
        self.name.ensurePolished()
        usual = self.tr("Layer {0} · head {1}").format(88, 88)
        self.name.setMinimumWidth(self.name.fontMetrics().horizontalAdvance(usual))
        size = round(16 * unit(self))
        self.more.setIcon(icon("settings", self._theme))
        self.compare.setIcon(icon("mask", self._theme))
        self.draw.setIcon(icon("pencil", self._theme))
        for button in (self.draw, self.more, self.compare):
            button.setIconSize(QSize(size, size))
        for act, name in self._acts:
            act.setIcon(icon(name, self._theme))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._tint()  # only now is the name as wide as its style makes it

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._word_compare()

    def event(self, event: QEvent) -> bool:
        done = super().event(event)
        if event.type() == QEvent.Type.LayoutRequest:
            self._word_compare()
        return done

    def _word_compare(self) -> None:
        """Its words as far as there is room: the name of what is shown needs it more."""
        others = self._row.sizeHint().width() - self.compare.sizeHint().width()
        if self._room == (self.width(), others):
            return
        self._room = self.width(), others
        for style in (_WORDED, _WORDS_ONLY, _ICON_ONLY):
            self.compare.setToolButtonStyle(style)
            if others + self.compare.sizeHint().width() <= self.width():
                return

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        changes = (QEvent.Type.FontChange, QEvent.Type.StyleChange)
        if event.type() in changes and hasattr(self, "_acts"):
            self._tint()
