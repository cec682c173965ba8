"""The bar on top: model, transport, switches of the forward pass, look."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QT_TRANSLATE_NOOP, QEvent, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent, QStandardItemModel
from PySide6.QtWidgets import QCheckBox, QFrame, QHBoxLayout, QMenu, QToolButton, QWidget

from explorer.figures.text import sentences
from explorer.session.changes import changed
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.request import Side
from explorer.ui.access import mnemonics
from explorer.ui.access.tips import tip
from explorer.ui.files.session_files import BUNDLED
from explorer.ui.frame.offered_actions import OfferedActions
from explorer.ui.glossary.labels import TermBox, TermLabel
from explorer.ui.kit.names import literal
from explorer.ui.kit.steady_button import SteadyButton
from explorer.ui.kit.wheel_guard import ComboBox, SpinBox
from explorer.ui.look.icons import icon
from explorer.ui.look.theme import Theme, unit

_LEAST = 620  # pixels at a zoom of 1, with icons only
_LEAST_PRESENTING = 530
_WORDED = Qt.ToolButtonStyle.ToolButtonTextBesideIcon
_ICON_ONLY = Qt.ToolButtonStyle.ToolButtonIconOnly
_SIDES: tuple[Side | None, ...] = (None, "left", "right")  # of padding, as in the list
_TITLES = {
    "smollm2": "SmolLM2 135M Instruct",
    "copycat": str(QT_TRANSLATE_NOOP("TopBar", "Copycat, the teaching model")),
}


class TopBar(QWidget):
    """Follows the state; every request goes to the session or to an action."""

    openModel = Signal(str)

    def __init__(
        self, session: Session, actions: OfferedActions, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._session = session
        self._actions = actions
        self._theme = theme
        self._recent: list[str] = []
        self._presenting = self._simple = False
        self._padding_wanted = True
        self._last_levels = (2, 2, 1, 0)  # where words are still shown
        self._buttons: dict[str, QWidget] = {}  # by their actions
        self.setProperty("look", "bar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._build_model()
        self._build_switches()
        self._build_panels()
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(10, 5, 10, 5)
        self._row.setSpacing(6)
        self._row.addWidget(self._model)
        self._model_line = self._line()
        self._at_the_desk = [self._button("reset"), self._button("back")]
        for button in self._at_the_desk:
            self._row.addWidget(button)
        self._worded = [
            self._button("step", text=True, primary=True),
            self._button("run", text=True),
            self._button("presenter", text=True),
            self._button("padding-lab", text=True),
        ]
        self._row.addWidget(self._worded[0])
        self._row.addWidget(self._worded[1])
        self._line()
        self._row.addWidget(self.mask_switch)
        self._row.addWidget(self.cache_switch)
        self._padding = [self._line(), self.side, self.pad, self._worded[3]]
        self._row.addWidget(self._padding_label)
        for widget in self._padding[1:]:
            self._row.addWidget(widget)
        self._row.addStretch(1)
        self.full_switch = self._switch("full")
        self.full_switch.setText(self.tr("Full"))
        self._row.addWidget(self.full_switch)
        self._turning = [self._button("previous-panel"), self.panels, self._button("next-panel")]
        for button in self._turning:
            button.hide()
            self._row.addWidget(button)
        self._row.addWidget(self._worded[2])
        self.set_theme(theme)

    def _build_model(self) -> None:
        self._title = ""
        self._model = QToolButton()
        self._model.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._model.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._menu = QMenu(self._model)
        self._menu.aboutToShow.connect(self._fill_menu)
        mnemonics.follow(self._menu)
        self._model.setMenu(self._menu)

    def _build_switches(self) -> None:
        self.mask_switch = self._switch("mask", term="causal-mask")
        self.cache_switch = self._switch("cache", term="kv-cache")
        self._padding_label = TermLabel(self.tr("Padding"), term="padding")
        self.side = ComboBox()
        self.side.addItems([self.tr("none"), self.tr("left"), self.tr("right")])
        self.side.setAccessibleName(self.tr("Padding side"))
        self.side.setToolTip(self.tr("Add padding tokens before or after the prompt"))
        self.side.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._padding_label.setBuddy(self.side)
        self.pad = SpinBox()
        self.pad.setRange(1, 4096)
        self.pad.setValue(8)
        self.pad.setKeyboardTracking(False)
        self.pad.setObjectName("pad")
        self.pad.setAccessibleName(self.tr("Number of padding tokens"))
        self.pad.setToolTip(self.pad.accessibleName())
        self.side.activated.connect(self._request_padding)
        self.pad.valueChanged.connect(self._request_padding)

    def _build_panels(self) -> None:
        """In place of the View menu, which is away in presenter mode."""
        self.panels = QToolButton()
        self.panels.setText(self.tr("Panels"))
        self.panels.setAccessibleName(self.panels.text())
        self.panels.setToolTip(self.tr("Show or hide a panel"))
        self.panels.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.panels.setMenu(QMenu(self.panels))

    def _button(self, action: str, text: bool = False, primary: bool = False) -> QToolButton:
        names = [] if action == "presenter" else self._actions.names(action)
        button = SteadyButton(names) if len(names) != 1 else QToolButton()
        button.setDefaultAction(self._actions.by_id[action])
        self._buttons[action] = button
        if text:
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        if primary:
            button.setProperty("look", "primary")
            self._primary = button
            # The action's own picture is for the menu; after each change of it Qt takes that one.
            self._actions.by_id[action].changed.connect(self._tint_primary)
        return button

    def _switch(self, action: str, term: str = "") -> QCheckBox:
        """A check box that mirrors a checkable action; the action alone acts."""
        source = self._actions.by_id[action]
        box = TermBox(source.text(), term) if term else QCheckBox(source.text())
        # The mouse must not leave the focus here: Space would then switch instead of stepping.
        box.setFocusPolicy(Qt.FocusPolicy.TabFocus)

        def mirror() -> None:
            box.setChecked(source.isChecked())
            box.setEnabled(source.isEnabled())
            box.setToolTip(source.toolTip())

        def act() -> None:
            source.trigger()
            mirror()

        source.changed.connect(mirror)
        box.clicked.connect(act)
        return box

    def _line(self) -> QFrame:
        line = QFrame()
        line.setFrameShape(QFrame.Shape.VLine)
        line.setProperty("look", "line")
        self._row.addWidget(line)
        return line

    @property
    def controls(self) -> dict[str, QWidget]:
        """Each control by the name that a lesson calls it: that of its action, if it has one."""
        return {
            **self._buttons,
            "model": self._model,
            "mask": self.mask_switch,
            "cache": self.cache_switch,
            "padding": self.side,
            "pad": self.pad,
        }

    @property
    def model_text(self) -> str:
        """The name on the model button, whole."""
        return self._title

    def set_theme(self, theme: Theme) -> None:
        size = round(18 * unit(self))
        for button in self.findChildren(QToolButton):
            button.setIconSize(QSize(size, size))
        self.pad.setFixedWidth(round(64 * unit(self)))
        self._model.setIcon(icon("model", theme))
        self._theme = theme
        self._tint_primary()
        self._model.setMaximumWidth(round(230 * unit(self)))
        self._name_model()
        self._fit()  # now that every button knows its new size

    def _tint_primary(self) -> None:
        self._primary.setIcon(icon("step", self._theme, "on_accent"))

    def minimumSizeHint(self) -> QSize:
        least = _LEAST_PRESENTING if self._presenting else _LEAST
        return QSize(round(least * unit(self)), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._name_model()
            self._fit()

    def _name_model(self) -> None:
        """A long name is cut in its middle: how a file is quantised stands at its end."""
        room = self._model.maximumWidth() - self._model.iconSize().width() - round(40 * unit(self))
        name = self._title.removesuffix(".gguf")
        text = self._model.fontMetrics().elidedText(name, Qt.TextElideMode.ElideMiddle, room)
        self._model.setText(text.replace("&", "&&"))

    def _fit(self) -> None:
        """Leave out words, the least needed first, until the bar fits its width."""
        for level in range(4):
            self._padding_label.setVisible(level < 1 and not self.side.isHidden())
            for button, last in zip(self._worded, self._last_levels, strict=True):
                button.setToolButtonStyle(_WORDED if level <= last else _ICON_ONLY)
            self._model.setToolButtonStyle(_WORDED if level <= 2 else _ICON_ONLY)
            self._row.invalidate()
            if self._row.minimumSize().width() <= self.width():
                return

    def set_recent(self, names: list[str]) -> None:
        self._recent = names

    def set_presenting(self, on: bool) -> None:
        """Leave out what could be hit by accident, and offer what the menus did."""
        for widget in (self._model, self._model_line, *self._at_the_desk, self.full_switch):
            widget.setVisible(not on)
        for widget in self._turning:
            widget.setVisible(on)
        self._presenting = on
        self._last_levels = (2, 2, 3, 0) if on else (2, 2, 1, 0)  # the way out stays in words

    def show_place(self, place: int, of: int) -> None:
        """Which of how many panels a class sees, from 1; 0 of any: several."""
        words = self.tr("{0} of {1}").format(place, of) if place else self.tr("Panels")
        self.panels.setText(words)
        self._fit()

    def follow(self, session: Session) -> None:
        """From now on it is about another session, whose state is shown next."""
        self._session = session

    def show_padding(self, on: bool) -> None:
        """Padding is a setting, though it stands up here."""
        self._padding_wanted = on
        self._show_offered(self._session.state)

    def set_simple(self, on: bool) -> None:
        """Without cache and padding, unless they are not as they are at first."""
        self._simple = on
        self.full_switch.setText(self.tr("Full layout") if on else self.tr("Full"))
        self._show_offered(self._session.state)

    def _show_offered(self, state: State) -> None:
        self.cache_switch.setVisible(not self._simple or not state.request.cache)
        on = self._padding_wanted and (not self._simple or state.request.padding is not None)
        for widget in self._padding:
            widget.setVisible(on and not (self._presenting and widget is self._worded[3]))
        self._fit()

    def show_state(self, old: State | None, new: State) -> None:
        if changed(old, new, "request.model", "opened"):
            self._show_model(new)
        if changed(old, new, "request", "card"):
            self._show_padding(new)
            if self._simple:
                self._show_offered(new)

    def _show_model(self, state: State) -> None:
        """The model that is open, else the one that Step opens."""
        name = open_name(state)
        self._title = title_of(name) or self.tr("Choose a model")
        hint, words = name or self._title, self.tr("Model: {0}").format(self._title)
        if state.other_model:
            run = self.tr("The run on screen is of {0}.").format(title_of(state.request.model))
            hint, words = f"{hint}\n{run}", f"{words}. {run}"
        self._model.setToolTip(tip(hint))
        self._name_model()
        self._model.setAccessibleName(words)

    def _show_padding(self, state: State) -> None:
        side = _SIDES.index(state.request.padding)
        self.side.setCurrentIndex(side)
        self.pad.setEnabled(side != 0)
        if state.request.pad:
            blocked = self.pad.blockSignals(True)
            self.pad.setValue(state.request.pad)
            self.pad.blockSignals(blocked)
        card = state.next_card
        for index, name in ((1, "left_padding"), (2, "right_padding")):
            offered = card is None or card.offers(name)
            sides = self.side.model()
            assert isinstance(sides, QStandardItemModel)  # what Qt makes for a list
            item = sides.item(index)
            item.setEnabled(offered)
            item.setToolTip("" if card is None else tip(card.words(name)))

    def _request_padding(self) -> None:
        side = _SIDES[self.side.currentIndex()]
        self._session.set_padding(side, self.pad.value() if side else 0)

    def _fill_menu(self) -> None:
        self._menu.clear()
        for name in BUNDLED:
            self._menu.addAction(self.tr(_TITLES[name]), partial(self.openModel.emit, name))
        if self._recent:
            self._menu.addSection(self.tr("Recent"))
        for path in self._recent:
            action = self._menu.addAction(
                literal(title_of(path)), partial(self.openModel.emit, path)
            )
            action.setToolTip(tip(path))
        self._menu.setToolTipsVisible(True)
        self._menu.addSeparator()
        self._menu.addAction(self._actions.by_id["choose-model"])
        self._menu.addAction(self._actions.by_id["open-folder"])
        self._menu.addAction(self._actions.by_id["open-file"])


def open_name(state: State) -> str:
    """What the open model was opened by; the model to be opened if none is open."""
    return state.opened[0].model if state.other_model else state.request.model


def title_of(model: str) -> str:
    """A model's name for people: the last part of its path."""
    return _TITLES.get(model) or sentences.name(Path(model).name or model)
