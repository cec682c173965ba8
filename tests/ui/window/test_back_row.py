"""Presenter mode: the back row reads every word, one panel has the screen, all comes back after."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PySide6.QtCore import QBuffer, QSize, Qt
from PySide6.QtGui import QCursor
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QSplitter, QToolTip, QWidget

import explorer.ui
from explorer.trace.interventions.context_policy import ContextPolicy
from explorer.ui.canvases.maps.atlas_layout import AtlasLayout
from explorer.ui.kit.elided import ResultLabel
from explorer.ui.look.appearance import BACK_ROW_PX
from explorer.ui.panels.attention.panel import AttentionPanel
from tests.ui.painted import pixels
from tests.ui.stage import WindowStage
from tests.ui.waiting import settle, wait_until

ROOM = QSize(1280, 720)
SENTENCE = "'␣one' (10) attends 99.6 % to '␣five' (9), " * 8


def written(widget: QWidget) -> list[tuple[str, float]]:
    """Every text that a widget and all in it paint, with its height in pixels."""
    buffer = QBuffer()
    drawing = QSvgGenerator()
    drawing.setOutputDevice(buffer)
    drawing.setSize(widget.size())
    drawing.setViewBox(widget.rect())
    widget.render(drawing)
    root = ElementTree.fromstring(bytes(buffer.data().data()))
    found: list[tuple[str, float]] = []

    def walk(node: ElementTree.Element, size: float) -> None:
        size = float(node.get("font-size", size))
        if node.tag.endswith("text") and (node.text or "").strip():
            found.append((node.text or "", size))
        for child in node:
            walk(child, size)

    walk(root, 0.0)
    return found


def too_small(stage: WindowStage) -> list[tuple[str, float]]:
    """Texts and widgets that a back row can't read."""
    found = [one for one in written(stage.window) if one[1] < BACK_ROW_PX]
    fonts = [
        (f"{type(w).__name__} {w.accessibleName()}", float(w.fontInfo().pixelSize()))
        for w in stage.window.findChildren(QWidget)
        if w.isVisible()
    ]
    return found + [one for one in fonts if one[1] < BACK_ROW_PX]


class Presented:
    """The window, on a run, as a projector of 1280 × 720 shows it in presenter mode."""

    def __init__(self, app: QApplication, folder: Path) -> None:
        self.stage = stage = WindowStage(app, folder)
        stage.window.setProperty("shared", True)
        stage.loaded().ran(3)
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(stage.window, "showFullScreen", lambda: None)
        self._patch.setattr(stage.window, "isFullScreen", lambda: True)
        stage.resize(ROOM.width(), ROOM.height())
        stage.window.presenter.toggle()

    def close(self) -> None:
        self._patch.undo()
        self.stage.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[list[Presented]]:
    """The one window of the tests for a projector, while there is one."""
    shared: list[Presented] = []
    yield shared
    for one in shared:
        one.close()


@pytest.fixture
def stage(shared: list[Presented], qapp: QApplication, tmp_path: Path) -> Iterator[WindowStage]:
    """A window of one's own; two at a time would share their fonts and style sheet."""
    while shared:
        shared.pop().close()
    stage = WindowStage(qapp, tmp_path)
    yield stage
    stage.close()


@pytest.fixture
def projector(
    shared: list[Presented], qapp: QApplication, tmp_path_factory: pytest.TempPathFactory
) -> WindowStage:
    """The shared window, put back to where it begins, whatever the test before did."""
    if not shared:
        shared.append(Presented(qapp, tmp_path_factory.mktemp("presented")))
    stage = shared[0].stage
    stage.session.report("")
    stage.session.compare(False)
    stage.session.select(step=None)
    stage.window.presenter.show_settings(False)
    stage.look.present(True, ROOM)
    stage.look.zoom(0)
    stage.resize(ROOM.width(), ROOM.height())
    panel = stage.window.docks.bring_up("attention")
    assert isinstance(panel, AttentionPanel)
    panel.tools.view.setCurrentIndex(panel.tools.view.findData("maps"))
    stage.until_settled()
    settle()
    return stage


def test_the_spy_sees_small_text(stage: WindowStage) -> None:
    stage.loaded().ran(2)
    texts = written(stage.window)
    assert len(texts) > 50
    assert min(size for _, size in texts) < BACK_ROW_PX


