"""Pictures one after another as a GIF file."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtGui import QImage

from explorer import disk

_COLOURS = 128
_LAST_LONGER = 3  # times as long as the others


def paletted(image: QImage) -> Any:
    """The picture as a Pillow image of few colours: a byte for each pixel."""
    from PIL import Image

    plain = image.convertToFormat(QImage.Format.Format_RGB888)
    size, stride = (plain.width(), plain.height()), plain.bytesPerLine()
    whole = Image.frombytes("RGB", size, bytes(plain.constBits()), "raw", "RGB", stride)
    return whole.quantize(_COLOURS, method=Image.Quantize.FASTOCTREE)


def writing(path: Path, frames: Sequence[Any], frame_ms: int) -> Generator[int]:
    """Writes a GIF that repeats, in any thread; whole or not at all.  OSError if it can't."""
    with disk.replacing(path) as file:
        times = [frame_ms] * (len(frames) - 1) + [frame_ms * _LAST_LONGER]
        first, rest = frames[0], iter(frames[1:])
        first.save(file, "GIF", save_all=True, append_images=_each(rest), duration=times, loop=0)
        yield len(frames)


def _each(frames: Iterator[Any]) -> Iterator[Any]:
    yield from frames
