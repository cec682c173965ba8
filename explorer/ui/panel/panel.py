"""The frame every panel shares: explanation, empty state, copy and save."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QStandardPaths, Qt, Signal
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QHBoxLayout, QMenu, QToolButton, QVBoxLayout, QWidget

from explorer.session.changes import changed
from explorer.session.state import State
from explorer.ui.access import mnemonics
from explorer.ui.files import caption, export, save_dialog
from explorer.ui.files.background_saving import BackgroundSaving
from explorer.ui.files.export import Kind, View
from explorer.ui.glossary.labels import TermLabel, stand_for
from explorer.ui.kit import boxes
from explorer.ui.kit.elided import Subtitle
from explorer.ui.kit.scrolled import OneOf, Scrolled
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.look import themed
from explorer.ui.panel.convert_button import ConvertButton
from explorer.ui.settings.preferences import Preferences

if TYPE_CHECKING:
    from explorer.session.session import Session
    from explorer.ui.look.theme import Theme

__all__ = ["Panel", "View"]

_LEAST = (150, 60)  # pixels at a zoom of 1; with less room than it needs, a panel scrolls


class Panel(QWidget):
    """One dockable view of the state.

    A subclass sets ID, TITLE, EXPLANATION, EMPTY and NEEDS, adds its widgets to `self.content`,
    and in `draw` calls `show_content()`, or `show_empty(why)` if there is nothing to draw.
    """

    ID = ""  # short and stable: names the dock in the saved layout
    TITLE = ""
    EXPLANATION = ""  # one plain line: what is drawn
    TERM = ""  # ID of the glossary's term that the title is, if it is one
    BESIDE = ""  # ID of the panel whose place it shares as a tab, once the View menu opens it
    EMPTY = QT_TRANSLATE_NOOP("Panel", "Type a prompt and press Step (Space).")

    NEEDS: tuple[str, ...] = ("trace", "step_index")  # parts of the state that it is drawn from

    failed = Signal(str)  # one sentence for the window's error bar
    wanted = Signal(str)  # ID of a panel that now has something to show

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.session = session
        self.theme = theme
        self.preferences = Preferences()  # a window gives all panels its own
        self.setProperty("look", "card")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(self.tr(self.TITLE))
        self.setAccessibleDescription(self.tr(self.EXPLANATION))
        if self.TERM:
            stand_for(self, self.TERM)

        self.header = self._build_header()
        self._why = self._activity = ""
        self._empty = SentenceLabel(look="muted")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        page = QWidget()
        self.content = QVBoxLayout(page)
        self.content.setContentsMargins(0, 0, 0, 0)
        self.convert = ConvertButton(session)
        nothing = QWidget()
        lines = QVBoxLayout(nothing)
        lines.setContentsMargins(0, 0, 0, 0)
        lines.addStretch(1)
        lines.addWidget(self._empty)
        lines.addWidget(self.convert, 0, Qt.AlignmentFlag.AlignHCenter)
        lines.addStretch(1)
        self._pages = OneOf()
        self._pages.addWidget(nothing)
        self._pages.addWidget(page)

        boxes.column(
            self, self.header, (Scrolled(self._pages, _LEAST), 1), edges=(8, 4, 8, 4), gap=4
        )
        self.show_empty()

    def show_state(self, old: State | None, new: State) -> None:
        """Draw if something that it needs has changed; `old` is None at the first call."""
        if changed(old, new, *self.NEEDS):
            self.draw(new)

    def draw(self, new: State) -> None:
        """Draw all of it."""
        raise NotImplementedError

    def set_theme(self, theme: Theme) -> None:
        """Take new colours, and pass them on to the canvases."""
        self.theme = theme
        themed.pass_on(self, theme)

    def set_simple(self, on: bool) -> None:
        """Show the least that the panel is about, or every choice."""

    def views(self) -> Mapping[str, View]:
        """What can be copied or saved, by a name for the menu."""
        return {}

    def choices(self) -> dict[str, str | float]:
        """What its lists and pages are turned to, for a session's file."""
        return {}

    def choose(self, choices: Mapping[str, str | float]) -> None:
        """Turn them to what a file says; what is not known stays as it is."""

    @property
    def empty(self) -> bool:
        """True while the empty page is shown."""
        return self._pages.currentIndex() == 0

    @property
    def busy(self) -> bool:
        """True while something is worked out that this panel has still to draw."""
        return False

    def show_activity(self, state: State) -> None:
        """While the first step of a run is on its way, an empty panel says what is going on."""
        self._activity = activity_words(state)
        if self.empty:
            self._empty.setText(self._activity or self._why)

    def show_empty(self, why: str = "", *, refused: bool = False) -> None:
        """Show one sentence in place of the content: what to do, or why nothing is drawn.

        `refused`: the open model does not give it; a file that is open as it is may be converted.
        """
        self._why = why or self.tr(self.EMPTY)
        self.convert.offer(refused)
        self._empty.setText(self._activity or self._why)
        self._pages.setCurrentIndex(0)
        self._more.setVisible(False)

    def show_content(self) -> None:
        """Show the content."""
        self._pages.setCurrentIndex(1)
        self._more.setVisible(bool(self.views()))

    @property
    def explanation(self) -> str:
        """The line on top."""
        return self._explanation.text()

    def set_explanation(self, text: str) -> None:
        """Replace the line on top, where what is drawn depends on a mode."""
        self._explanation.setText(text)

    def build_menu(self) -> QMenu:
        """The menu of the ⋯ button: copy and save for each view."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        views = self.views()
        for name, view in views.items():
            part = menu if len(views) == 1 else menu.addMenu(name)
            part.addAction(self.tr("Copy picture"), partial(self._copy_picture, name, view))
            part.addAction(self.tr("Save picture (PNG)…"), partial(self._save, name, view, "png"))
            part.addAction(self.tr("Save drawing (SVG)…"), partial(self._save, name, view, "svg"))
            part.addAction(
                self.tr("Save page to print (PDF)…"), partial(self._save, name, view, "pdf")
            )
            if view.table is not None:
                part.addAction(self.tr("Copy table"), partial(self._copy_table, view))
                part.addAction(self.tr("Copy picture and table"), partial(self.copy, name, view))
                part.addAction(self.tr("Save table (CSV)…"), partial(self._save, name, view, "csv"))
            if view.array is not None:
                part.addAction(self.tr("Save array (NPY)…"), partial(self._save, name, view, "npy"))
        menu.addSeparator()
        for part in (menu, *menu.findChildren(QMenu)):
            mnemonics.follow(part)
        captioned = menu.addAction(self.tr("Caption under pictures"))
        captioned.setCheckable(True)
        captioned.setChecked(self.preferences.on("captions"))
        captioned.triggered.connect(lambda: self.preferences.toggle("captions"))
        return menu

    def _build_header(self) -> QWidget:
        """Title, explanation and ⋯; a dock takes it for its title bar."""
        title = TermLabel(self.tr(self.TITLE), term=self.TERM)
        title.setProperty("look", "title")
        self._explanation = Subtitle(self.tr(self.EXPLANATION), look="muted")
        self._more = QToolButton()
        self._more.setText("⋯")
        self._more.setProperty("look", "title-button")
        self._more.setToolTip(self.tr("Copy or save what this panel shows"))
        self._more.setAccessibleName(self.tr("Copy or save: {0}").format(self.tr(self.TITLE)))
        self._more.clicked.connect(self.show_menu)
        self.saving = BackgroundSaving(self)
        self.saving.failed.connect(self.failed)
        header = QWidget()
        self.header_row = row = QHBoxLayout(header)
        row.setContentsMargins(8, 0, 2, 0)
        row.setSpacing(6)
        row.addWidget(title)
        row.addWidget(self._explanation, 1)
        row.addWidget(self.saving.button)
        row.addWidget(self._more)
        return header

    def show_menu(self) -> None:
        """Offer to copy, save or print, under the ⋯ button."""
        self.build_menu().popup(self._more.mapToGlobal(self._more.rect().bottomLeft()))

    def view_of(self, widget: QWidget | None) -> tuple[str, View] | None:
        """The view that a widget is in, by its name; else the first; None if there is none."""
        views = list(self.views().items())
        for name, view in views:
            if widget is not None and (view.widget is widget or view.widget.isAncestorOf(widget)):
                return name, view
        return views[0] if views else None

    def copy(self, name: str, view: View) -> None:
        """Picture and figures of a view together: each program pastes what it can."""
        self.saving.copy(() if view.table is None else view.table(), self._picture(name, view))

    @property
    def subject(self) -> str:
        """What the panel is about, for the names of its files: a model."""
        trace, request = self.session.state.trace, self.session.state.request
        return Path(request.model if trace is None else trace.request.model).name

    def caption_of(self, name: str, view: View) -> str:
        """What stands under an exported picture of a view."""
        state = self.session.state
        shown = [name, view.about or view.of]
        if state.trace is None:
            card = state.card
            model = Path(state.request.model).name if card is None else caption.model_name(card)
            return caption.words(model, shown, None, "")
        request = state.trace.request
        model = caption.model_name(state.trace.card)
        return caption.words(model, shown, state.step_index, request.prompt)

    def _caption(self, name: str, view: View) -> str:
        return self.caption_of(name, view) if self.preferences.on("captions") else ""

    def _picture(self, name: str, view: View) -> QImage:
        return export.picture(view.widget, caption=self._caption(name, view))

    def _copy_picture(self, name: str, view: View) -> None:
        QGuiApplication.clipboard().setImage(self._picture(name, view))
        self.saving.copied.emit()

    def _copy_table(self, view: View) -> None:
        assert view.table is not None
        self.saving.copy(view.table())

    def _save(self, name: str, view: View, kind: Kind) -> None:
        folder = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
        start = Path(folder) / f"{export.file_stem(self.subject, view.of, name)}.{kind}"
        save_dialog.ask(
            self,
            self.tr("Save {0}").format(name),
            start,
            f"{kind.upper()} (*.{kind})",
            lambda path: self.saving.save(view, name, path, kind, self._caption(name, view)),
        )


def activity_words(state: State) -> str:
    """What the engine does before there is a step to draw; "" if there is one, or it does nothing.

    A panel that is empty for a reason of its own goes on saying that.
    """
    if state.step_index is not None:
        return ""
    busy = state.status.activity in ("starting", "loading", "running")
    return state.status.text if busy else ""
