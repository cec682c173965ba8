"""On a small screen, and at every zoom, everything stays within reach and nothing overlaps."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QApplication,
    QComboBox,
    QDockWidget,
    QPushButton,
    QScrollArea,
    QStyle,
    QStyleOptionComboBox,
    QTabBar,
    QToolButton,
    QWidget,
)

from explorer.session.state import CodeQuestion
from explorer.ui.canvases.charts.axis import Axis
from explorer.ui.canvases.charts.column_chart import ColumnChart, Columns
from explorer.ui.dialogs.model_picker import ModelPicker
from explorer.ui.dialogs.remote_code import CodeDialog
from explorer.ui.kit.flow import Flow
from explorer.ui.kit.screen_fit import Dialog
from explorer.ui.kit.scrolled import Scrolled
from explorer.ui.look.appearance import BACK_ROW_PX
from explorer.ui.look.apply_theme import apply
from explorer.ui.look.theme import BASE_FONT_PX, LIGHT, THEMES
from tests.ui.stage import WindowStage
from tests.ui.waiting import resize, show

SMALL = [(911, 512), (800, 600), (640, 400)]


def cut_off(root: QWidget) -> list[str]:
    """Visible widgets of which a part is outside of what they lie in, and no scrolling helps."""
    found = []
    for widget in root.findChildren(QWidget):
        above = widget.parentWidget()
        if not widget.isVisible() or widget.isWindow() or above is None:
            continue
        if widget.objectName().startswith("qt_") or widget.objectName() == "focus-ring":
            continue
        if isinstance(widget, (QTabBar, QDockWidget)) and widget.geometry().right() < 0:
            continue  # where Qt puts a bar without tabs, and a panel behind another
        if isinstance(above.parentWidget(), QScrollArea):
            continue  # the content of what scrolls
        if isinstance(above, QAbstractScrollArea) and widget.size().isEmpty():
            continue  # Qt's own corner between two scroll bars of which one is not there
        if not above.rect().adjusted(-1, -1, 1, 1).contains(widget.geometry()):
            name = widget.accessibleName() or widget.objectName()
            found.append(f"{type(widget).__name__} {name} {widget.geometry()} in {above.rect()}")
    return found


def overlapping(root: QWidget) -> list[str]:
    """Visible siblings of one layout that lie over one another."""
    found = []
    for parent in [root, *root.findChildren(QWidget)]:
        layout = parent.layout()
        if layout is None or not parent.isVisible():
            continue
        widgets = [layout.itemAt(i).widget() for i in range(layout.count())]
        seen = [w for w in widgets if w is not None and w.isVisible()]
        for i, one in enumerate(seen):
            for other in seen[i + 1 :]:
                common = one.geometry() & other.geometry()
                if common.right() < 0:
                    continue  # panels behind others
                if common.width() > 1 and common.height() > 1:
                    found.append(f"{type(one).__name__} over {type(other).__name__}")
    return found


@pytest.mark.parametrize("size", SMALL)
def test_a_small_window_keeps_everything_within_reach(
    stage: WindowStage, size: tuple[int, int]
) -> None:
    window = stage.window
    stage.resize(*size)
    stage.loaded().ran(3)
    assert window.size() == QSize(*size)
    assert cut_off(window) == []
    assert overlapping(window) == []
    bottom = window.status.mapTo(window, QPoint(0, window.status.height()))
    if size[0] >= 800:  # without any scrolling, as far as it goes
        assert bottom.y() <= window.height()
        for button in filter(QWidget.isVisible, window.topbar.findChildren(QAbstractButton)):
            place = QRect(button.mapTo(window, QPoint()), button.size())
            assert window.rect().contains(place)


def test_every_button_of_a_panel_can_be_scrolled_to(stage: WindowStage) -> None:
    window = stage.window
    stage.resize(800, 600)
    stage.loaded().ran(2)
    for dock in window.docks.docks:
        panel = window.docks.bring_up(dock.place.id)
        stage.paint()
        for area in panel.findChildren(Scrolled):
            content, view = area.widget(), area.viewport()
            needed = content.minimumSizeHint()
            assert content.width() >= needed.width(), dock.place.id
            assert content.height() >= needed.height(), dock.place.id
            over = content.height() - view.height()
            assert over <= 0 or area.verticalScrollBar().maximum() >= over
        assert cut_off(panel) == [], dock.place.id


@pytest.mark.parametrize("presenting", [False, True])
def test_every_zoom_is_whole_in_both_modes(stage: WindowStage, presenting: bool) -> None:
    stage.loaded().ran(3)
    stage.resize(1280, 720)
    stage.look.present(presenting, QSize(1280, 720))
    seen = set()
    for wanted in (0.75, 0.9, 1.4, 2.5):  # the last as far as it goes
        stage.look.scale = wanted
        stage.look.zoom(-1 if wanted < 1 else +1)
        stage.paint()
        scale = stage.look.whole_scale
        assert overlapping(stage.window) == [], scale
        assert cut_off(stage.window.topbar) == [], scale
        seen.add(scale)
    assert len(seen) >= (1 if presenting else 3)
    assert max(seen) >= 1.5
    assert not presenting or min(seen) * BASE_FONT_PX >= BACK_ROW_PX
    stage.look.zoom(0)
    stage.look.present(False, QSize(1280, 720))


def test_each_mode_has_a_zoom_of_its_own(stage: WindowStage) -> None:
    stage.look.zoom(+1)
    before = stage.look.whole_scale
    stage.window.presenter.toggle()
    stage.look.zoom(+1)
    chosen = stage.look.scale
    stage.window.presenter.toggle()
    assert stage.look.whole_scale == before
    stage.look.presenting = True
    assert stage.look.scale == chosen > 1
    stage.look.presenting = False
    stage.look.zoom(0)


@pytest.mark.parametrize("scale", [1.0, 2.0, 2.5])
def test_a_chart_without_height_is_never_upside_down(qapp: QApplication, scale: float) -> None:
    apply(qapp, LIGHT, scale)
    columns = ColumnChart(LIGHT, Axis("step", whole=True), Axis("ms"), str)
    columns.set_columns(Columns(np.array([1.0, 2.0])))
    for height in (5, 20, 40, columns.minimumSizeHint().height()):
        columns.resize(120, height)
        low, high = columns.point_of(0, 0.0), columns.point_of(1, 2.0)
        assert low.y() > high.y()
        assert low.x() < high.x()
    assert columns.minimumSizeHint().height() > 50 * scale
    apply(qapp, LIGHT, 1.0)


def test_a_row_that_is_too_long_goes_on_in_the_next(qapp: QApplication) -> None:
    holder = QWidget()
    flow = Flow(holder)
    buttons = [QPushButton(f"button {i}") for i in range(4)]
    for button in buttons:
        flow.addWidget(button)
    wide = flow.sizeHint().width()
    for direction in (Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft):
        holder.setLayoutDirection(direction)
        for width, rows in ((wide, 1), (wide // 2 + 8, 2), (10, 4)):
            holder.resize(width, 200)
            flow.setGeometry(holder.rect())
            assert len({button.y() for button in buttons}) == rows
            assert flow.minimumSize().width() <= max(width, buttons[0].sizeHint().width() + 20)
    assert buttons[0].geometry().right() == holder.rect().right()


def test_every_dialog_fits_a_small_screen_with_its_buttons(
    stage: WindowStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.session.start_engine()
    stage.drain()
    small = QRect(0, 0, 911, 512)
    screen = SimpleNamespace(availableGeometry=lambda: small)
    monkeypatch.setattr(Dialog, "screen", lambda _self: screen)
    window = stage.window
    window.choose_model()
    window.download_model()
    window.help.show_guide()
    window.help.show_keys()
    window.help.show_glossary()
    dialogs = [window.findChild(ModelPicker), window._hub, *window.help.pages]
    for dialog in dialogs:
        assert dialog is not None
        show(dialog)
        assert dialog.width() <= 911
        assert dialog.height() <= 512 - 20
        for size in (dialog.size(), QSize(360, 240)):
            resize(dialog, size.width(), size.height())
            assert cut_off(dialog) == [], type(dialog).__name__
            assert overlapping(dialog) == [], type(dialog).__name__
        dialog.close()


def test_a_model_with_many_files_of_code_leaves_room_for_the_buttons(stage: WindowStage) -> None:
    question = CodeQuestion(
        model="mine", files=tuple(f"modeling_{i}.py" for i in range(200)), refused=""
    )
    dialog = CodeDialog(question, stage.window)
    show(dialog)
    assert dialog.height() <= 512 - 40
    assert "modeling_199.py" in dialog.detailedText()
    dialog.close()


@pytest.mark.parametrize("theme", THEMES)
def test_on_a_projector_the_row_above_the_maps_is_one_line_and_compare_has_words(
    stage: WindowStage, theme: str
) -> None:
    stage.resize(1280, 720)
    stage.loaded().ran(1)
    stage.look.set_theme(theme)
    stage.until_settled()
    stage.paint()
    (button,) = (
        one
        for one in stage.window.docks.bring_up("attention").findChildren(QToolButton)
        if one.accessibleName() == "Compare"
    )
    assert button.text() == "Compare"
    assert button.toolButtonStyle() != Qt.ToolButtonStyle.ToolButtonIconOnly
    row = button.parentWidget()
    assert row.height() < 1.5 * button.height()
    assert cut_off(row) == overlapping(row) == []
    for box in row.findChildren(QComboBox):
        option = QStyleOptionComboBox()
        box.initStyleOption(option)
        room = box.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox,
            option,
            QStyle.SubControl.SC_ComboBoxEditField,
            box,
        )
        width = box.fontMetrics().horizontalAdvance
        assert room.width() >= width(box.currentText()), box.accessibleName()
        widest = max(width(box.itemText(i)) for i in range(box.count()))
        assert box.view().minimumWidth() >= widest, "the open list shows all of each"


@pytest.mark.parametrize("width", [360, 260, 210])
def test_run_and_cancel_of_a_narrow_padding_panel_need_no_sideways_scrolling(
    stage: WindowStage, width: int
) -> None:
    stage.loaded()
    panel = stage.window.docks.bring_up("padding")
    (dock,) = (dock for dock in stage.window.docks.docks if dock.place.id == "padding")
    dock.setFloating(True)
    resize(dock, width, 400)
    buttons = {one.text(): one for one in panel.findChildren(QPushButton)}
    for name in ("Run batch", "Cancel"):
        button = buttons[name]
        left = button.mapTo(panel, QPoint(0, 0)).x()
        assert left >= 0, name
        assert left + button.width() <= panel.width() - 8, name
    dock.setFloating(False)
