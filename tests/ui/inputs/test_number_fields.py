"""Fields for numbers, on a desktop whose numbers have a comma."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QLocale, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QDoubleSpinBox,
    QLineEdit,
    QToolButton,
    QToolTip,
    QWidget,
)

from explorer.trace.request import Sampling
from explorer.trace.wire import messages as m
from explorer.ui.kit.wheel_guard import DoubleSpinBox, SpinBox
from tests.ui.stage import WindowStage


@pytest.fixture
def stage(qapp: QApplication, tmp_path: Path) -> Iterator[WindowStage]:
    before = QLocale()
    QLocale.setDefault(QLocale("de_DE"))
    stage = WindowStage(qapp, tmp_path)
    stage.session.set_sampling(Sampling(greedy=False))
    stage.paint()
    yield stage
    stage.close()
    QLocale.setDefault(before)


def typed(field: QAbstractSpinBox, text: str) -> str:
    field.setFocus()
    field.selectAll()
    QTest.keyClick(field, Qt.Key.Key_Delete)
    QTest.keyClicks(field, text)
    QTest.keyClick(field, Qt.Key.Key_Return)
    return field.text()


@pytest.mark.parametrize("text", ["0.7", "0,7"])
def test_both_signs_are_read_and_one_is_written(stage: WindowStage, text: str) -> None:
    temperature = stage.window.sampling.temperature.spin
    assert typed(temperature, text) == "0.70"
    assert stage.state.sampling.temperature == pytest.approx(0.7)
    assert typed(stage.window.sampling.top_p.spin, text.replace("7", "15")) == "0.15"
    assert stage.state.sampling.top_p == pytest.approx(0.15)


def test_what_cannot_be_read_never_becomes_another_number(stage: WindowStage) -> None:
    stage.session.set_sampling(Sampling(greedy=False, temperature=0.35))
    stage.paint()
    field = stage.window.sampling.temperature.spin
    wanted = "Type a number from 0 to 2 with at most 2 decimals."
    for text in ("abc", "-", "1.2.3", "1,2,3", "0.123", "25", "-1", "1e-1", ""):
        assert typed(field, text) == "0.35"
        assert stage.state.sampling.temperature == 0.35
        assert QToolTip.text() == f"“{text}” is not valid. The value is still 0.35. {wanted}"


def test_what_cannot_be_read_is_marked_as_it_is_typed(stage: WindowStage) -> None:
    field = stage.window.sampling.temperature.spin
    field.setFocus()
    field.selectAll()
    marks = []
    for letter in "1.2.3":
        QTest.keyClicks(field, letter)
        marks.append(field.property("look") == "wrong")
    assert field.text() == "1.2.3"
    assert marks == [False, False, False, True, True]
    assert QToolTip.text().startswith("Type a number from 0 to 2")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert field.property("look") == ""


@pytest.mark.parametrize("text", ["1.2.3", "1,5", "x9", "99999999999999999999", ""])
def test_no_field_of_the_window_takes_another_number_than_was_typed(
    stage: WindowStage, text: str
) -> None:
    stage.loaded().ran(1)
    for dock in stage.window.docks.docks:
        stage.window.docks.bring_up(dock.place.id)
    stage.session.set_padding("left", 3)
    stage.paint()
    for field in filter(QWidget.isEnabled, stage.window.findChildren(QAbstractSpinBox)):
        line = field.findChild(QLineEdit)
        is_read = text == "1,5" and isinstance(field, QDoubleSpinBox) and field.maximum() > 1.5
        before = f"{1.5:.{field.decimals()}f}" if is_read else field.text()
        line.selectAll()
        QTest.keyClick(line, Qt.Key.Key_Delete)
        QTest.keyClicks(line, text)
        assert line.text() == text, field.accessibleName()
        QTest.keyClick(line, Qt.Key.Key_Return)
        assert field.text() == before, field.accessibleName()


def test_a_whole_number_is_read_with_its_groups_of_three_digits(stage: WindowStage) -> None:
    read = {"8,193": "8,193", "10,000,000": "10,000,000", "1234": "1,234"}
    refused = ("1,23", "1,2345", "1234,567", "0,123", "10,000,001")
    stage.loaded().ran(1)
    for dock in stage.window.docks.docks:
        stage.window.docks.bring_up(dock.place.id)
    stage.paint()
    field = next(
        field
        for field in stage.window.findChildren(QAbstractSpinBox)
        if field.accessibleName() == "Tokens of each sequence"
    )
    for text, shown in {**read, **dict.fromkeys(refused, "1,000")}.items():
        typed(field, "1000")
        field.selectAll()
        marks = []
        for letter in text:
            QTest.keyClicks(field, letter)
            marks.append(field.property("look") == "wrong")
        QTest.keyClick(field, Qt.Key.Key_Return)
        assert field.text() == shown, text
        if shown == text:
            assert not any(marks), text
    seed = stage.window.sampling.seed
    assert typed(seed, "12,345,678") == "12345678"


def test_a_group_is_refused_as_it_begins_where_it_would_be_too_large(stage: WindowStage) -> None:
    field = SpinBox()
    field.setRange(0, 64)
    field.show()
    field.setFocus()
    field.selectAll()
    QTest.keyClicks(field, "1,")
    assert field.property("look") == "wrong"
    field.close()


def test_a_number_is_taken_before_the_click_or_the_key_that_follows(stage: WindowStage) -> None:
    stage.loaded()
    window = stage.window
    field, seed = window.sampling.temperature.spin, window.sampling.seed
    (step,) = (
        button
        for button in window.topbar.findChildren(QToolButton)
        if button.defaultAction() is window.actions_table.by_id["step"]
    )
    field.setFocus()
    field.selectAll()
    QTest.keyClicks(field, "0.7")
    QTest.mouseClick(step, Qt.MouseButton.LeftButton)
    stage.paint()
    assert stage.engine.last(m.Advance).sampling.temperature == pytest.approx(0.7)
    stage.session.cancel()
    seed.setFocus()
    seed.selectAll()
    QTest.keyClicks(seed, "41")
    QTest.keyClick(seed, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    assert stage.state.sampling.seed == 41
    text = window.stops.findChild(QLineEdit, options=Qt.FindChildOption.FindDirectChildrenOnly)
    text.setFocus()
    QTest.keyClicks(text, "END")
    QTest.mouseClick(window.topbar.mask_switch, Qt.MouseButton.LeftButton)
    assert stage.state.stops.strings == ("END",)


def test_every_field_is_of_one_kind_and_locale(stage: WindowStage) -> None:
    for dock in stage.window.docks.docks:
        stage.window.docks.bring_up(dock.place.id)
    stage.paint()
    fields = stage.window.findChildren(QAbstractSpinBox)
    assert len(fields) > 5
    assert {field.locale().decimalPoint() for field in fields} == {"."}
    assert all(
        isinstance(field, DoubleSpinBox)
        for field in fields
        if isinstance(field, QDoubleSpinBox) and field.maximum() > 1.5
    )
