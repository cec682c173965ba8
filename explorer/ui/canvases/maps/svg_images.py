"""Large pictures inside a drawing (SVG): put in when there is time, for packing them takes long."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QBuffer, QIODevice, QPointF, QRectF, QSizeF
from PySide6.QtGui import QImage, QPaintEngine, QPainter

_MARK = (0x51D3A7, 0x0B6E94, 0xE8215C)  # colours of a stand-in, as no canvas draws them
_collecting: SvgImages | None = None


class SvgImages:
    """The pictures of one drawing, and the stand-ins that were drawn in their places."""

    def __init__(self) -> None:
        self._pictures: list[tuple[bytes, QImage]] = []

    def draw(self, painter: QPainter, area: QRectF, image: QImage) -> None:
        """Draw a stand-in of a few pixels."""
        stand_in = QImage(len(_MARK) + 1, 1, QImage.Format.Format_RGB32)
        for place, colour in enumerate((*_MARK, len(self._pictures))):
            stand_in.setPixel(place, 0, colour)
        painter.drawImage(area, stand_in)
        self._pictures.append((_packed(stand_in), image))

    def put_in(self, drawing: bytes) -> bytes:
        """The drawing with its pictures, in any thread."""
        for mark, image in self._pictures:
            before, found, after = drawing.partition(mark)
            assert found, "Qt packs the same picture in the same way"
            drawing = b"".join((before, _packed(image), after))
        return drawing


@contextmanager
def apart() -> Iterator[SvgImages]:
    """What `draw_picture` draws in the meantime has to be put in afterwards."""
    global _collecting
    _collecting = found = SvgImages()
    try:
        yield found
    finally:
        _collecting = None


def draw_picture(painter: QPainter, at: QPointF, image: QImage) -> None:
    """As `QPainter.drawImage`, but quick in a drawing, too."""
    if _collecting is None or painter.paintEngine().type() != QPaintEngine.Type.SVG:
        painter.drawImage(at, image)
    elif not image.isNull():
        size = QSizeF(image.size()) / image.devicePixelRatio()
        _collecting.draw(painter, QRectF(at, size), image)


def _packed(image: QImage) -> bytes:
    """As it stands in a drawing."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")  # type: ignore[call-overload]  # stubs ask for bytes: refused
    return base64.b64encode(buffer.data().data())
