"""All heads beside the map: their order, and in a comparison which side they show."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QMenu, QSizePolicy, QToolButton, QWidget

from explorer.figures.attention.atlas import Atlas
from explorer.figures.attention.head_scores import HeadScores, Order
from explorer.figures.attention.map_request import Beside, Which
from explorer.ui.access import mnemonics
from explorer.ui.canvases.maps.atlas import AtlasView
from explorer.ui.canvases.maps.best_heads import Best
from explorer.ui.canvases.maps.thumbnails import Sheet
from explorer.ui.glossary.labels import stand_for
from explorer.ui.kit import boxes
from explorer.ui.kit.wheel_guard import ComboBox
from explorer.ui.look.theme import Theme
from explorer.ui.panels.attention import words
from explorer.ui.panels.attention.go_to import GoTo


class FindHeads(QToolButton):
    """The head that does one thing most; `wanted` says which thing."""

    wanted = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setText(self.tr("Find heads"))
        self.setAccessibleName(self.text())
        self.setToolTip(self.tr("Select the head that does one thing most"))
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        menu = QMenu(self)
        menu.setToolTipsVisible(True)
        for text, kind, tip in (
            (
                self.tr("Induction head"),
                "induction",
                self.tr("Attends to the token that followed the previous occurrence"),
            ),
            (
                self.tr("Previous-token head"),
                "previous",
                self.tr("Attends to the token just before"),
            ),
            (self.tr("First-token head"), "first", self.tr("Attends to the first token")),
            (
                self.tr("Head that matters most"),
                "effect",
                self.tr("Silences each head in turn; changes the chosen token's logit most"),
            ),
            (
                self.tr("Head that adds most"),
                "contribution",
                self.tr("Adds most to the chosen token's logit"),
            ),
        ):
            act = menu.addAction(text, partial(self.wanted.emit, kind))
            act.setToolTip(tip)
            act.setStatusTip(tip)
        mnemonics.follow(menu)
        self.setMenu(menu)


class HeadsSide(QWidget):
    """The atlas under its choices, and over them the way to a query and a key."""

    ordered = Signal()
    changed = Signal()  # another side is wanted

    def __init__(self, theme: Theme, read: Callable[[int, int], str]) -> None:
        super().__init__()
        self.atlas = AtlasView(theme, read)
        stand_for(self.atlas, term="head")
        self.go_to = GoTo()
        self.shown: Atlas | None = None  # what the thumbnails are of
        self.finder = FindHeads()
        self.finder.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.order = ComboBox()
        for place, (text, kind, tip) in enumerate(self._orders()):
            self.order.addItem(text, kind)
            self.order.setItemData(place, tip, Qt.ItemDataRole.ToolTipRole)
        self.order.setAccessibleName(self.tr("Order of the heads"))
        self.order.setToolTip(self.tr("Order of the heads"))
        self.order.setMinimumContentsLength(8)
        self.order.currentIndexChanged.connect(self.ordered)
        self.side = ComboBox()
        for text, which in (
            (self.tr("Difference"), "difference"),
            (self.tr("With mask"), "masked"),
            (self.tr("Without mask"), "unmasked"),
        ):
            self.side.addItem(text, which)
        self.side.setAccessibleName(self.tr("What the heads show"))
        self.side.setToolTip(self.tr("What the heads show"))
        self.side.setMinimumContentsLength(8)
        self.side.currentIndexChanged.connect(self.changed)
        self.side.setVisible(False)
        parts = (self.go_to, self.finder, self.order, self.side)
        boxes.column(self, *parts, (self.atlas, 1), gap=3)

    def _orders(self) -> list[tuple[str, Order | None, str]]:
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
            (
                self.tr("Sort: effect"),
                "effect",
                self.tr("How much the chosen token's logit falls when the head is silenced"),
            ),
            (
                self.tr("Sort: contribution"),
                "contribution",
                self.tr("What each head adds to the chosen token's logit, largest first"),
            ),
        ]

    @property
    def kind(self) -> Order | None:
        """The figure that orders the heads."""
        chosen: Order | None = self.order.currentData()
        return chosen

    @property
    def which(self) -> Which:
        """The side that a comparison's atlas shows."""
        chosen: Which = self.side.currentData()
        return chosen

    def set_comparing(self, on: bool, beside: Beside | None) -> None:
        """Offer the sides, or not."""
        self.side.setVisible(on)
        for place, name in enumerate(words.side_names(beside)[:2], 1):
            self.side.setItemText(place, name[:1].upper() + name[1:])

    def show_atlas(
        self, atlas: Atlas | None, scores: HeadScores | None, sheet: Sheet | None = None
    ) -> None:
        """Show thumbnails, of which `sheet` is a picture; None = their pass has not run."""
        self.shown = atlas
        if atlas is None:
            self.atlas.set_note(self.tr("not computed yet"))
            return
        self.show_order(scores)
        self.atlas.set_atlas(atlas, sheet)

    def show_order(self, scores: HeadScores | None) -> None:
        """Put the heads in the order of their figures, the first with name and figure."""
        order = None if scores is None else scores.order()
        best: list[Best] = []
        if scores is not None and scores.rows:
            for layer, head in scores.order()[:3]:
                best.append(Best((layer, head), *words.short_score(scores, layer, head)))
        self.atlas.set_order(order, best)