def test_a_result_wraps_in_front_of_a_class_and_is_one_line_at_the_desk(
    stage: WindowStage, qapp: QApplication
) -> None:
    window = stage.window
    stage.loaded().ran(2)
    panel = window.docks.bring_up("attention")
    assert isinstance(panel, AttentionPanel)
    one = panel.readout.height()
    panel.readout.setText(SENTENCE)
    settle()
    assert panel.readout.height() == one
    assert panel.readout.shown.endswith("…")
    window.presenter.toggle()
    stage.look.present(True, ROOM)
    stage.resize(ROOM.width(), ROOM.height())
    panel.readout.setText(SENTENCE)
    settle()
    assert panel.readout.shown == panel.readout.text()
    room = panel.readout.contentsRect()
    needed = panel.readout.fontMetrics().boundingRect(room, int(Qt.TextFlag.TextWordWrap), SENTENCE)
    assert needed.height() <= panel.readout.height()
    high = panel.readout.height()
    panel.readout.setText("short")
    settle()
    assert panel.readout.height() == high  # nothing jumps at the next step


@pytest.fixture
def steady_cursor(qapp: QApplication) -> Iterator[None]:
    """Text cursors that do not blink, in windows made after this, and no pointer over these."""
    before = qapp.cursorFlashTime()
    qapp.setCursorFlashTime(0)
    QCursor.setPos(qapp.primaryScreen().geometry().bottomRight())
    yield
    qapp.setCursorFlashTime(before)


def test_leaving_puts_the_window_back_to_the_pixel(steady_cursor: None, stage: WindowStage) -> None:
    window, docks = stage.window, stage.window.docks
    stage.loaded().ran(3)
    stage.resize(1240, 700)
    stage.look.zoom(+1)
    panel = docks.bring_up("attention")
    window.prompt.edit.setFocus()
    splits = window.findChildren(QSplitter)
    splits[0].setSizes([330, 900])
    stage.until_settled()
    settle()
    assert isinstance(panel, AttentionPanel)

    def state() -> tuple[object, ...]:
        return (
            window.geometry(),
            window.windowState(),
            [(d.place.id, d.isHidden(), d.isFloating()) for d in docks.docks],
            stage.look.whole_scale,
            [split.sizes() for split in splits],
            {d.place.id: d.geometry() for d in docks.docks if d.isVisible()},
            window.focusWidget(),
            [key for a in window.actions() for key in a.shortcuts()],
        )

    before, picture = state(), pixels(window)
    window.presenter.toggle()
    stage.look.present(True, ROOM)
    stage.until_settled()
    for _ in range(2):
        docks.turn(+1)
        stage.until_settled()
    window.presenter.show_settings(True)
    stage.look.zoom(+1)
    docks.bring_up("sampling")
    stage.until_settled()
    settle()
    window.presenter.toggle()
    wait_until(lambda: window.geometry() == before[0])
    wait_until(lambda: [split.sizes() for split in splits] == before[4])
    stage.until_settled()
    settle()
    assert state() == before
    other = np.argwhere((pixels(window) != picture).any(axis=2))
    assert not len(other), f"rows and columns {other.min(axis=0)} to {other.max(axis=0)} differ"


def test_a_class_sees_how_full_the_context_is_where_it_matters(projector: WindowStage) -> None:
    status = projector.window.status
    assert not status.isVisible()
    projector.session.set_context(ContextPolicy(name="window", tokens=4))
    settle()
    assert not status.isVisible(), "it is about the run on screen"
    projector.session.step()
    projector.prompted()
    projector.steps(1)
    projector.finish()
    settle()
    assert status.context.isVisible()
    assert "4 in reach" in status.context.text or "3 in reach" in status.context.text
    projector.session.undo()
    projector.session.undo()
    settle()
    assert not status.isVisible()


def test_no_text_is_too_small_for_the_back_row(projector: WindowStage) -> None:
    window = projector.window
    for dock in window.docks.docks:
        window.docks.bring_up(dock.place.id)
        projector.until_settled()
        settle()
        assert len(written(window)) > 10, dock.place.id
        assert too_small(projector) == [], dock.place.id
    assert QToolTip.font().pixelSize() >= BACK_ROW_PX


@pytest.mark.parametrize("view", ["maps", "arcs", "row"])
def test_no_view_of_attention_is_too_small(projector: WindowStage, view: str) -> None:
    panel = projector.window.docks.bring_up("attention")
    assert isinstance(panel, AttentionPanel)
    panel.tools.view.setCurrentIndex(panel.tools.view.findData(view))
    for comparing in (False, True):
        projector.session.compare(comparing)
        projector.until_settled()
        settle()
        assert too_small(projector) == [], comparing


def test_settings_and_notices_are_large_too(projector: WindowStage) -> None:
    window = projector.window
    window.presenter.show_settings(True)
    projector.session.report("This model could not be opened. Choose another one.")
    settle()
    assert window.prompt.isVisible()
    assert window.notices.isVisible()
    assert too_small(projector) == []
    assert window.minimumSizeHint().width() <= ROOM.width()
    projector.session.report("")
    settle()
    assert not window.notices.isVisible()  # its room is the panel's


