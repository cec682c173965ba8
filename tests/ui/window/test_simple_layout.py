"""The simple layout of a first start, the full one, and what the card "Try this" offers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from explorer import smollm2
from explorer.trace.wire import messages as m
from explorer.ui.dialogs.model_picker import ModelPicker
from explorer.ui.settings.preferences import Preferences
from explorer.ui.settings.settings import Settings
from tests.ui.stage import WindowStage
from tests.ui.waiting import settle


@pytest.fixture
def stage(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[WindowStage]:
    """A first start on a computer without SmolLM2."""
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path / "data"))
    stage = WindowStage(qapp, tmp_path)
    stage.resize(1280, 694)
    stage.window.preferences.begin_simply()
    settle()
    yield stage
    stage.close()


def panels(stage: WindowStage) -> set[str]:
    return {dock.place.id for dock in stage.window.docks.docks if not dock.isHidden()}


def named(stage: WindowStage, model: str) -> None:
    stage.session.start_engine()
    stage.drain()
    stage.session.open_model(model)
    stage.answer_load(name=model)
    stage.paint()


def test_a_first_start_shows_the_least(stage: WindowStage) -> None:
    named(stage, "copycat")
    window = stage.window
    assert panels(stage) == {"attention", "next-token"}
    assert window.prompt.edit.isVisible()
    assert window.try_this.isVisible()
    assert window.topbar.mask_switch.isVisible()
    assert window.sampling.temperature.spin.isVisible()
    hidden = (
        window.topbar.cache_switch, window.topbar.side, window.topbar.pad, window.stops,
        window.sampling.seed, window.sampling.top_p.spin, window.sequence.colours,
    )  # fmt: skip
    assert not any(part.isVisible() for part in hidden)
    attention = window.docks.bring_up("attention")
    assert not attention.heads.isVisible()  # type: ignore[attr-defined]


def test_full_brings_the_rest_and_is_remembered(stage: WindowStage) -> None:
    window = stage.window
    window.topbar.full_switch.click()
    settle()
    assert panels(stage) == {"attention", "next-token", "kv-cache", "timings"}
    shown = (window.topbar.cache_switch, window.topbar.side, window.stops, window.sampling.seed)
    assert all(part.isVisible() for part in shown)
    assert not window.try_this.isVisible()
    assert Preferences(stage.memory).on("full")
    window.actions_table.by_id["full"].trigger()
    settle()
    assert panels(stage) == {"attention", "next-token"}
    assert not Preferences(stage.memory).on("full")


def test_whoever_has_settings_stays_with_full(tmp_path: Path) -> None:
    file = tmp_path / "settings.ini"
    first = Settings(file)
    Preferences(first).begin_simply()
    assert not Preferences(first).on("full")
    first.put("setting/full", "on")
    first.sync()
    again = Preferences(Settings(file))
    again.begin_simply()
    assert again.on("full")


def test_the_full_layout_comes_back_as_it_was(stage: WindowStage) -> None:
    docks = stage.window.docks
    stage.window.topbar.full_switch.click()
    docks.bring_up("branches")
    settle()
    before, sizes = panels(stage), [dock.size() for dock in docks.docks if dock.in_front]
    left = [stage.window.prompt.height(), stage.window.sampling.height()]
    for _ in range(2):
        stage.window.topbar.full_switch.click()
        settle()
    assert panels(stage) == before
    assert [dock.size() for dock in docks.docks if dock.in_front] == sizes
    assert [stage.window.prompt.height(), stage.window.sampling.height()] == left


def test_the_full_layout_is_what_is_kept(stage: WindowStage) -> None:
    docks = stage.window.docks
    stage.window.topbar.full_switch.click()
    docks.bring_up("branches")
    stage.window.topbar.full_switch.click()
    settle()
    kept = docks.layout_state()
    docks.reset_layout()
    assert panels(stage) == {"attention", "next-token"}, "a reset stays simple"
    stage.window.topbar.full_switch.click()
    docks.restore_layout(kept)
    settle()
    assert "branches" in panels(stage)


def test_a_lesson_has_everything_for_a_while(stage: WindowStage) -> None:
    stage.window.show_whole(True)
    settle()
    assert stage.window.topbar.side.isVisible()
    assert not Preferences(stage.memory).on("full"), "the choice stays"
    stage.window.show_whole(False)
    settle()
    assert panels(stage) == {"attention", "next-token"}


def test_presenter_mode_comes_back_to_the_simple_layout(stage: WindowStage) -> None:
    stage.window.presenter.toggle()
    settle()
    assert not stage.window.topbar.full_switch.isVisible()
    stage.window.presenter.toggle()
    settle()
    assert panels(stage) == {"attention", "next-token"}
    assert stage.window.topbar.full_switch.isVisible()
    assert not stage.window.topbar.side.isVisible()


def test_padding_that_is_set_is_shown(stage: WindowStage) -> None:
    named(stage, "copycat")
    stage.session.set_padding("left", 3)
    assert stage.window.topbar.side.isVisible()
    stage.session.set_padding(None, 0)
    assert not stage.window.topbar.side.isVisible()


@pytest.mark.parametrize(
    ("model", "about"),
    [
        ("copycat", "knows no facts and no grammar"),
        ("smollm2", "often wrong"),
        ("/models/other", "See what /models/other makes of them"),
    ],
)
def test_three_prompts_fit_the_model(stage: WindowStage, model: str, about: str) -> None:
    card = stage.window.try_this
    assert "No model is open" in card.about.text()
    named(stage, model)
    assert about in card.about.text()
    assert all(button.isVisible() for button in card.prompts)
    card.prompts[1].click()
    stage.drain()
    assert stage.state.request.prompt
    assert stage.state.request.model == model
    assert card.hint.text().startswith("Press Step (Space). ")
    stage.session.set_prompt(stage.state.request.prompt + " garden")
    assert card.hint.text().startswith("Press Step (Space). "), "it may ask for a word more"
    stage.session.set_prompt("something else")
    assert card.hint.text() == "Choose a prompt, then press Step (Space)."


def test_smollm2_is_fetched_from_the_card(stage: WindowStage) -> None:
    named(stage, "copycat")
    shown = stage.window.try_this.download
    assert shown.fetch.text() == "Download (93 MB)"
    shown.fetch.click()
    asked = stage.engine.last(m.Download)
    assert asked.repo == "smollm2"
    stage.say(m.Progress(run=asked.run, text="Downloading SmolLM2", fraction=0.34))
    assert shown.words.text() == "SmolLM2: 34 % of 93 MB"
    assert shown.bar.isVisible()
    assert shown.bar.value() == 340
    assert not shown.fetch.isVisible()
    shown.stop.click()
    stage.paint()
    assert stage.engine.last(m.Cancel).run == asked.run
    assert shown.fetch.text() == "Resume download"
    shown.fetch.click()
    again = stage.engine.last(m.Download)
    stage.say(m.Failed(run=again.run, sentence="There is no network."))
    assert shown.problem.text() == "There is no network."
    shown.fetch.click()
    stage.paint()
    assert not shown.problem.isVisible()
    facts = {"repo": "smollm2", "path": "/x", "open": "smollm2"}
    stage.say(m.Facts(run=stage.engine.last(m.Download).run, facts=facts))
    shown.open_button.click()
    stage.drain()
    assert stage.engine.last(m.Load).model == "smollm2"
    stage.answer_load(name="smollm2")
    stage.paint()
    assert not shown.isVisible()


def test_the_list_of_models_offers_it_too(stage: WindowStage) -> None:
    named(stage, "copycat")
    stage.window.choose_model()
    settle()
    (picker,) = stage.window.findChildren(ModelPicker)
    assert picker.smollm2.fetch.isVisible()
    picker.smollm2.fetch.click()
    stage.paint()
    assert picker.smollm2.stop.isVisible()
    assert stage.window.try_this.download.stop.isVisible(), "both tell of one download"


def test_where_it_is_nothing_is_offered(
    stage: WindowStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smollm2, "is_here", lambda: True)
    named(stage, "copycat")
    stage.session.models.find()
    answer = {"models": [], "folders": [], "available_bytes": 1, "conversions_bytes": 0}
    stage.say(m.Facts(run=stage.engine.last(m.FindModels).run, facts={**answer, "offline": ""}))
    assert not stage.window.try_this.download.isVisible()
