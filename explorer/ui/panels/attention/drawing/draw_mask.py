"""Drawing on the map: strokes become interventions of the next run, and are marked on the cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from explorer.figures.attention.strokes import Cell, DrawnMask
from explorer.session.selection import Shown
from explorer.trace.interventions.cells import added
from explorer.trace.interventions.kinds import Cells, Intervention
from explorer.ui.access.accessible import announce
from explorer.ui.canvases.maps.drawing.pencil import Pencil
from explorer.ui.panels.attention.drawing import drawing_words
from explorer.ui.panels.attention.drawing.draw_bar import DrawBar
from explorer.ui.panels.attention.maps_page import MapsPage

if TYPE_CHECKING:
    from explorer.session.session import Session

MOST_TOGETHER = 1000  # interventions of one run that drawing makes
_MOST_ROWS = 4096  # of a stroke that are looked at for queries left without a key


class DrawMask(QObject):
    """The tool and its bar; marks are shown whether it is on or not."""

    switched = Signal(bool)

    def __init__(self, session: Session, maps: MapsPage, parent: QObject) -> None:
        super().__init__(parent)
        self._session, self._maps = session, maps
        self._look: Shown | None = None  # None where no single head is drawn
        self._preview: tuple[Cells, ...] = ()
        self.bar = DrawBar()
        self.pencil = Pencil(maps.maps, self)
        maps.counted.connect(self._show_marks)
        self.bar.changed.connect(lambda: self.bar.say(""))
        self.bar.left.connect(lambda: self.switch(False))
        self.pencil.left.connect(lambda: self.switch(False))
        self.pencil.moved.connect(self._on_moved)
        self.pencil.drawn.connect(self._on_drawn)

    @property
    def on(self) -> bool:
        """True while strokes are taken."""
        return self.pencil.on

    def switch(self, on: bool) -> None:
        """Take strokes from now on, or no more."""
        if on == self.on:
            return
        self.pencil.switch(on)
        self.bar.say("")
        self.bar.setVisible(on)
        self._forget_preview()
        self.switched.emit(on)

    def refusal(self) -> str:
        """Why this model's cells can't be changed; empty if they can."""
        card = self._session.state.next_card
        if card is None:
            return self.tr("Open the model to change what it attends to.")
        if card.offers("cut_cells"):
            return ""
        return self.tr("Not possible here: {0}").format(card.words("cut_cells"))

    def show_state(self, look: Shown | None) -> None:
        """Mark the cells of the head that is drawn; None = no single head is."""
        moved = self._look is None or look is None or not look.same_passes(self._look)
        self._look = look
        if moved and self.on:
            self.bar.say("")
        if self.on and self.refusal():
            self.switch(False)
        self._show_marks()

    def cell_words(self, query: int, key: int) -> str:
        """What is changed in one cell; empty if nothing is."""
        mask = self._mask()
        return "" if mask is None else drawing_words.of_state(mask.state(query, key))

    # -- marks

    def _mask(self) -> DrawnMask | None:
        look, request = self._look, self._session.state.request
        if look is None:
            return None
        after: tuple[Intervention, ...] = request.interventions
        if self._preview:
            after = added(after, *self._preview)
        made = look.trace.request
        causal = made.causal_mask and request.causal_mask
        return DrawnMask(made.interventions, after, look.layer, look.head, causal)

    def _show_marks(self) -> None:
        """On the map of the run itself; the other sides of a comparison are of other runs."""
        mask = self._mask()
        own = 0
        if self._look is not None and self._maps.beside:
            own = 0 if self._look.sides[0] is self._look.last_pass else 1
        self._maps.mark_cells(mask, own)

    def _forget_preview(self) -> None:
        if self._preview:
            self._preview = ()
            self._show_marks()

    # -- strokes

    def _areas(self, path: Sequence[Cell]) -> tuple[Cells, ...]:
        look = self._look
        return () if look is None else self.bar.brush.areas(path, look.layer, look.head)

    def _on_moved(self, path: Sequence[Cell]) -> None:
        self._preview = self._areas(path) if path else ()
        self._show_marks()
        self.bar.say(drawing_words.of_areas(self._preview) if path else "")

    def _on_drawn(self, path: Sequence[Cell]) -> None:
        areas = self._areas(path)
        self._preview = ()
        wanted = added(self._session.state.request.interventions, *areas)
        if not areas:
            said = self.tr("No diagonal lies there. Draw on or below the cell of the token itself.")
        elif len(wanted) > MOST_TOGETHER:
            said = self.tr(
                "These are too many separate areas: {0} at most. Draw rows, columns or rectangles."
            ).format(f"{MOST_TOGETHER:,}")
        else:
            self._session.set_interventions(wanted)
            said = self._said(areas)
        self._show_marks()
        self.bar.say(said)
        announce(self.bar, said)

    def _said(self, areas: Sequence[Cells]) -> str:
        """What a stroke did, and what follows from it."""
        parts = [drawing_words.of_areas(areas)]
        if any(one.queries is None for one in areas):
            parts.append(self.tr("Tokens still to come are included."))
        if areas[0].effect == "allow":
            parts.append(self.tr("The KV cache is off while cells are allowed."))
        emptied = self._emptied(areas)
        if emptied:
            parts.append(drawing_words.of_emptied(emptied))
        return " ".join(parts)

    def _emptied(self, areas: Sequence[Cells]) -> list[int]:
        """Queries of the stroke that have lost their last key in this head."""
        mask, look = self._mask(), self._look
        if mask is None or look is None or areas[0].effect != "cut":
            return []
        first = min((one.queries[0] if one.queries else 0) for one in areas)
        last = max((one.queries[1] if one.queries else look.slots - 1) for one in areas)
        last = min(last, look.slots - 1)
        return [] if last - first >= _MOST_ROWS else mask.emptied(first, last, look.slots)
