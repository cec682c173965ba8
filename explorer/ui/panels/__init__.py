"""One file or folder per panel; they know nothing of each other.

A new panel is a subclass of `explorer.ui.panel.panel.Panel` in a file of its own, and a line in
PANELS.  One that opens as a tab beside another is imported and made when it is first seen: the
window is on screen a good deal sooner for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from PySide6.QtCore import QCoreApplication

from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.panel.panel import Panel
from explorer.ui.panels.attention.panel import AttentionPanel
from explorer.ui.panels.kv_cache.panel import KvCachePanel
from explorer.ui.panels.next_token import NextTokenPanel
from explorer.ui.panels.timings.panel import TimingsPanel


@dataclass(frozen=True, slots=True)
class PanelEntry:
    """What a dock must know of its panel before there is one."""

    id: str
    kind: str  # name of the class, whose words the title is one of
    title: str
    module: str  # that the class is in, below this one
    beside: str = AttentionPanel.ID

    @classmethod
    def of(cls, kind: type[Panel]) -> PanelEntry:
        """Of a panel that is seen from the start."""
        module = kind.__module__.removeprefix(f"{__name__}.")
        return cls(kind.ID, kind.__name__, kind.TITLE, module, kind.BESIDE)

    def load(self) -> type[Panel]:
        """The class; imported now if nobody has seen the panel yet."""
        found: type[Panel] = getattr(import_module(f"{__name__}.{self.module}"), self.kind)
        return found

    @property
    def words(self) -> str:
        """The title in the user's language."""
        return QCoreApplication.translate(self.kind, self.title)


PANELS: tuple[PanelEntry, ...] = (
    PanelEntry.of(AttentionPanel),
    PanelEntry.of(NextTokenPanel),
    PanelEntry.of(KvCachePanel),
    PanelEntry.of(TimingsPanel),
    PanelEntry(
        "sampling",
        "SamplingPanel",
        QT_TRANSLATE_NOOP("SamplingPanel", "Sampling"),
        "sampling.panel",
    ),
    PanelEntry(
        "surprisal", "SurprisalPanel", QT_TRANSLATE_NOOP("SurprisalPanel", "Surprisal"), "surprisal"
    ),
    PanelEntry("block", "BlockPanel", QT_TRANSLATE_NOOP("BlockPanel", "Block"), "block.panel"),
    PanelEntry("lens", "LensPanel", QT_TRANSLATE_NOOP("LensPanel", "Logit lens"), "lens.panel"),
    PanelEntry(
        "stream", "StreamPanel", QT_TRANSLATE_NOOP("StreamPanel", "Residual stream"), "stream.panel"
    ),
    PanelEntry(
        "attribution",
        "AttributionPanel",
        QT_TRANSLATE_NOOP("AttributionPanel", "Attribution"),
        "attribution.panel",
    ),
    PanelEntry(
        "branches", "BranchesPanel", QT_TRANSLATE_NOOP("BranchesPanel", "Branches"), "branches"
    ),
    PanelEntry("draws", "DrawsPanel", QT_TRANSLATE_NOOP("DrawsPanel", "Samples"), "samples"),
    PanelEntry(
        "padding", "PaddingPanel", QT_TRANSLATE_NOOP("PaddingPanel", "Padding"), "padding.panel"
    ),
    PanelEntry(
        "prompts",
        "PromptTablePanel",
        QT_TRANSLATE_NOOP("PromptTablePanel", "Prompts"),
        "prompt_table",
    ),
    PanelEntry(
        "training",
        "TrainingPanel",
        QT_TRANSLATE_NOOP("TrainingPanel", "Training"),
        "training.panel",
    ),
    PanelEntry("plan", "PlanPanel", QT_TRANSLATE_NOOP("PlanPanel", "Plan"), "plan"),
    PanelEntry("model", "ModelPanel", QT_TRANSLATE_NOOP("ModelPanel", "Model"), "model.panel"),
)
