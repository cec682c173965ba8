"""Bars at the top: what is on screen is never taken for what the controls say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtWidgets import QPushButton

from explorer.session.session import Session
from explorer.trace import messages as m
from tests.session.test_proof import CHANGED, moved, opened_anew
from tests.ui.stage import WindowStage


def test_the_run_of_the_model_before_is_named_until_the_next_step(stage: WindowStage) -> None:
    stage.loaded().ran(2)
    bar = stage.window.notices.stale
    assert not bar.isVisible()
    stage.session.open_model("second")
    stage.paint()
    assert not bar.isVisible()  # tiny is what Step runs until the second is open
    stage.answer_load(name="second")
    stage.paint()
    assert bar.isVisible()
    assert bar.text == "This is still the tiny run. Press Step to start over with second."
    stage.ran(1)
    assert not bar.isVisible()


def test_a_map_with_the_mask_is_not_taken_for_one_without(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    bars = stage.window.notices
    stage.session.set_causal_mask(False)
    stage.paint()
    assert "This run used the mask." in bars.mask.text
    assert not bars.stale.isVisible()  # one bar says both
    assert "have changed" in stage.window.status._text.text()
    stage.session.set_causal_mask(True)
    stage.paint()
    assert not bars.mask.isVisible()
    assert not bars.stale.isVisible()
    assert "have changed" not in stage.window.status._text.text()


def test_a_run_with_a_cache_is_not_taken_for_one_without(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    stage.session.set_cache(False)
    stage.paint()
    assert "This run used the KV cache." in stage.window.notices.stale.text


CHANGES: dict[str, Callable[[Session], None]] = {
    "prompt": lambda s: s.set_prompt("another"),
    "chat": lambda s: s.set_chat(True),
    "control tokens": lambda s: s.set_special_as_text(True),
    "cache": lambda s: s.set_cache(False),
    "padding": lambda s: s.set_padding("left", 2),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_whatever_makes_step_start_over_is_said_in_a_bar(stage: WindowStage, kind: str) -> None:
    stage.loaded().ran(1)
    bar = stage.window.notices.stale
    assert not bar.isVisible()
    CHANGES[kind](stage.session)
    stage.paint()
    assert stage.state.request_changed
    assert bar.isVisible()
    assert "Press Step" in bar.text
    stage.session.undo()
    stage.paint()
    assert not bar.isVisible()


def test_a_run_is_not_taken_for_one_in_the_mode_that_is_open_now(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    words = stage.window.status._model
    assert "mode" not in words.text()
    stage.session.set_mode("rounded")
    stage.answer_load(mode="rounded")
    stage.paint()
    bar = stage.window.notices.stale
    assert bar.text == "This run was made in mode exact. Press Step to run again in mode rounded."
    assert words.text().endswith("run made in mode exact, now in mode rounded")
    stage.ran(1)
    assert not bar.isVisible()
    assert words.text().endswith("· mode rounded")


def test_a_run_whose_weights_have_changed_says_so_with_a_choice(stage: WindowStage) -> None:
    opened_anew(stage, fingerprint=CHANGED).session.step()
    bar = stage.window.notices.drift
    assert not bar.isVisible()
    stage.prove(moved(2, 0.25))
    assert bar.isVisible()
    assert "files of tiny have changed" in bar.text
    assert "differ by up to 0.25 (rounding: 0.0001)" in bar.text
    look, again = bar.findChildren(QPushButton)
    look.click()
    stage.paint()
    assert not bar.isVisible()
    stage.session.step()
    stage.paint()
    assert bar.isVisible()
    again.click()
    stage.paint()
    assert not bar.isVisible()
    assert stage.engine.last(m.Advance).chosen == ()
