"""Fields for numbers, on a desktop whose numbers have a comma."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QLocale, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QDoubleSpinBox, QToolTip

from explorer.trace.request import Sampling
from explorer.ui.calm import DoubleSpinBox
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
    QTest.keyClicks(field, text)
    QTest.keyClick(field, Qt.Key.Key_Return)
    return field.text()


@pytest.mark.parametrize("text", ["0.7", "0,7"])
def test_both_signs_are_read_and_one_is_written(stage: WindowStage, text: str) -> None:
    temperature = stage.window.sampling._temperature.spin
    assert typed(temperature, text) == "0.70"
    assert stage.state.sampling.temperature == pytest.approx(0.7)
    assert typed(stage.window.sampling._top_p.spin, text.replace("7", "15")) == "0.15"
    assert stage.state.sampling.top_p == pytest.approx(0.15)


@pytest.mark.parametrize("text", ["abc", "-", "x"])
def test_what_cannot_be_read_never_becomes_another_number(stage: WindowStage, text: str) -> None:
    before = stage.state.sampling.temperature
    assert typed(stage.window.sampling._temperature.spin, text) == f"{before:.2f}"
    assert stage.state.sampling.temperature == before
    assert (QToolTip.text() == "Type a number from 0.00 to 2.00.") == (text != "-")


def test_every_field_is_of_one_kind_and_locale(stage: WindowStage) -> None:
    for dock in stage.window.docks.docks:
        stage.window.docks.bring_up(dock.place.id)
    stage.paint()
    fields = stage.window.findChildren(QAbstractSpinBox)
    assert len(fields) > 5
    assert {field.locale().decimalPoint() for field in fields} == {"."}
    assert all(
        isinstance(field, DoubleSpinBox) for field in fields if isinstance(field, QDoubleSpinBox)
    )
