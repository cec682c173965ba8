"""Whatever has the focus shows it, in every theme, and looks otherwise as it did before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRect, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QFileDialog,
    QLineEdit,
    QListWidget,
    QMenu,
    QPlainTextEdit,
    QPushButton,
    QRadioButton,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from explorer.ui.access.focus_ring import FocusRing, FocusRings
from explorer.ui.kit.wheel_guard import ComboBox, DoubleSpinBox, Slider, SpinBox, TabWidget
from explorer.ui.look.apply_theme import apply
from explorer.ui.look.theme import THEMES, Theme
from tests.ui.painted import contrasts, luminance, pixels
from tests.ui.stage import WindowStage
from tests.ui.waiting import activate, resize, settle, show

EVERY = pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)


def primary() -> QPushButton:
    button = QPushButton("Step")
    button.setProperty("look", "primary")
    return button


def box(kind: type[QCheckBox] | type[QRadioButton], ticked: bool) -> QWidget:
    made = kind("Causal mask")
    made.setChecked(ticked)
    return made


def choice() -> ComboBox:
    made = ComboBox()
    made.addItem("left")
    return made


def tabs() -> TabWidget:
    made = TabWidget()
    made.addTab(QWidget(), "One")
    made.addTab(QWidget(), "Two")
    return made


CONTROLS: dict[str, Callable[[], QWidget]] = {
    "button": lambda: QPushButton("Shuffle"),
    "primary": primary,
    "tool": QToolButton,
    "check": lambda: box(QCheckBox, False),
    "ticked": lambda: box(QCheckBox, True),
    "radio": lambda: box(QRadioButton, True),
    "choice": choice,
    "number": SpinBox,
    "fraction": DoubleSpinBox,
    "slider": lambda: Slider(Qt.Orientation.Horizontal),
    "line": QLineEdit,
    "text": QPlainTextEdit,
    "list": QListWidget,
    "tabs": tabs,
}


@pytest.fixture
def rings(qapp: QApplication) -> Iterator[FocusRings]:
    made = FocusRings(qapp)
    yield made
    made.deleteLater()


def shown(qapp: QApplication, theme: Theme, *widgets: QWidget) -> QWidget:
    apply(qapp, theme)
    holder = QWidget()
    column = QVBoxLayout(holder)
    column.setContentsMargins(12, 12, 12, 12)
    column.setSpacing(12)
    for widget in widgets:
        column.addWidget(widget)
    holder.resize(260, 30)
    show(holder)
    activate(holder)
    return holder


def around(widget: QWidget, window: QWidget) -> QRect:
    """A widget with what may be drawn around it."""
    place = QRect(widget.mapTo(window, QPoint()), widget.size())
    return place.adjusted(-5, -5, 5, 5) & window.rect()


@EVERY
@pytest.mark.parametrize("kind", CONTROLS)
def test_every_kind_of_control_shows_the_focus_and_stays_as_it_is(
    qapp: QApplication, rings: FocusRings, theme: Theme, kind: str
) -> None:
    control, other = CONTROLS[kind](), QPushButton("elsewhere")
    holder = shown(qapp, theme, other, control)
    other.setFocus()
    area, place = around(control, holder), control.geometry()
    before = pixels(holder, area)
    target = control.tabBar() if isinstance(control, TabWidget) else control
    target.setFocus()
    settle()
    (found,) = holder.findChildren(FocusRing)
    marked = found.geometry().translated(-area.topLeft())
    after = pixels(holder, area)
    strong = contrasts(before, after) >= 3
    assert strong.sum() >= 2 * (marked.width() + marked.height())  # a line two pixels thick
    assert control.geometry() == place
    inside = marked.adjusted(5, 5, -5, -5)
    rows = slice(inside.top(), inside.bottom() + 1), slice(inside.left(), inside.right() + 1)
    if kind not in ("line", "text", "number", "fraction"):  # they have a text cursor then
        assert (before[rows] == after[rows]).all()
    holder.deleteLater()


@EVERY
def test_every_tab_stop_of_the_window_shows_its_focus(stage: WindowStage, theme: Theme) -> None:
    stage.look.set_theme(theme.name)
    stage.loaded().ran(3)
    stops = [
        w
        for w in stage.window.findChildren(QWidget)
        if w.isVisible() and w.isEnabled() and w.focusPolicy() & Qt.FocusPolicy.TabFocus
        and w.focusProxy() is None and not w.visibleRegion().isEmpty()
    ]  # fmt: skip
    assert len(stops) > 30
    silent = []
    for stop in stops:
        stage.window.setFocus()
        stage.paint()
        area = around(stop, stage.window)
        before = pixels(stage.window, area)
        stop.setFocus()
        stage.paint()
        strong = contrasts(before, pixels(stage.window, area)) >= 3
        if strong.sum() < area.width():
            silent.append(stop.accessibleName() or type(stop).__name__)
    assert silent == []
    stage.look.set_theme("light")


def test_the_ring_follows_its_widget_through_scrolling_and_out_of_sight(
    qapp: QApplication, rings: FocusRings
) -> None:
    area, page = QScrollArea(), QWidget()
    column = QVBoxLayout(page)
    buttons = [QPushButton(str(i)) for i in range(20)]
    for button in buttons:
        column.addWidget(button)
    area.setWidget(page)
    area.setWidgetResizable(True)
    holder = shown(qapp, THEMES["light"], area)
    resize(holder, 200, 160)
    buttons[0].setFocus()
    settle()
    (ring,) = holder.findChildren(FocusRing)
    before = ring.geometry()
    area.verticalScrollBar().setValue(10)
    settle()
    assert ring.geometry() != before
    assert (
        area.viewport()
        .rect()
        .translated(area.viewport().mapTo(holder, QPoint()))
        .contains(ring.geometry())
    )
    area.verticalScrollBar().setValue(400)
    settle()
    assert ring.isHidden()
    area.verticalScrollBar().setValue(0)
    settle()
    assert ring.geometry() == before
    assert ring.isVisible()
    buttons[0].hide()
    holder.setFocus()
    assert len(holder.findChildren(FocusRing)) == 1
    holder.deleteLater()


@pytest.mark.parametrize("end", [Qt.Key.Key_Return, Qt.Key.Key_Escape])
def test_a_dialog_that_qt_makes_and_deletes_itself_may_have_the_focus(
    qapp: QApplication, rings: FocusRings, tmp_path: Path, end: Qt.Key
) -> None:
    field = QLineEdit()
    holder = shown(qapp, THEMES["light"], field)
    field.setFocus()
    (tmp_path / "lesson.dxt").touch()
    seen: list[str] = []

    def answer() -> None:
        name = qapp.focusWidget()
        if name is field or not isinstance(name, QLineEdit):
            return
        if not seen:
            QTest.keyClicks(name, "lesson")
            seen.append(name.text())
        elif qapp.activePopupWidget() is not None:  # the list of names that begin so
            waits.stop()
            QTest.keyClick(qapp.activePopupWidget(), end)
            if end == Qt.Key.Key_Escape:
                QTest.keyClick(name, end)

    waits = QTimer(interval=10)
    waits.timeout.connect(answer)
    waits.start()
    plain = QFileDialog.Option.DontUseNativeDialog
    chosen, _ = QFileDialog.getSaveFileName(holder, "Save", str(tmp_path), "", options=plain)
    assert chosen == (str(tmp_path / "lesson") if end == Qt.Key.Key_Return else "")
    activate(holder)
    field.setFocus()
    assert holder.findChildren(FocusRing)[0].isVisible()
    holder.deleteLater()


def test_the_ring_goes_to_the_tab_that_is_turned_to(qapp: QApplication, rings: FocusRings) -> None:
    pages = tabs()
    holder = shown(qapp, THEMES["light"], pages)
    bar = pages.tabBar()
    bar.setFocus()
    for index in (0, 1):
        bar.setCurrentIndex(index)
        settle()
        (ring,) = holder.findChildren(FocusRing)
        centre = bar.mapTo(holder, bar.tabRect(index).center())
        assert ring.geometry().contains(centre)
    holder.deleteLater()


@EVERY
def test_the_current_row_of_a_menu_or_a_list_stands_out(
    qapp: QApplication, rings: FocusRings, theme: Theme
) -> None:
    apply(qapp, theme)
    menu = QMenu()
    for words in ("One", "Two"):
        menu.addAction(words)
    menu.resize(menu.sizeHint())
    rows = menu.actionGeometry(menu.actions()[0])
    before = pixels(menu, rows)
    menu.setActiveAction(menu.actions()[0])
    assert np.median(contrasts(before, pixels(menu, rows))) >= 3
    view = QListWidget()
    view.addItems(["One", "Two"])
    other = QPushButton("elsewhere")
    holder = shown(qapp, theme, other, view)
    other.setFocus()
    view.setCurrentRow(1)
    row = view.visualItemRect(view.item(0)).translated(view.viewport().mapTo(holder, QPoint()))
    before = pixels(holder, row)
    view.setFocus()
    view.setCurrentRow(0)
    settle()
    assert np.median(contrasts(before, pixels(holder, row))) >= 3
    holder.deleteLater()


@EVERY
@pytest.mark.parametrize("kind", ["button", "check", "radio", "choice", "number", "line", "text"])
def test_edges_of_controls_stand_out(qapp: QApplication, theme: Theme, kind: str) -> None:
    control = CONTROLS[kind]()
    holder = shown(qapp, theme, control)
    control.clearFocus()
    area = around(control, holder)
    seen = luminance(pixels(holder, area))
    across = seen[area.height() // 2, : max(20, area.width() // 3)]
    behind = across[0]
    edge = (np.maximum(across, behind) + 0.05) / (np.minimum(across, behind) + 0.05)
    assert edge.max() >= 3
    holder.deleteLater()
