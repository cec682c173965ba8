"""KV cache: what it holds beside the formula, what it would take, and what lies in it."""

from __future__ import annotations

from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.panel.paged_panel import PagedPanel
from explorer.ui.panels.kv_cache.estimate_page import EstimatePage
from explorer.ui.panels.kv_cache.layers_page import LayersPage
from explorer.ui.panels.kv_cache.policies_page import PoliciesPage
from explorer.ui.panels.kv_cache.position_page import PositionPage


class KvCachePanel(PagedPanel):
    """Measured bytes on the cache's own tensors; what is computed is called so."""

    ID = "kv-cache"
    TITLE = QT_TRANSLATE_NOOP("KvCachePanel", "KV cache")
    TERM = "kv-cache"
    EXPLANATION = QT_TRANSLATE_NOOP(
        "KvCachePanel", "Memory of the stored keys and values: measured and by formula"
    )
    EMPTY = QT_TRANSLATE_NOOP(
        "KvCachePanel",
        "Type a prompt and press Step (Space) to see the keys and values that the model stores.",
    )
    PAGES = (LayersPage, EstimatePage, PositionPage, PoliciesPage)
