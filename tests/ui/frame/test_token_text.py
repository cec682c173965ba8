"""The legend of the token strip, and the tokens as plain text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer.trace.chat import ChatParts
from explorer.trace.step import Token
from explorer.ui.canvases.tokens.strip_legend import kinds
from tests.ui.stage import WindowStage


@pytest.fixture
def stage(qapp: QApplication, tmp_path: Path) -> Iterator[WindowStage]:
    stage = WindowStage(qapp, tmp_path)
    stage.resize(1280, 720)
    yield stage
    stage.close()


def test_the_legend_names_what_is_on_screen_and_nothing_else(stage: WindowStage) -> None:
    legend = stage.window.sequence.legend
    stage.loaded().ran(3)
    assert legend.words == ("prompt", "generated", "not read yet", "selected")
    stage.session.force(20)
    assert "chosen by you" in legend.words
    assert legend.accessibleName() == f"Tokens: {', '.join(legend.words)}"
    stage.paint()
    assert legend.width() >= legend.sizeHint().width(), "all of it has room"
    stage.window.sequence.colours.box.setCurrentIndex(1)
    assert legend.words == ()


def test_each_look_of_a_token_has_its_place_in_the_legend() -> None:
    tokens = (
        Token(0, b"", "padding"),
        Token(1, b"<s>", special=True),
        Token(2, b"a"),
        Token(3, b"b", "generated"),
        Token(4, b"c", "forced"),
    )
    parts = ChatParts(message=1, message_end=2, answer=2)
    assert kinds(tokens, 4, parts, selected=True) == (
        "prompt", "template", "generated", "special", "padding", "forced", "unread", "selected",
    )  # fmt: skip
    assert kinds(tokens[2:3], 1, None, selected=False) == ("prompt",)


def test_the_text_is_there_to_select_and_grows_with_the_run(stage: WindowStage) -> None:
    area = stage.window.sequence
    stage.loaded().ran(2)
    height = area.height()
    area.as_text.click()
    stage.paint()
    assert area.text.isVisible()
    assert area.text.toPlainText() == "p0p1p2t10t11"
    assert area.height() == height
    area.text.selectAll()
    stage.ran(1)
    assert area.text.textCursor().selectedText() == "p0p1p2t10t11"
    assert area.text.toPlainText() == "p0p1p2t10t11t12"
    area.as_text.click()
    assert area.strip.isVisible()


def test_after_a_click_on_a_token_the_arrows_go_on_from_it(stage: WindowStage) -> None:
    stage.loaded().ran(4)
    strip, trace = stage.window.sequence.strip, stage.state.trace
    stage.paint()
    place = strip.box_rect(4).center().toPoint()
    QTest.mouseMove(strip.viewport(), place)
    QTest.mouseClick(strip.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert stage.state.step_index == 1
    for key, index in ((Qt.Key.Key_Right, 2), (Qt.Key.Key_Left, 1), (Qt.Key.Key_Left, 0)):
        QTest.keyClick(strip, key)
        assert stage.state.step_index == index
    assert stage.state.trace is trace
    stage.window.setFocus()
    strip.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(strip, Qt.Key.Key_Home)
    QTest.keyClick(strip, Qt.Key.Key_Right)
    assert (strip.over, stage.state.step_index) == (1, 0), "by keyboard, its own cursor moves"
