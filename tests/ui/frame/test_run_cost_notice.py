"""The bar before a large run: what it will take, and three ways on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QPushButton

from explorer.trace.wire import messages as m
from tests.session.scripted import LARGE
from tests.ui.stage import WindowStage


@pytest.fixture
def stage(qapp: QApplication, tmp_path: Path) -> Iterator[WindowStage]:
    stage = WindowStage(qapp, tmp_path)
    stage.loaded()
    stage.session.step()
    run = stage.engine.last(m.Advance).run
    stage.say(m.Planned(run=run, plan=LARGE), m.Finished(run=run, reason="plan"))
    yield stage
    stage.close()


def press(stage: WindowStage, words: str) -> None:
    buttons = stage.window.notices.plan.findChildren(QPushButton)
    next(button for button in buttons if button.text() == words).click()


def test_it_says_what_the_run_takes(stage: WindowStage) -> None:
    bar = stage.window.notices.plan
    assert bar.isVisibleTo(stage.window)
    for part in ("8,000 tokens", "1.75 GiB", "weights (513 MiB)", "about 2 min"):
        assert part in bar.text
    assert bar.accessibleName() == bar.text


@pytest.mark.parametrize(
    ("words", "every"), [("Run", 1), ("Record every 4th layer", 4), ("Cancel", None)]
)
def test_three_ways_on(stage: WindowStage, words: str, every: int | None) -> None:
    press(stage, words)
    assert not stage.window.notices.plan.isVisibleTo(stage.window)
    assert stage.engine.count(m.Advance) == (1 if every is None else 2)
    if every is not None:
        asked = stage.engine.last(m.Advance)
        assert (asked.ask_first, asked.request.capture_every) == (False, every)
