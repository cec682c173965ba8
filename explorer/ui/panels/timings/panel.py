"""Timings: what each pass took and where its time went, and what the cache saves."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from explorer.session.session import Session
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.look.theme import Theme
from explorer.ui.panel.paged_panel import PagedPanel
from explorer.ui.panels.timings.cache_comparison_page import CacheComparisonPage
from explorer.ui.panels.timings.passes_page import PassesPage


class TimingsPanel(PagedPanel):
    """Prefill, decode and recompute told apart; what was not measured is said to be so."""

    ID = "timings"
    TITLE = QT_TRANSLATE_NOOP("TimingsPanel", "Timings")
    EXPLANATION = QT_TRANSLATE_NOOP("TimingsPanel", "Measured time of each pass")
    EMPTY = QT_TRANSLATE_NOOP(
        "TimingsPanel", "Type a prompt and press Step (Space) to see the time of each pass."
    )

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self.set_pages(PassesPage(session, theme), CacheComparisonPage(session, theme))