def test_nobody_zooms_below_what_the_back_row_reads(projector: WindowStage) -> None:
    for _ in range(5):
        projector.look.zoom(-1)
    assert projector.window.fontInfo().pixelSize() == BACK_ROW_PX
    projector.look.zoom(0)


def test_on_a_larger_screen_text_is_larger(projector: WindowStage) -> None:
    projector.look.present(True, QSize(3840, 2160))
    assert projector.window.fontInfo().pixelSize() == 2160 // 30
    projector.look.present(True, ROOM)


def test_text_has_its_size_from_one_place() -> None:
    room = Path(explorer.ui.__file__).parent
    found = {
        str(path.relative_to(room)): path.read_text("utf-8") for path in sorted(room.rglob("*.py"))
    }
    sized = {name for name, text in found.items() if re.search(r"setP(oint|ixel)Size", text)}
    assert sized == {"look/text_size.py", "look/theme.py", "canvases/maps/map_labels.py",
                     "canvases/tokens/cell_board.py"}  # fmt: skip
    assert "setPixelSize(small_px(" in found["canvases/maps/map_labels.py"]
    styled = {name for name, text in found.items() if "font-size" in text}
    assert styled == {"look/stylesheet.py", "dialogs/hand_in/report_page.py"}  # the other is paper


def test_arrows_and_a_clicker_go_round_the_open_panels(projector: WindowStage) -> None:
    docks, bar = projector.window.docks, projector.window.topbar
    open_ = [dock.place.id for dock in docks.docks][:4]
    assert docks.enlarged is not None
    docks.bring_up(open_[0])
    projector.window.setFocus()
    seen = []
    for key in (Qt.Key.Key_Right, Qt.Key.Key_PageDown, Qt.Key.Key_Right, Qt.Key.Key_Right):
        QTest.keyClick(projector.window, key)
        seen.append(docks.enlarged.place.id)  # type: ignore[union-attr]
        assert [d for d in docks.docks if d.isVisible()] == [docks.enlarged]
    assert seen == [*open_[1:], open_[0]]
    assert bar.panels.text() == "1 of 4"
    QTest.keyClick(projector.window, Qt.Key.Key_Left)
    assert bar.panels.text() == "4 of 4"
    QTest.keyClick(projector.window, Qt.Key.Key_PageUp)
    assert bar.panels.text() == "3 of 4"


def test_shift_and_arrows_still_move_along_the_run(projector: WindowStage) -> None:
    before = projector.window.docks.enlarged
    steps = len(projector.state.trace.steps)  # type: ignore[union-attr]
    QTest.keyClick(projector.window, Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier)
    settle()
    now = projector.state
    assert (now.step_index, projector.window.docks.enlarged) == (steps - 2, before)


def test_a_map_fills_the_height_and_the_heads_take_the_rest(projector: WindowStage) -> None:
    window = projector.window
    panel = window.docks.bring_up("attention")
    assert isinstance(panel, AttentionPanel)
    projector.until_settled()
    settle()
    map_ = panel.pages.maps.maps[0]
    assert map_.height() > 0.55 * window.height()
    assert panel.heads.width() + map_.width() > 0.9 * window.width()
    assert map_.width() >= map_.filled_width(map_.height())  # the key stands beside it
    assert panel.heads.width() > 0.3 * window.width()
    last = map_.cell_rect(len(projector.state.trace.tokens) - 2, 0)  # type: ignore[union-attr]
    first = map_.cell_rect(0, 0)
    assert last.bottom() - first.top() > 0.2 * window.height()


def test_thumbnails_fill_the_width_for_a_class_though_they_scroll(qapp: QApplication) -> None:
    layout = AtlasLayout()
    layout.set_heads(30, 9, None)
    layout.set_space(QSize(500, 300), 1.0, 1.0)
    all_rows = layout.sheet
    layout.set_space(QSize(500, 300), 1.0, 1.0, wide=True)
    assert all_rows.height() <= 300 < layout.sheet.height()
    assert all_rows.width() < 300
    assert 480 < layout.sheet.width() <= 500


def test_no_heading_is_cut(projector: WindowStage) -> None:
    for dock in projector.window.docks.docks:
        panel = projector.window.docks.bring_up(dock.place.id)
        projector.until_settled()
        settle()
        for label in (*panel.findChildren(QLabel), *panel.header.findChildren(QLabel)):
            if not label.isVisible() or label.property("look") not in ("title", "heading"):
                continue
            wide = label.fontMetrics().horizontalAdvance(label.text())
            assert label.width() >= wide or label.wordWrap(), (dock.place.id, label.text())
        for result in panel.findChildren(ResultLabel):
            assert not result.shown.endswith("…") or result.text().endswith("…")
