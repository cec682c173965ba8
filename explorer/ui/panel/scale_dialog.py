"""Asks by how much the attention scores of a head, a layer or the whole model are scaled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialogButtonBox, QFormLayout, QWidget

from explorer.trace.interventions.kinds import Scale
from explorer.ui.kit import boxes
from explorer.ui.kit.screen_fit import Dialog
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.wheel_guard import ComboBox, DoubleSpinBox

if TYPE_CHECKING:
    from explorer.session.session import Session

MOST, DECIMALS = 1000.0, 3


class ScaleDialog(Dialog):
    """Begins at the selected head, or its layer, with the scale that is in force there."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Scale attention scores"))
        self._session = session
        chosen = session.state.selection
        self.where = ComboBox()
        self.where.setAccessibleName(self.tr("Where"))
        for words, place in (
            (
                self.tr("Layer {0}, head {1}").format(chosen.layer, chosen.head),
                Scale(layer=chosen.layer, head=chosen.head),
            ),
            (self.tr("All heads of layer {0}").format(chosen.layer), Scale(layer=chosen.layer)),
            (self.tr("All heads of all layers"), Scale()),
        ):
            self.where.addItem(words, place)
        self.where.currentIndexChanged.connect(self._show_factor)
        self.factor = DoubleSpinBox()
        self.factor.setAccessibleName(self.tr("Scores times"))
        self.factor.setDecimals(DECIMALS)
        self.factor.setRange(0, MOST)
        self.factor.setSingleStep(0.25)
        self._show_factor()
        said = SentenceLabel(look="muted")
        said.setText(
            self.tr(
                "Each score is multiplied by this before the softmax, as by a temperature of 1 ÷ "
                "this number. Above 1: attention is sharper. Below 1: flatter. 0: all visible keys "
                "get the same. 1: as the model has it."
            )
        )
        form = QFormLayout()
        form.addRow(self.tr("Where"), self.where)
        form.addRow(self.tr("Scores ×"), self.factor)
        buttons = QDialogButtonBox()
        self.apply = buttons.addButton(self.tr("Apply"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.apply.setProperty("look", "primary")
        self.leave = buttons.addButton(self.tr("Cancel"), QDialogButtonBox.ButtonRole.RejectRole)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        self.lay_out(boxes.column(None, form, said, gap=8), buttons)
        self.size_for((420, 210))

    def _place(self) -> Scale:
        chosen: Scale = self.where.currentData()
        return chosen

    def _show_factor(self) -> None:
        """What is in force there."""
        place = self._place()
        found = [
            one.factor
            for one in self._session.state.request.interventions
            if isinstance(one, Scale) and (one.layer, one.head) == (place.layer, place.head)
        ]
        self.factor.setValue(found[-1] if found else 1.0)

    def accept(self) -> None:
        typed = self.factor.number_in(self.factor.text())
        self.factor.take_typed()
        if typed is None:  # the field says why
            return
        place = self._place()
        scale = Scale(layer=place.layer, head=place.head, factor=self.factor.value())
        self._session.add_interventions((scale,))
        super().accept()
