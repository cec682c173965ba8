"""One file per panel; they know nothing of each other.

A new panel is a subclass of `explorer.ui.panel.Panel` in a file of its own, and a line in PANELS.
"""

from explorer.ui.panel import Panel
from explorer.ui.panels.attention import AttentionPanel
from explorer.ui.panels.branches import BranchesPanel
from explorer.ui.panels.draws import DrawsPanel
from explorer.ui.panels.kv_cache import KvCachePanel
from explorer.ui.panels.model import ModelPanel
from explorer.ui.panels.next_token import NextTokenPanel
from explorer.ui.panels.padding import PaddingPanel
from explorer.ui.panels.sampling import SamplingPanel
from explorer.ui.panels.timings import TimingsPanel

PANELS: tuple[type[Panel], ...] = (
    AttentionPanel,
    NextTokenPanel,
    KvCachePanel,
    TimingsPanel,
    SamplingPanel,
    BranchesPanel,
    DrawsPanel,
    PaddingPanel,
    ModelPanel,
)
