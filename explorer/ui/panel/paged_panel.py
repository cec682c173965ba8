"""A panel of several pages: chosen in its header, only the one that is seen is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtGui import QActionGroup
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from explorer.session.changes import changed
from explorer.session.state import State
from explorer.ui.access import mnemonics
from explorer.ui.kit.scrolled import OneOf
from explorer.ui.panel.panel import Panel, View

if TYPE_CHECKING:
    from explorer.session.session import Session
    from explorer.ui.look.theme import Theme


class Page(QWidget):
    """One page; its panel calls `show_state` only while it is the one that is seen."""

    ID = ""  # names it in a session's file, among the pages of its panel
    FORMER_ID = ""  # what files of before call it
    TITLE = ""
    NEEDS: tuple[str, ...] = ("trace", "step_index")  # parts of the state that it is drawn from

    def show_state(self, new: State) -> str | None:
        """Draw, or say why nothing is drawn: a sentence, or "" for the panel's own."""
        raise NotImplementedError

    def needs(self, old: State | None, new: State) -> bool:
        """True if something changed that it is drawn from."""
        return changed(old, new, *self.NEEDS)

    def views(self) -> Mapping[str, View]:
        """What can be copied or saved."""
        return {}

    def choices(self) -> dict[str, str | float]:
        """What it is turned to, for a session's file."""
        return {}

    def choose(self, choices: Mapping[str, str | float]) -> None:
        """Turn to what a file says; what is not known stays as it is."""


class PagedPanel(Panel):
    """A subclass names its PAGES in the order of the chooser; the first is seen at the start."""

    PAGES: tuple[Callable[[Session, Theme], Page], ...]

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self._state: State | None = None
        self._stack = OneOf()
        self._chooser = QToolButton()
        self._chooser.setProperty("look", "title-button")
        self._chooser.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._chooser.setToolTip(self.tr("What this panel shows"))
        self._menu = QMenu(self._chooser)
        mnemonics.follow(self._menu)
        self._chooser.setMenu(self._menu)
        self._choices = QActionGroup(self)
        self.content.addWidget(self._stack, 1)
        self.header_row.insertWidget(self.header_row.count() - 1, self._chooser)
        self._add_pages([make(session, theme) for make in self.PAGES])

    def _add_pages(self, pages: Sequence[Page]) -> None:
        for page in pages:
            self._stack.addWidget(page)
            choice = self._menu.addAction(page.tr(page.TITLE), partial(self._turn, page))
            choice.setCheckable(True)
            self._choices.addAction(choice)
        self._turn(pages[0])

    @property
    def page(self) -> Page:
        """The one that is seen."""
        page = self._stack.currentWidget()
        assert isinstance(page, Page)
        return page

    def turn_to(self, page: type[Page]) -> None:
        """Show the page of this kind."""
        self._turn(next(p for p in self._pages_in_order() if isinstance(p, page)))

    def choices(self) -> dict[str, str | float]:
        return {"page": self.page.ID, **self.page.choices()}

    def choose(self, choices: Mapping[str, str | float]) -> None:
        wanted = choices.get("page")
        for page in self._pages_in_order():
            if wanted in (page.ID, page.FORMER_ID):
                self._turn(page)
                page.choose(choices)

    def _pages_in_order(self) -> list[Page]:
        pages = [self._stack.widget(place) for place in range(self._stack.count())]
        return [page for page in pages if isinstance(page, Page)]

    def show_state(self, old: State | None, new: State) -> None:
        self._state = new
        if self.page.needs(old, new):
            self.draw(new)

    def draw(self, new: State) -> None:
        why = self.page.show_state(new)
        if why is None:
            self.show_content()
        else:
            self.show_empty(why)

    def _turn(self, page: Page) -> None:
        self._stack.setCurrentWidget(page)
        self._choices.actions()[self._stack.currentIndex()].setChecked(True)
        title = page.tr(page.TITLE)
        self._chooser.setText(title)
        self._chooser.setAccessibleName(
            self.tr("{0} shows: {1}").format(self.tr(self.TITLE), title)
        )
        if self._state is not None:
            self.draw(self._state)

    def views(self) -> Mapping[str, View]:
        return self.page.views() if self._stack.count() else {}
