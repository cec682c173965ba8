"""The line under an exported picture: what it shows, model, prompt and program version."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QRect, Qt
from PySide6.QtGui import QFontMetrics, QPainter
from PySide6.QtWidgets import QWidget

from explorer import __version__
from explorer.figures.text.characters import printable
from explorer.figures.text.sentences import name
from explorer.trace.card import ModelCard
from explorer.ui.look.text_size import small_font
from explorer.ui.look.theme import unit

translate = QCoreApplication.translate

_PROMPT = 60  # letters of its beginning
_MARGIN = 6  # pixels at a zoom of 1
_WRAPPED = int(Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignLeft)


def model_name(card: ModelCard) -> str:
    """A model's name; of a file that llama.cpp runs as it is, that it does."""
    if card.form != "as-is":
        return card.name
    return translate("Caption", "{0} as it is").format(card.name)


def words(model: str, shown: list[str], step: int | None, prompt: str) -> str:
    """One line of plain text; what is empty or None is left out."""
    beginning = printable(" ".join(prompt[: 4 * _PROMPT].split()))
    if len(beginning) > _PROMPT:
        beginning = beginning[:_PROMPT].rstrip() + "…"
    return " · ".join(
        filter(
            None,
            [
                name(model),
                *shown,
                "" if step is None else translate("Caption", "token {0}").format(step + 1),
                translate("Caption", "“{0}”").format(beginning) if beginning else "",
                translate("Caption", "Decoder Explorer {0}").format(__version__),
            ],
        )
    )


def height(widget: QWidget, caption: str) -> int:
    """Pixels that the caption takes under the widget; 0 for none."""
    if not caption:
        return 0
    lines = QFontMetrics(small_font(widget)).boundingRect(_room(widget), _WRAPPED, caption)
    return lines.height() + round(_MARGIN * unit(widget))


def draw(painter: QPainter, widget: QWidget, caption: str) -> None:
    """Write it under the widget's own height, in the widget's colours."""
    if not caption:
        return
    painter.setFont(small_font(widget))
    painter.setPen(widget.palette().windowText().color())
    painter.drawText(_room(widget).translated(0, widget.height()), _WRAPPED, caption)


def _room(widget: QWidget) -> QRect:
    margin = round(_MARGIN * unit(widget))
    return QRect(margin, 0, max(widget.width() - 2 * margin, 60), 10_000)
