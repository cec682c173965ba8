"""What a panel shows, as a picture or a table: to the clipboard or to a file."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
from PySide6.QtCore import QBuffer, QIODevice, QMarginsF, QPoint, QRect, QSize, QSizeF
from PySide6.QtGui import QImage, QPageSize, QPainter, QPdfWriter, QRegion
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QWidget

from explorer import disk
from explorer.figures.text import table_text
from explorer.ui.canvases.maps.svg_images import apart
from explorer.ui.files import caption as captions

Kind = Literal["png", "svg", "pdf", "csv", "npy"]
PICTURE_SCALE = 2  # pixels per screen pixel in a PNG, so that it stays sharp in a document


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One exportable part of a panel: the widget as drawn, and its figures if it has any.

    `table` gives rows of plain values, the first row being the header; `array` what works out the
    same figures in full, for numpy.  Both are asked in the window's thread and hold on to what
    was on screen then; what they give is used in any thread.  `of` says what of the model it
    shows, such as a layer and head, so that files differ by their names; `about` is the
    same for the caption, which names the step itself.
    """

    widget: QWidget
    table: Callable[[], Iterable[Sequence[object]]] | None = None
    array: Callable[[], Callable[[], np.ndarray]] | None = None
    of: str = ""
    about: str = ""


def file_stem(*parts: str) -> str:
    """Words as the name of a file: lower case, hyphens for all but letters, digits and dots."""
    words = (re.sub(r"[^\w.]+", "-", part.lower()).strip("-.") for part in parts)
    return "-".join(filter(None, words))[:_LONGEST_STEM]


def picture(widget: QWidget, scale: int = PICTURE_SCALE, caption: str = "") -> QImage:
    """The widget as it is on screen, over its caption, `scale` times as many pixels."""
    image = QImage(_size(widget, caption) * scale, QImage.Format.Format_ARGB32)
    image.setDevicePixelRatio(scale)
    image.fill(widget.palette().window().color())
    painter = QPainter(image)
    widget.render(painter, QPoint(), QRegion(), _FLAGS)
    captions.draw(painter, widget, caption)
    painter.end()
    return image


def svg(widget: QWidget, title: str, caption: str = "") -> bytes:
    """The widget drawn once more as vectors, over its caption, UTF-8."""
    return _drawing(widget, title, caption)()


def pdf(widget: QWidget, title: str, caption: str = "") -> bytes:
    """The same as one page, just as large."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setTitle(title)
    size = _size(widget, caption)
    writer.setResolution(widget.logicalDpiX())
    points = QSizeF(size) * 72 / widget.logicalDpiX()
    writer.setPageSize(QPageSize(points, QPageSize.Unit.Point))
    writer.setPageMargins(QMarginsF())
    painter = QPainter(writer)
    painter.fillRect(QRect(QPoint(), size), widget.palette().window())
    widget.render(painter, QPoint(), QRegion(), _FLAGS)
    captions.draw(painter, widget, caption)
    painter.end()
    return bytes(buffer.data().data())


def _size(widget: QWidget, caption: str) -> QSize:
    return widget.size() + QSize(0, captions.height(widget, caption))


def _drawing(widget: QWidget, title: str, caption: str) -> Callable[[], bytes]:
    """Draws now; what comes back packs the large pictures in it, in any thread."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    size = _size(widget, caption)
    generator.setSize(size)
    generator.setViewBox(QRect(QPoint(), size))
    generator.setResolution(widget.logicalDpiX())
    generator.setTitle(title)
    with apart() as pictures:
        painter = QPainter(generator)
        painter.fillRect(QRect(QPoint(), size), widget.palette().window())
        widget.render(painter, QPoint(), QRegion(), _FLAGS)
        captions.draw(painter, widget, caption)
        painter.end()
    drawn = bytes(buffer.data().data())
    return lambda: pictures.put_in(drawn)


def begun(rows: Iterable[Sequence[object]]) -> Iterator[Sequence[object]]:
    """The same rows, the first few worked out now: a small table is whole before its panel changes.

    A long one holds on to what it is made of by itself.
    """
    rest = iter(rows)
    ready: list[Sequence[object]] = []
    cells = 0
    for row in rest:
        ready.append(row)
        cells += len(row)
        if cells > _CELLS_AT_ONCE:
            break
    return chain(ready, rest)


def writing(view: View, title: str, path: Path, kind: Kind, caption: str = "") -> Generator[int]:
    """Draw a view now; what comes back writes it, in any thread, and says how many rows it has.

    Ended early it leaves no file, and one that was there as it was.  OSError if it can't write.
    """
    if kind == "svg":
        drawing = _drawing(view.widget, title, caption)
        return _put(path, lambda file: _whole(file.write(drawing())))
    if kind == "pdf":
        page = pdf(view.widget, title, caption)
        return _put(path, lambda file: _whole(file.write(page)))
    if kind == "csv":
        assert view.table is not None
        rows = begun(view.table())
        return _put(path, lambda file: _csv(rows, file))
    if kind == "npy":
        assert view.array is not None
        array = view.array()
        return _put(path, lambda file: _npy(array(), file))
    image = picture(view.widget, caption=caption)
    return _put(path, lambda file: _whole(file.write(png(image))))


def whole(path: Path, data: bytes) -> Generator[int]:
    """Writes bytes that are there already; as `writing`."""
    return _put(path, lambda file: _whole(file.write(data)))


def _put(path: Path, write: Callable[[BinaryIO], Iterator[int]]) -> Generator[int]:
    """Put the file in its place when it is whole."""
    with disk.replacing(path) as file:
        yield from write(file)


def _csv(rows: Iterable[Sequence[object]], file: BinaryIO) -> Iterator[int]:
    # A byte-order mark: spreadsheets otherwise read the file in the local code page.
    out = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        yield from table_text.write(rows, out)
    finally:
        out.detach()  # what is left is written, the file stays open


def _npy(array: np.ndarray, file: BinaryIO) -> Iterator[int]:
    np.save(file, array, allow_pickle=False)
    yield 1


def _whole(_: object) -> Iterator[int]:
    return iter((1,))


def png(image: QImage) -> bytes:
    """The picture as the bytes of a PNG file."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")  # type: ignore[call-overload]  # stubs ask for bytes: refused
    return bytes(buffer.data().data())


_LONGEST_STEM = 120  # characters; systems allow 255 bytes
_CELLS_AT_ONCE = 20_000  # a few milliseconds
_FLAGS = QWidget.RenderFlag.DrawChildren | QWidget.RenderFlag.DrawWindowBackground
