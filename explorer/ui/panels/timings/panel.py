"""Timings: what each pass took and where its time went, and what the cache saves."""

from __future__ import annotations

from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.panel.paged_panel import PagedPanel
from explorer.ui.panels.timings.cache_comparison_page import CacheComparisonPage
from explorer.ui.panels.timings.passes_page import PassesPage


class TimingsPanel(PagedPanel):
    """Prefill, decode and recompute told apart; what was not measured is said to be so."""

    ID = "timings"
    TITLE = QT_TRANSLATE_NOOP("TimingsPanel", "Timings")
    TERM = "forward-pass"
    EXPLANATION = QT_TRANSLATE_NOOP("TimingsPanel", "Measured time of each pass")
    EMPTY = QT_TRANSLATE_NOOP(
        "TimingsPanel", "Type a prompt and press Step (Space) to see the time of each pass."
    )
    PAGES = (PassesPage, CacheComparisonPage)
