"""Pictures in a drawing: as on screen, and packed where nobody waits for it."""

from __future__ import annotations

import base64
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QHBoxLayout, QWidget

from explorer.figures.attention.map_blocks import MASKED, READ
from explorer.figures.attention.maps import levels
from explorer.figures.text.tokens import labels
from explorer.trace.step import Token
from explorer.ui.canvases.maps import svg_images
from explorer.ui.canvases.maps.heatmap import Heatmap
from explorer.ui.files import export
from explorer.ui.files.export import View
from explorer.ui.look.apply_theme import apply
from explorer.ui.look.theme import LIGHT
from explorer.ui.panel.panel import Panel
from tests.session.scripted import Stage
from tests.ui.waiting import wait_until


def _heatmap(seed: int) -> Heatmap:
    """Forty random tokens under the mask, all but two cells of different weights."""
    kinds = np.where(np.tri(40, dtype=bool), READ, MASKED).astype(np.uint8)
    weights = np.random.default_rng(seed).random((40, 40), np.float32) * (kinds == READ)
    shown = Heatmap(LIGHT)
    shown.resize(300, 280)
    shown.set_map(levels(weights, kinds), labels([Token(0, b"x")] * 40))
    return shown


def _pictures(drawing: bytes) -> list[QImage]:
    packed = re.findall(rb'href="data:image/png;base64,([^"]+)"', drawing)
    return [QImage.fromData(base64.b64decode(data)) for data in packed]


def test_a_drawing_holds_each_map_as_it_is_on_screen(qapp: QApplication) -> None:
    apply(qapp, LIGHT)
    both = QWidget()
    row = QHBoxLayout(both)
    maps = [_heatmap(seed) for seed in (1, 2)]
    for one in maps:
        row.addWidget(one)
    both.resize(600, 280)
    both.grab()  # laid out
    found = [image for image in _pictures(export.svg(both, "maps")) if image.height() > 100]
    assert len(found) == 2
    for one, image in zip(maps, found, strict=True):
        assert one.view.scale < 9, "no grid lines over the cells"
        saved = export.picture(one, 2)
        saved.setDevicePixelRatio(1)
        area = QRectF(one.drawn_area().topLeft() * 2, image.size()).toRect()
        for y in range(9, image.height(), 14):
            for x in range(9, image.width(), 14):
                seen = saved.pixelColor(area.left() + x, area.top() + y)
                assert image.pixelColor(x, y) == seen


def test_pictures_are_packed_off_the_windows_thread(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply(qapp, LIGHT)
    shown = _heatmap(3)
    packed: list[tuple[int, threading.Thread]] = []
    pack = svg_images._packed

    def counted(image: QImage) -> bytes:
        packed.append((image.width(), threading.current_thread()))
        return pack(image)

    monkeypatch.setattr(svg_images, "_packed", counted)
    panel = Panel(Stage().session, LIGHT)
    panel.saving.save(View(shown), "map", tmp_path / "map.svg", "svg")
    wait_until(lambda: not panel.saving.busy)
    assert max(image.height() for image in _pictures((tmp_path / "map.svg").read_bytes())) > 100
    assert [width for width, thread in packed if thread is threading.main_thread()] == [4]
    assert any(width > 100 for width, thread in packed if thread is not threading.main_thread())
