"""Everything that explains: a word's card, the glossary, the keys, the guide, and pointing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QRect
from PySide6.QtWidgets import QApplication, QDialog, QLabel, QWidget

from explorer.ui.access.outline import PartOutline
from explorer.ui.dialogs.help.term_card import TermCard
from explorer.ui.frame.docks import Docks
from explorer.ui.frame.panel_dock import PanelDock
from explorer.ui.glossary.labels import TERM, Dotted, known, term_of
from explorer.ui.menus.menus import Actions

if TYPE_CHECKING:
    from explorer.ui.dialogs.help.glossary_page import GlossaryPage
    from explorer.ui.dialogs.help.guide import Guide
    from explorer.ui.dialogs.help.keys_page import KeysPage

_PANEL = "panel:"


class Help(QObject):
    """Made with the window; its pages are made when they are first asked for."""

    def __init__(
        self,
        window: QWidget,
        actions: Actions,
        docks: Docks,
        areas: Mapping[str, QWidget],
        show_settings: Callable[[bool], None],
    ) -> None:
        """`areas`: the parts of the window besides the panels, by their names in the glossary."""
        super().__init__(window)
        self._window, self._actions, self._docks = window, actions, docks
        self._areas, self._show_settings = areas, show_settings
        self._outline: PartOutline | None = None
        self._cards: dict[QWidget, TermCard] = {}  # one a window: a panel may float
        self._guide: Guide | None = None
        self._keys: KeysPage | None = None
        self._glossary: GlossaryPage | None = None

    # -- one term

    def explain(
        self, widget: QWidget, name: str, by_key: bool = False, words: QRect | None = None
    ) -> None:
        """The card of a term, beside the widget that stands for it or the words in it."""
        term = known().terms.get(name)
        if term is None:
            return
        self.close_card()
        label = widget if isinstance(widget, Dotted) else _label_of(widget, name)
        about = label if label is not None and label.isVisible() else widget
        if words is not None:
            about = widget
        else:
            words = about.words_area() if isinstance(about, Dotted) else about.rect()
        self._card(about.window()).explain(name, term, about, words, by_key)

    def explain_focus(self) -> None:
        """The term of what has the focus; the guide where there is none, or at a second press."""
        found = term_of(QApplication.focusWidget())
        if self.close_card() or found is None:
            self.show_guide()
        else:
            self.explain(*found, by_key=True)

    def close_card(self) -> bool:
        """False if there was none."""
        closed = [card.close_card() for card in self._cards.values()]
        return any(closed)

    @property
    def card(self) -> TermCard:
        """The one over the main window."""
        return self._card(self._window)

    def _card(self, window: QWidget) -> TermCard:
        if window not in self._cards:
            card = self._cards[window] = TermCard(window)
            card.showMe.connect(self.show_me)
            card.glossaryWanted.connect(self.show_glossary)
        return self._cards[window]

    # -- pointing

    def show_me(self, name: str) -> None:
        """Bring up the part of the window where a term can be seen, and outline it."""
        term = known().terms.get(name)
        area = None if term is None else self._area(term.show)
        if area is None:
            return
        found = [w for w in area.findChildren(QWidget) if w.property(TERM) == name]
        seen = [w for w in found if w.isVisible()]
        seen.sort(key=lambda w: not isinstance(w, Dotted))  # a word before what has none
        whole = isinstance(area, PanelDock) and area.panel.property(TERM) == name
        if whole or not seen:
            self.outline_of(area).point_at(area)
            return
        self.outline_of(area).point_at(*_with_buddy(seen[0]))

    def outline_of(self, widget: QWidget) -> PartOutline:
        """The outline in the window of a widget, pointing at nothing."""
        window = widget.window()
        if self._outline is not None and self._outline.parentWidget() is window:
            return self._outline
        if self._outline is not None:
            self._outline.deleteLater()
        self._outline = PartOutline(window)
        return self._outline

    @property
    def pointed_at(self) -> QWidget | None:
        """What is outlined now."""
        return None if self._outline is None else self._outline.target

    def _area(self, show: str) -> QWidget | None:
        if show.startswith(_PANEL):
            docks = {dock.place.id: dock for dock in self._docks.docks}
            found = docks.get(show.removeprefix(_PANEL))
            if found is not None:
                self._docks.bring_up(found.place.id)
            return found
        if show == "settings":
            self._show_settings(True)
        return self._areas.get(show)

    # -- pages

    def show_guide(self) -> None:
        """What is on screen, beside the window."""
        if self._guide is None:
            from explorer.ui.dialogs.help.guide import Guide

            self._guide = Guide(self._window)
            self._guide.glossaryWanted.connect(self.show_glossary)
            self._guide.keysWanted.connect(self.show_keys)
        self._guide.show_for(self._docks.docks)

    def show_keys(self) -> None:
        """All keys, beside the window."""
        if self._keys is None:
            from explorer.ui.dialogs.help.keys_page import KeysPage

            self._keys = KeysPage(self._actions, self._window)
        self._keys.show_keys()

    def show_glossary(self, name: str = "") -> None:
        """All terms, beside the window; at this one if one is named."""
        if self._glossary is None:
            from explorer.ui.dialogs.help.glossary_page import GlossaryPage

            self._glossary = GlossaryPage(self._window)
            self._glossary.showMe.connect(self._show_in_window)
        self._glossary.show_at(name)

    def _show_in_window(self, name: str) -> None:
        self._window.activateWindow()
        self.show_me(name)

    @property
    def pages(self) -> tuple[QDialog, ...]:
        """Those that were opened."""
        return tuple(filter(None, (self._guide, self._keys, self._glossary)))

    def close(self) -> None:
        """Close everything, with the window."""
        self.close_card()
        for page in self.pages:
            page.close()


def _label_of(control: QWidget, name: str) -> QWidget | None:
    """The label that names a control by a term."""
    around = control.parentWidget()
    labels = [] if around is None else around.findChildren(QLabel)
    return next((w for w in labels if w.buddy() is control and w.property(TERM) == name), None)


def _with_buddy(label: QWidget) -> tuple[QWidget, Callable[[], QRect | None] | None]:
    """A label and the control that it names, where both lie in one widget."""
    buddy = label.buddy() if isinstance(label, QLabel) else None
    around = label.parentWidget()
    if buddy is None or around is None or buddy.parentWidget() is not around:
        return (label if buddy is None else buddy), None
    return around, lambda: label.geometry() | buddy.geometry()
