"""One file or folder per panel; they know nothing of each other.

A new panel is a subclass of `explorer.ui.panel.panel.Panel` in a file of its own, and a line in
PANELS.  One that opens as a tab beside another is imported and made when it is first seen: the
window is on screen a good deal sooner for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.panel.panel import Panel
from explorer.ui.panels.attention.panel import AttentionPanel
from explorer.ui.panels.kv_cache.panel import KvCachePanel
from explorer.ui.panels.next_token import NextTokenPanel
from explorer.ui.panels.timings.panel import TimingsPanel


def _sampling() -> type[Panel]:
    from explorer.ui.panels.sampling.panel import SamplingPanel

    return SamplingPanel


def _branches() -> type[Panel]:
    from explorer.ui.panels.branches import BranchesPanel

    return BranchesPanel


def _draws() -> type[Panel]:
    from explorer.ui.panels.samples import DrawsPanel

    return DrawsPanel


def _padding() -> type[Panel]:
    from explorer.ui.panels.padding.panel import PaddingPanel

    return PaddingPanel


def _surprisal() -> type[Panel]:
    from explorer.ui.panels.surprisal import SurprisalPanel

    return SurprisalPanel


def _model() -> type[Panel]:
    from explorer.ui.panels.model.panel import ModelPanel

    return ModelPanel


@dataclass(frozen=True, slots=True)
class PanelEntry:
    """What a dock must know of its panel before there is one."""

    id: str
    kind: str  # name of the class, whose words the title is one of
    title: str
    beside: str
    load: Callable[[], type[Panel]]

    @classmethod
    def of(cls, kind: type[Panel]) -> PanelEntry:
        """Of a panel that is seen from the start."""
        return cls(kind.ID, kind.__name__, kind.TITLE, kind.BESIDE, lambda: kind)

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
        AttentionPanel.ID,
        _sampling,
    ),
    PanelEntry(
        "surprisal",
        "SurprisalPanel",
        QT_TRANSLATE_NOOP("SurprisalPanel", "Surprisal"),
        AttentionPanel.ID,
        _surprisal,
    ),
    PanelEntry(
        "branches",
        "BranchesPanel",
        QT_TRANSLATE_NOOP("BranchesPanel", "Branches"),
        AttentionPanel.ID,
        _branches,
    ),
    PanelEntry(
        "draws",
        "DrawsPanel",
        QT_TRANSLATE_NOOP("DrawsPanel", "Samples"),
        AttentionPanel.ID,
        _draws,
    ),
    PanelEntry(
        "padding",
        "PaddingPanel",
        QT_TRANSLATE_NOOP("PaddingPanel", "Padding"),
        AttentionPanel.ID,
        _padding,
    ),
    PanelEntry(
        "model",
        "ModelPanel",
        QT_TRANSLATE_NOOP("ModelPanel", "Model"),
        AttentionPanel.ID,
        _model,
    ),
)
