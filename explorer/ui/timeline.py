"""The slider that scrubs through the steps of a run."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSlider, QWidget

from explorer.session.session import Session
from explorer.session.state import State


class Timeline(QWidget):
    """At its right end it stays with the latest step as steps arrive."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName(self.tr("Selected step"))
        self.slider.setToolTip(self.tr("Drag to look at an earlier step"))
        self.slider.setPageStep(1)
        self.slider.valueChanged.connect(self._select)
        self._label = QLabel()
        self._label.setProperty("look", "muted")
        self._label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(QLabel(self.tr("Steps")))
        row.addWidget(self.slider, 1)
        row.addWidget(self._label)

    def show_state(self, old: State | None, new: State) -> None:
        if old is not None and old.trace is new.trace and old.step_index == new.step_index:
            return
        steps = 0 if new.trace is None else len(new.trace.steps)
        index = new.step_index
        blocked = self.slider.blockSignals(True)
        self.slider.setMaximum(max(steps - 1, 0))
        self.slider.setValue(index or 0)
        self.slider.blockSignals(blocked)
        self.slider.setEnabled(steps > 1)
        if new.trace is None or index is None:
            self._label.setText(self.tr("no step yet"))
            return
        phases = {
            "prefill": self.tr("prefill"),
            "decode": self.tr("decode"),
            "recompute": self.tr("recompute"),
        }
        self._label.setText(
            self.tr("step {0} of {1}, {2}").format(
                index, steps - 1, phases[new.trace.steps[index].phase]
            )
        )

    def _select(self, index: int) -> None:
        latest = index == self.slider.maximum()
        self._session.select(step=None if latest else index)
