"""Bars at the top: what is on screen is never taken for what the controls say."""

from __future__ import annotations

from tests.ui.stage import WindowStage


def test_the_run_of_the_model_before_is_named_until_the_next_step(stage: WindowStage) -> None:
    stage.loaded().ran(2)
    bar = stage.window.notices.stale
    assert not bar.isVisible()
    stage.session.open_model("second")
    stage.paint()
    assert "still the run of tiny" in bar.text
    stage.answer_load(name="second")
    stage.paint()
    assert bar.isVisible()
    assert bar.text.endswith("Step starts anew with second.")
    stage.ran(1)
    assert not bar.isVisible()


def test_a_map_with_the_mask_is_not_taken_for_one_without(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    bars = stage.window.notices
    stage.session.set_causal_mask(False)
    stage.paint()
    assert "still the run with the mask" in bars.mask.text
    assert not bars.stale.isVisible()  # one bar says both
    assert "Step starts anew" in stage.window.status._text.text()
    stage.session.set_causal_mask(True)
    stage.paint()
    assert not bars.mask.isVisible()
    assert not bars.stale.isVisible()
    assert "Step starts anew" not in stage.window.status._text.text()


def test_a_run_with_a_cache_is_not_taken_for_one_without(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    stage.session.set_cache(False)
    stage.paint()
    assert "still the run with the cache" in stage.window.notices.stale.text


def test_a_changed_prompt_is_seen_without_a_bar(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    stage.session.set_prompt("another")
    stage.paint()
    assert stage.state.request_changed
    assert not stage.window.notices.stale.isVisible()


def test_a_run_is_not_taken_for_one_in_the_mode_that_is_open_now(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    words = stage.window.status._model
    assert "mode" not in words.text()
    stage.session.set_mode("rounded")
    stage.answer_load(mode="rounded")
    stage.paint()
    bar = stage.window.notices.stale
    assert bar.text == "On screen is still the run in mode exact; Step starts anew in mode rounded."
    assert words.text().endswith("run made in mode exact, now in mode rounded")
    stage.ran(1)
    assert not bar.isVisible()
    assert words.text().endswith("· mode rounded")
