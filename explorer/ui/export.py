"""What a panel shows, as a picture or a table: to the clipboard or to a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from PySide6.QtCore import QBuffer, QIODevice, QPoint, QRect, QSize
from PySide6.QtGui import QImage, QPainter, QRegion
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QWidget

Kind = Literal["png", "svg", "csv", "npy"]
PICTURE_SCALE = 2  # pixels per screen pixel in a PNG, so that it stays sharp in a document


@dataclass(frozen=True, slots=True)
class View:
    """One exportable part of a panel: the widget as drawn, and its figures if it has any.

    `table` gives rows of plain values, the first row being the header; `array` the same figures
    in full, for numpy.
    """

    widget: QWidget
    table: Callable[[], Iterable[Sequence[object]]] | None = None
    array: Callable[[], np.ndarray] | None = None


def picture(widget: QWidget, scale: int = PICTURE_SCALE) -> QImage:
    """The widget as it is on screen, `scale` times as many pixels."""
    image = QImage(widget.size() * scale, QImage.Format.Format_ARGB32)
    image.setDevicePixelRatio(scale)
    image.fill(widget.palette().window().color())
    widget.render(image, QPoint(), QRegion(), _FLAGS)
    return image


def svg(widget: QWidget, title: str) -> bytes:
    """The widget drawn once more as vectors, UTF-8."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    size: QSize = widget.size()
    generator.setSize(size)
    generator.setViewBox(QRect(QPoint(), size))
    generator.setResolution(widget.logicalDpiX())
    generator.setTitle(title)
    painter = QPainter(generator)
    painter.fillRect(QRect(QPoint(), size), widget.palette().window())
    widget.render(painter, QPoint(), QRegion(), _FLAGS)
    painter.end()
    return buffer.data().data()


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Rows as comma-separated text; floats in full precision."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    for row in rows:
        writer.writerow([repr(float(v)) if isinstance(v, float) else v for v in row])
    return out.getvalue()


def write_view(view: View, title: str, path: Path, kind: Kind) -> None:
    """Save a view to a file.  OSError if it can't be written."""
    if kind == "svg":
        path.write_bytes(svg(view.widget, title))
    elif kind == "csv":
        assert view.table is not None
        # A byte-order mark: spreadsheets otherwise read the file in the local code page.
        path.write_text(csv_text(view.table()), encoding="utf-8-sig", newline="")
    elif kind == "npy":
        assert view.array is not None
        with path.open("wb") as file:  # numpy.save would add to the name
            np.save(file, view.array(), allow_pickle=False)
    elif not picture(view.widget).save(str(path), "PNG"):  # type: ignore[call-overload]
        raise OSError(f"The picture could not be written to {path}.")


_FLAGS = QWidget.RenderFlag.DrawChildren | QWidget.RenderFlag.DrawWindowBackground
