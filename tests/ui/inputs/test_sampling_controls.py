"""Sampling controls: slider, box and session agree, each change is told once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QCheckBox, QPushButton, QSlider

from explorer.sampling import model_defaults
from explorer.trace.request import Sampling
from explorer.ui.kit.longspin import MAXIMUM, LongSpinBox
from tests.ui.stage import WindowStage

WARM = Sampling(greedy=False)


@pytest.fixture
def stage(qapp: QApplication, tmp_path: Path) -> Iterator[WindowStage]:
    stage = WindowStage(qapp, tmp_path)
    stage.session.set_sampling(WARM)
    yield stage
    stage.close()


def named(stage: WindowStage, kind: type, name: str) -> object:
    found = [w for w in stage.window.sampling.findChildren(kind) if w.accessibleName() == name]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("name", "field", "tick", "value"),
    [
        ("Temperature", "temperature", 70, 0.7),
        ("Top-k", "top_k", 40, 40),
        ("Top-p", "top_p", 90, 0.9),
    ],
)
def test_slider_moves_box_and_session(
    stage: WindowStage, name: str, field: str, tick: int, value: float
) -> None:
    changes = len(stage.states)
    named(stage, QSlider, name).setValue(tick)  # type: ignore[attr-defined]
    assert getattr(stage.state.sampling, field) == value
    assert len(stage.states) == changes + 1
    assert named(stage, QAbstractSpinBox, name).value() == value  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "field", "value", "tick"),
    [
        ("Temperature", "temperature", 1.25, 125),
        ("Top-k", "top_k", 5000, 100),  # beyond the slider's reach
        ("Top-p", "top_p", 0.33, 33),
    ],
)
def test_box_moves_slider_and_session(
    stage: WindowStage, name: str, field: str, value: float, tick: int
) -> None:
    named(stage, QAbstractSpinBox, name).setValue(value)  # type: ignore[attr-defined]
    assert getattr(stage.state.sampling, field) == value
    assert named(stage, QSlider, name).value() == tick  # type: ignore[attr-defined]


@pytest.mark.parametrize("value", [5.0, 1e308])
def test_a_temperature_beyond_the_slider_is_shown_as_it_is(
    stage: WindowStage, value: float
) -> None:
    stage.session.set_sampling(Sampling(greedy=False, temperature=value))
    assert named(stage, QAbstractSpinBox, "Temperature").value() == value  # type: ignore[attr-defined]
    assert named(stage, QSlider, "Temperature").value() == 200  # type: ignore[attr-defined]
    assert stage.state.sampling.temperature == value
    stage.session.set_sampling(WARM)
    assert named(stage, QAbstractSpinBox, "Temperature").value() == 1  # type: ignore[attr-defined]
    assert named(stage, QAbstractSpinBox, "Temperature").maximum() == 2  # type: ignore[attr-defined]


def test_a_top_k_beyond_31_bits_hurts_nothing(stage: WindowStage) -> None:
    stage.session.set_sampling(Sampling(greedy=False, top_k=2**62))
    assert named(stage, QAbstractSpinBox, "Top-k").value() == 2**31 - 1  # type: ignore[attr-defined]
    assert stage.state.sampling.top_k == 2**62


def test_greedy_disables_what_it_makes_pointless(stage: WindowStage) -> None:
    greedy = stage.window.sampling.findChild(QCheckBox)
    greedy.click()
    assert stage.state.sampling.greedy
    for name in ("Temperature", "Top-k", "Top-p"):
        assert not named(stage, QSlider, name).isEnabled()  # type: ignore[attr-defined]
    greedy.click()
    assert not stage.state.sampling.greedy
    assert named(stage, QSlider, "Top-p").isEnabled()  # type: ignore[attr-defined]


def test_undo_moves_the_controls_back(stage: WindowStage) -> None:
    stage.session.set_prompt("between")  # so that the changes do not merge
    named(stage, QSlider, "Top-k").setValue(7)  # type: ignore[attr-defined]
    stage.session.undo()
    assert named(stage, QSlider, "Top-k").value() == 0  # type: ignore[attr-defined]


def test_shuffle_gives_another_seed(stage: WindowStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.randrange", lambda most: 4242)
    buttons = {b.text(): b for b in stage.window.sampling.findChildren(QPushButton)}
    buttons["Shuffle"].click()
    assert stage.state.sampling.seed == 4242
    assert stage.window.sampling.findChild(LongSpinBox).value() == 4242


def test_the_models_own_defaults_are_shown_and_applied_only_on_request(stage: WindowStage) -> None:
    stage.session.start_engine()
    stage.session.open_model("tiny")
    stage.drain()
    stage.answer_load(
        generation_defaults={"do_sample": True, "temperature": 0.6, "top_k": 50, "top_p": 0.9}
    )
    assert stage.state.sampling == WARM
    buttons = {b.text(): b for b in stage.window.sampling.findChildren(QPushButton)}
    assert buttons["Apply"].isVisible()
    buttons["Apply"].click()
    expected = Sampling(greedy=False, temperature=0.6, top_k=50, top_p=0.9)
    assert stage.state.sampling == expected


def test_a_model_without_defaults_has_nothing_to_apply(stage: WindowStage) -> None:
    stage.loaded()
    buttons = {b.text(): b for b in stage.window.sampling.findChildren(QPushButton)}
    assert not buttons["Apply"].isVisible()


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {}),
        ({"eos_token_id": 2}, {}),
        ({"do_sample": False}, {"greedy": True}),
        ({"temperature": 1}, {"temperature": 1.0, "greedy": False}),
        ({"top_k": True, "top_p": "0.9"}, {}),
    ],
)
def test_defaults_are_read_by_type(given: dict[str, object], found: dict[str, object]) -> None:
    assert model_defaults(given) == found


def test_a_seed_beyond_31_bits_is_kept(qapp: QApplication) -> None:
    box = LongSpinBox()
    told: list[int] = []
    box.changed.connect(told.append)
    box.set_value(2**40)
    assert (box.value(), told) == (2**40, [])
    box.stepBy(1)
    assert told == [2**40 + 1]
    box.set_value(MAXIMUM)
    box.stepBy(5)
    assert box.value() == MAXIMUM


@pytest.mark.parametrize("typed", ["-12x34", "12x34", "1.2", "1,23", "-1", str(2**63), ""])
def test_a_seed_that_is_no_whole_number_within_range_is_refused(
    qapp: QApplication, typed: str
) -> None:
    box = LongSpinBox()
    told: list[int] = []
    box.changed.connect(told.append)
    box.set_value(77)
    box.lineEdit().selectAll()
    QTest.keyClick(box, Qt.Key.Key_Delete)
    QTest.keyClicks(box, typed)
    assert box.lineEdit().text() == typed, "what is typed stays until it is taken"
    QTest.keyClick(box, Qt.Key.Key_Return)
    assert (box.value(), box.lineEdit().text(), told) == (77, "77", [])
    box.lineEdit().selectAll()
    QTest.keyClicks(box, "1234")
    QTest.keyClick(box, Qt.Key.Key_Return)
    assert (box.value(), told) == (1234, [1234])


def test_sampling_never_starts_the_model_anew(stage: WindowStage) -> None:
    stage.loaded().ran(2)
    trace = stage.state.trace
    named(stage, QSlider, "Temperature").setValue(50)  # type: ignore[attr-defined]
    assert stage.state.trace is trace
    assert not stage.state.request_changed
