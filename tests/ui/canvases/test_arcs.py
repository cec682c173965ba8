"""Arcs in one picture: where they begin and end, what is over what, and how fast."""

from __future__ import annotations

import subprocess
import sys
from time import thread_time

import numpy as np
import pytest
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from explorer.figures.attention.arcs import strongest
from explorer.figures.attention.map_request import DrawnMaps, HeadInStep, MapRequest, Sides, draw
from explorer.figures.attention.maps import full_map
from explorer.figures.text.tokens import labels as labelled
from explorer.trace.comparison import Comparison, other_side
from explorer.ui.canvases.maps.arc_raster import rasterise
from explorer.ui.canvases.maps.arcs import ArcView, _inks
from explorer.ui.look.apply_theme import apply
from explorer.ui.look.theme import LIGHT, THEMES, Theme
from explorer.ui.panels.attention.arcs_page import ArcsPage
from tests.figures.runs import Run
from tests.ui.waiting import show


def _one(
    start: float, end: float, width: int = 1, shape: tuple[int, int] = (60, 200)
) -> np.ndarray:
    return rasterise(
        np.array([start]), np.array([end]), np.array([9], np.uint8), np.array([width], np.uint8),
        shape,
    )  # fmt: skip


def test_an_arc_joins_its_tokens_without_a_gap() -> None:
    image = _one(50, 150)
    rows, columns = np.nonzero(image)
    assert (columns.min(), columns.max()) == (50, 150)
    assert set(columns) == set(range(50, 151))
    assert rows.max() == 59
    assert rows.min() >= 1
    np.testing.assert_array_equal(image, _one(150, 50))


def test_a_token_that_reads_itself_has_a_loop() -> None:
    rows, columns = np.nonzero(_one(80, 80))
    assert 76 <= columns.min() < 80 < columns.max() <= 84
    assert rows.min() >= 50


def test_wider_arcs_cover_more_and_leave_no_holes() -> None:
    counts = [np.count_nonzero(_one(50, 150, width)) for width in (1, 2, 3)]
    assert counts[0] < counts[1] < counts[2]
    image = _one(50, 150, 3)
    inside = image[:, 100]
    lit = np.flatnonzero(inside)
    assert list(lit) == list(range(lit[0], lit[-1] + 1))
    assert len(lit) >= 3


def test_the_stronger_arc_is_drawn_over_the_weaker_whatever_their_widths() -> None:
    for widths in ([1, 1], [3, 1], [1, 3]):
        image = rasterise(
            np.array([50.0, 50.0]), np.array([150.0, 150.0]), np.array([3, 7], np.uint8),
            np.array(widths, np.uint8), (60, 200),
        )  # fmt: skip
        weak, strong = _one(50, 150, widths[0]) > 0, _one(50, 150, widths[1]) > 0
        np.testing.assert_array_equal(image == 7, strong)
        np.testing.assert_array_equal(image == 3, weak & ~strong)


def test_arcs_beyond_the_picture_are_cut() -> None:
    image = _one(-400, 150)
    assert image[:, :100].any() or image[:, 100:].any()
    assert _one(-500, -300).sum() == 0


@pytest.mark.parametrize("pen", [1, 3, 6])
def test_two_thousand_arcs_cost_little(pen: int) -> None:
    rng = np.random.default_rng(0)
    starts, ends = rng.random((2, 2000)) * 560 + 10
    levels, widths = np.full(2000, 90, np.uint8), np.full(2000, pen, np.uint8)
    costs = []
    for _ in range(5):
        begin = thread_time()
        rasterise(starts, ends, levels, widths, (150, 600))
        costs.append(thread_time() - begin)
    assert min(costs) < 0.02


def test_the_first_arcs_wait_for_no_import() -> None:
    """np.unique, for one, imports numpy.ma when it is first called: a stall of 40 ms."""
    code = (
        "import sys, numpy as np\n"
        "from explorer.ui.canvases.maps.arc_raster import rasterise\n"
        "known = set(sys.modules)\n"
        "one = np.ones(3, np.uint8)\n"
        "rasterise(np.arange(3.0), np.arange(3.0) + 9, one, one, (20, 20))\n"
        "print(sorted(set(sys.modules) - known))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_few_arcs_are_smoothed(qapp: QApplication) -> None:
    apply(qapp, LIGHT)
    trace = Run().prefill(30)
    whole = full_map(trace, 0, 0, 0)
    view = ArcView(LIGHT)
    view.resize(400, 160)
    view.set_arcs(whole, strongest(whole), labelled(trace.tokens), (), 1.0)
    view.follow((12, 12))
    view.grab()
    assert view.images is not None
    image = view.images[0]
    colours = {image.pixel(x, y) for x in range(image.width()) for y in range(image.height())}
    assert len(colours) > 100, "smoothed edges have many shades"


def test_a_view_without_the_mask_has_room_below(qapp: QApplication) -> None:
    apply(qapp, LIGHT)
    for causal in (True, False):
        trace = Run(causal=causal, bits=True).prefill(10)
        whole = full_map(trace, 0, 0, 0)
        view = ArcView(LIGHT)
        view.resize(400, 160)
        view.set_arcs(whole, strongest(whole), labelled(trace.tokens), (), 1.0)
        view.grab()
        assert view.images is not None
        assert view.images[1].isNull() is causal
        top, room = view._strip()
        assert (top + room < 150) is not causal


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
@pytest.mark.parametrize("signed", [False, True])
def test_inks_are_multiplied_by_their_opacity_as_pictures_hold_them(
    theme: Theme, signed: bool
) -> None:
    inks = np.array(_inks(theme, signed), np.uint32)
    opacity = inks >> 24
    for shift in (0, 8, 16):
        assert ((inks >> shift & 255) <= opacity).all()
    assert 20 < opacity[2 if signed else 1] < 60, "the weakest arc is faint"
    assert opacity[254 if signed else 127] == 255


def test_views_below_the_first_draw_in_turns_of_their_own(qapp: QApplication) -> None:
    page = ArcsPage(LIGHT, str)
    trace = Run().prefill(12)
    other = Comparison((), other_side(trace.request), Run(causal=False).prefill(12).steps[0])
    request = MapRequest(look=HeadInStep(trace, 0, 0, 0), beside="run", other=other, arcs=True)
    *_, drawn = draw(request, Sides(), None)
    assert isinstance(drawn, DrawnMaps)
    page.resize(400, 300)
    show(page)
    page.show_drawn(drawn, labelled(trace.tokens), (), 0)
    between: list[list[bool]] = []
    tick = QTimer()
    tick.timeout.connect(lambda: between.append([row.images is None for row in page.rows]))
    tick.start(1)
    while any(row.images is None or row._stale for row in page.rows):
        qapp.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
    assert [False, True, True] in between, "the mouse had its turn between them"
    page.deleteLater()
