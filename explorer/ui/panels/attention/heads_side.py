"""All heads beside the map: their order, and in a comparison which side they show."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from explorer.figures.attention.atlas import Atlas
from explorer.figures.attention.head_scores import HeadScores, Kind
from explorer.figures.attention.map_request import Which
from explorer.ui.canvases.maps.atlas import AtlasView
from explorer.ui.canvases.maps.thumbnails import Sheet
from explorer.ui.kit import boxes
from explorer.ui.kit.wheel_guard import ComboBox
from explorer.ui.look.theme import Theme
from explorer.ui.panels.attention.go_to import GoTo


class HeadsSide(QWidget):
    """The atlas under its choices, and over them the way to a query and a key."""

    ordered = Signal()
    changed = Signal()  # another side is wanted

    def __init__(self, theme: Theme, read: Callable[[int, int], str]) -> None:
        super().__init__()
        self.atlas = AtlasView(theme, read)
        self.go_to = GoTo()
        self.shown: Atlas | None = None  # what the thumbnails are of
        self.order = ComboBox()
        for place, (words, kind, tip) in enumerate(self._orders()):
            self.order.addItem(words, kind)
            self.order.setItemData(place, tip, Qt.ItemDataRole.ToolTipRole)
        self.order.setAccessibleName(self.tr("Order of the heads"))
        self.order.setToolTip(self.tr("Order of the heads"))
        self.order.setMinimumContentsLength(8)
        self.order.currentIndexChanged.connect(self.ordered)
        self.side = ComboBox()
        for words, which in (
            (self.tr("Difference"), "difference"),
            (self.tr("With mask"), "masked"),
            (self.tr("Without mask"), "unmasked"),
        ):
            self.side.addItem(words, which)
        self.side.setAccessibleName(self.tr("What the heads show"))
        self.side.setToolTip(self.tr("What the heads show"))
        self.side.setMinimumContentsLength(8)
        self.side.currentIndexChanged.connect(self.changed)
        self.side.setVisible(False)
        boxes.column(self, self.go_to, self.order, self.side, (self.atlas, 1), gap=3)

    def _orders(self) -> list[tuple[str, Kind | None, str]]:
        return [
            (self.tr("Sort: layer"), None, self.tr("One row per layer, one column per head")),
            (
                self.tr("Sort: first token"),
                "first",
                self.tr("Heads that attend most to the first token"),
            ),
            (
                self.tr("Sort: previous token"),
                "previous",
                self.tr("Heads that attend most to the previous token"),
            ),
            (
                self.tr("Sort: induction"),
                "induction",
                self.tr(
                    "Induction heads: attend to the token that followed the previous occurrence"
                ),
            ),
            (
                self.tr("Sort: most focused"),
                "entropy",
                self.tr("Heads with the lowest attention entropy"),
            ),
        ]

    @property
    def kind(self) -> Kind | None:
        """The figure that orders the heads."""
        chosen: Kind | None = self.order.currentData()
        return chosen

    @property
    def which(self) -> Which:
        """The side that a comparison's atlas shows."""
        chosen: Which = self.side.currentData()
        return chosen

    def set_comparing(self, on: bool) -> None:
        """Offer the sides, or not."""
        self.side.setVisible(on)

    def show_atlas(
        self, atlas: Atlas | None, scores: HeadScores | None, sheet: Sheet | None = None
    ) -> None:
        """Show thumbnails, of which `sheet` is a picture; None = their pass has not run."""
        self.shown = atlas
        if atlas is None:
            self.atlas.set_note(self.tr("not computed yet"))
            return
        self.atlas.set_order(None if scores is None else scores.order())
        self.atlas.set_atlas(atlas, sheet)
