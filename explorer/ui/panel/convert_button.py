"""What a panel offers where llama.cpp can't do what it shows: the same file as float32."""

from __future__ import annotations

from PySide6.QtWidgets import QPushButton, QWidget

from explorer.session.session import Session


class ConvertButton(QPushButton):
    """Seen only where a file is open as it is and something is refused for that."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.setText(self.tr("Open converted to float32"))
        self.setToolTip(self.tr("The same file, its weights converted: float32 can do this."))
        self.clicked.connect(self._convert)
        self.hide()

    def offer(self, refused: bool) -> None:
        """`refused`: the panel has something that the open model does not give."""
        state = self._session.state
        self.setVisible(refused and state.card is not None and state.card.form == "as-is")
        self.setEnabled(state.model_is_free)

    def _convert(self) -> None:
        self._session.open_model(self._session.state.request.model, form="float32")
