"""The training panel over a scripted engine: what it asks, draws, says and exports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import thread_time

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu

from explorer.trace.training.job import (
    AccuracyByPosition,
    FindTrainings,
    SaveTrained,
    SteerTraining,
    Train,
)
from explorer.trace.training.run import TrainingRun
from explorer.trace.training.settings import TrainingSettings
from explorer.trace.training.trained_step import TrainedStep
from explorer.trace.wire import messages as m
from explorer.ui.panels.training import words
from explorer.ui.panels.training.panel import TrainingPanel
from tests.session.trained import ToldTraining
from tests.ui.pace import slowness
from tests.ui.stage import WindowStage

NEWS_MS = 50.0


@pytest.fixture(scope="module")
def own(qapp: QApplication, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WindowStage]:
    """One window for all; each test trains anew."""
    stage = WindowStage(qapp, tmp_path_factory.mktemp("training"))
    stage.window.setProperty("shared", True)
    stage.session.start_engine()
    stage.drain()
    stage.window.docks.bring_up("training")
    stage.paint()
    yield stage
    stage.close()


@pytest.fixture
def panel(own: WindowStage) -> TrainingPanel:
    own.session.trainings.end()
    found = own.window.docks.bring_up("training")
    assert isinstance(found, TrainingPanel)
    found.choices_row.show_settings([TrainingSettings(steps=40, rate=0.1, width=16, heads=2)])
    own.paint()
    return found


def trained(own: WindowStage, panel: TrainingPanel, *steps: int) -> list[ToldTraining]:
    """Press Train; each run told of so many updates at a time."""
    before = len(own.engines)
    panel.train_button.click()
    runs = [ToldTraining(engine, f"run {i}") for i, engine in enumerate(own.engines[before:])]
    for told in runs:
        for count in (0, *steps):
            told.tell(count)
    own.drain()
    own.paint()
    return runs


def test_train_asks_for_what_is_set(own: WindowStage, panel: TrainingPanel) -> None:
    choices = panel.choices_row
    choices.layers.setValue(3)
    choices.seed.setValue(7)
    choices.wrong.setCurrentIndex(choices.wrong.findData("mask"))
    right, wrong = trained(own, panel, 5)
    assert right.asked.settings == TrainingSettings(
        steps=40, rate=0.1, width=16, heads=2, layers=3, seed=7
    )
    assert wrong.asked.settings.wrong == ("mask",)
    choices.beside.setChecked(False)
    (alone,) = trained(own, panel, 5)
    assert alone.asked.settings.wrong == ("mask",)


def test_curves_and_words_are_those_that_were_told(own: WindowStage, panel: TrainingPanel) -> None:
    trained(own, panel, 10, 10)
    drawn = panel.curves.loss.drawn
    assert drawn is not None
    x, y = drawn.series["training"]
    assert list(x) == list(range(1, 21))
    assert list(y) == [one.loss for one in own.state.training.runs[0].steps]
    measured = own.state.training.runs[0].evaluated()
    assert measured is not None
    assert panel.headline.text().startswith("Update 20 of 40: training loss ")
    assert "generation copies 25.0 %" in panel.headline.text()
    accuracy = panel.curves.accuracy.drawn
    assert accuracy is not None
    updates, right = accuracy.series["right"]
    assert list(updates) == [1, 10, 20]
    assert list(right) == pytest.approx([1 / 40**2, 0.0625, 0.25])
    even = np.mean([1 / (query + 1) for query in range(1, 8)])  # a row's weight on the token before
    assert panel.maps[0].found[0].share == pytest.approx(0.5 + 0.5 * even)


def test_looking_back_shows_that_point_and_going_on_begins_there(
    own: WindowStage, panel: TrainingPanel
) -> None:
    (told,) = trained(own, panel, 10, 10)
    panel.slider.setValue(12)
    own.paint()
    assert panel.headline.text().startswith("Update 12 of 40")
    assert panel.maps[0].title.text() == "Attention after 10 updates"
    assert panel.go_on_button.isEnabled()
    assert "Go on from update 10" in panel.go_on_button.toolTip()
    panel.go_on_button.click()
    assert told.engine.last(SteerTraining).rewind == 10
    panel.slider.setValue(20)
    assert own.state.training.at is None


def test_buttons_offer_what_can_be_done(own: WindowStage, panel: TrainingPanel) -> None:
    def enabled() -> list[bool]:
        buttons = panel.pause_button, panel.go_on_button, panel.one_button, panel.save_button
        return [button.isEnabled() for button in buttons]

    assert enabled() == [False] * 4
    (told,) = trained(own, panel, 10)
    assert enabled() == [True, False, False, True]
    told.tell(1, phase="paused")
    own.drain()
    assert enabled() == [False, True, True, True]
    told.tell(29, phase="done")
    own.drain()
    assert enabled() == [False, False, False, True]
    told.tell(0, phase="done", kept=())
    own.drain()
    assert enabled() == [False, False, False, True]  # it is in the engine's memory
    told.tell(0, phase="training", kept=())
    own.drain()
    assert enabled() == [True, False, False, False]
    told.tell(0, phase="done")
    own.drain()
    told.engine.say(m.Lost(sentence="The engine stopped unexpectedly."))
    own.drain()
    assert enabled() == [False, True, False, True]
    assert panel.problem.isVisibleTo(panel)
    assert "Press Continue" in panel.problem.text()


def test_a_run_that_could_not_begin_says_why_and_asks_for_other_settings(
    own: WindowStage, panel: TrainingPanel
) -> None:
    panel.train_button.click()
    own.paint()
    assert not panel.choices_row.isVisible()
    assert panel.headline.text() == "Update 0 of 40: the engine starts."
    run = own.engine.last(Train).run
    own.engine.say(m.Failed(run=run, sentence="A width of 16 can't be divided."))
    own.drain()
    own.paint()
    assert panel.problem.text() == "A width of 16 can't be divided."
    assert panel.choices_row.isVisible()
    assert panel.body.currentIndex() == 0
    assert not panel.headline.isVisible()


def test_a_new_rate_is_sent_while_it_trains(own: WindowStage, panel: TrainingPanel) -> None:
    (told,) = trained(own, panel, 10)
    panel.choices_row.rate.setValue(0.05)
    panel.choices_row.rate.editingFinished.emit()
    assert told.engine.last(SteerTraining).rate == 0.05


def test_two_runs_are_compared_after_as_many_updates(
    own: WindowStage, panel: TrainingPanel
) -> None:
    choices = panel.choices_row
    choices.wrong.setCurrentIndex(choices.wrong.findData("mask"))
    right, wrong = trained(own, panel, 8)
    right.tell(10)
    wrong.training.restore(b"[8, 0.1, 0.1]")  # below what a causal model can reach
    wrong.tell(5)
    own.drain()
    own.paint()
    said = panel.headline.text()
    assert said.startswith("After 13 updates. Right: training loss ")
    assert "No causal mask: training loss " in said
    assert "No model that sees only earlier tokens can get below 0.5 nats" in said
    assert all(maps.isVisible() for maps in panel.maps)
    upper = [maps.maps.shown.levels[0, 0, 0, 5] for maps in panel.maps if maps.maps.shown]
    assert upper[0] == 1  # masked
    assert upper[1] > 1
    own.paint()
    drawn = panel.curves.loss.drawn
    assert drawn is not None
    assert set(drawn.legend) == {"right", "no causal mask", "held out", "lowest possible"}
    panel.open_button.click()
    (menu,) = panel.open_button.findChildren(QMenu)
    menu.actions()[1].trigger()
    menu.close()
    assert wrong.engine.last(SaveTrained).step == 13


def test_one_batch_that_was_easy_is_not_too_good_to_be_true() -> None:
    def said(held_out: float | None) -> str:
        step = TrainedStep(
            step=1, loss=0.4, gradient_norm=1.0, tokens_per_second=1.0, seconds=1.0,
            held_out_loss=held_out, copy_accuracy=0.0,
        )  # fmt: skip
        run = TrainingRun(settings=TrainingSettings(), steps=(step,), lowest_loss=0.5)
        return words.too_good(run, None)

    assert said(0.51) == said(None) == ""
    assert said(0.4).startswith("No model that sees only earlier tokens can get below 0.5 nats")


def test_open_opens_the_folder_as_a_model(own: WindowStage, panel: TrainingPanel) -> None:
    (told,) = trained(own, panel, 10)
    panel.open_button.click()
    run = told.engine.last(SaveTrained).run
    told.engine.say(m.Facts(run=run, facts={"path": "/trained/copy 10"}))
    own.drain()
    assert own.engines[0].last(m.Load).model == "/trained/copy 10"
    assert own.state.request.prompt == "12341234"  # that of the maps
    own.session.set_prompt("mine")
    panel.open_button.click()
    run = told.engine.last(SaveTrained).run
    told.engine.say(m.Facts(run=run, facts={"path": "/trained/copy 10"}))
    own.drain()
    assert own.state.request.prompt == "mine"
    own.session.set_prompt("")
    told.tell(1, labels=tuple("ein Ü".encode().decode("latin-1")))  # a text file's bytes
    own.drain()
    panel.open_button.click()
    run = told.engine.last(SaveTrained).run
    told.engine.say(m.Facts(run=run, facts={"path": "/trained/text 11"}))
    own.drain()
    assert own.state.request.prompt == "ein Ü"


def test_accuracy_by_position(own: WindowStage, panel: TrainingPanel) -> None:
    (told,) = trained(own, panel, 10)
    found = AccuracyByPosition(step=11, own=(1.0, 0.5), forced=(1.0, 0.75))
    told.tell(1, positions=(found,))
    own.drain()
    panel.position_button.click()
    own.paint()
    drawn = panel.positions.chart.drawn
    assert drawn is not None
    assert list(drawn.series["reads its own output"][1]) == [1.0, 0.5]
    assert list(drawn.series["reads the right tokens"][1]) == [1.0, 0.75]
    assert panel.positions.line.text() == (
        "75.0 % right with its own output, 87.5 % with the right tokens"
    )
    panel.position_button.click()


def test_what_is_exported_is_what_was_measured(own: WindowStage, panel: TrainingPanel) -> None:
    (told,) = trained(own, panel, 10)
    views = panel.views()
    assert set(views) == {"Loss", "Right in generation", "Right by position", "Attention"}
    table = views["Loss"].table
    assert table is not None
    rows = list(table())
    assert len(rows) == 11
    assert rows[3][1:3] == (3, own.state.training.runs[0].steps[2].loss)
    maps = views["Attention"]
    assert maps.array is not None
    assert np.array_equal(maps.array()(), told.training.maps())
    assert "training copy" in panel.caption_of("Loss", views["Loss"])
    assert panel.subject == "training copy"


def test_a_saved_folder_is_found_by_the_picker(
    own: WindowStage, panel: TrainingPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    (told,) = trained(own, panel, 10)
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "/mine/model")
    panel.save_button.click()
    asked = told.engine.last(SaveTrained)
    assert (asked.step, asked.folder) == (10, "/mine/model")
    told.engine.say(m.Facts(run=asked.run, facts={"path": "/mine/model"}))
    own.drain()
    assert own.engines[0].last(m.FindModels).add_folder == "/mine/model"


def test_news_of_two_runs_do_not_hold_the_window_up(own: WindowStage, panel: TrainingPanel) -> None:
    """Processor time of the window's thread for a piece of news; about 15 ms when quiet."""
    choices = panel.choices_row
    choices.wrong.setCurrentIndex(choices.wrong.findData("mask"))
    choices.steps.setValue(1000)
    runs = trained(own, panel, 300)
    spent = []
    for _ in range(4):
        for told in runs:
            news = told.news(5)
            began = thread_time()
            told.engine.say(news)
            own.drain()
            own.paint()
            spent.append(1000 * (thread_time() - began))
    assert median(spent) < NEWS_MS * slowness()


def test_a_text_file_is_a_task(panel: TrainingPanel, tmp_path: Path) -> None:
    path = str(tmp_path / "poem.txt")
    panel.choices_row.show_settings([TrainingSettings(task=path)])
    assert panel.choices_row.task.currentText() == "poem.txt"
    assert panel.choices_row.settings()[0].task == path
    panel.choices_row.show_settings([TrainingSettings(task=path + "2")])
    assert panel.choices_row.task.count() == 5
    panel.choices_row.show_settings([TrainingSettings()])
    assert panel.choices_row.settings()[0].task == "copy"


def test_the_panel_asks_what_is_on_disk(own: WindowStage, panel: TrainingPanel) -> None:
    panel.hide()
    panel.show()
    assert own.engines[0].count(FindTrainings) >= 1
