"""The padding panel: what it takes from a file or a model, what a click opens, its width."""

from __future__ import annotations

import msgspec
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from explorer.trace.batch import BatchRequest
from explorer.trace.wire import messages as m
from tests.trace.batches import result, row
from tests.ui.panels.padding.test_panel import answer, loaded, opened, words
from tests.ui.stage import WindowStage


def test_a_batch_from_a_file_shows_without_a_model_and_sets_the_controls(
    stage: WindowStage,
) -> None:
    panel = opened(stage)
    asked = BatchRequest(
        prompts=("one two", "three"), padding="left", extra=3, steps=2, wrong=("mask",), loss=True
    )
    stage.session._store.set(batch=result(row(2, "left"), row(4), request=asked, vocabulary=96))
    stage.paint()
    assert not panel.empty
    assert panel.request() == asked
    assert panel._batch.grid._blocks
    assert "From a saved session, run on tiny." in words(panel)
    assert not panel.run_button.isEnabled()
    assert not panel._again.isActive()
    assert stage.engines == []


def test_what_is_typed_while_a_batch_runs_is_not_overwritten_by_its_result(
    stage: WindowStage,
) -> None:
    panel = loaded(stage)
    panel._on_run()
    panel.prompts.edit.setPlainText("typed\nmeanwhile")
    answer(stage)
    assert panel.prompts.prompts() == ("typed", "meanwhile")


def test_chat_is_offered_where_there_is_a_template_and_asked_for(stage: WindowStage) -> None:
    panel = loaded(stage)
    assert not panel.prompts._chat.isEnabled()
    card = msgspec.structs.replace(stage.state.card, has_chat_template=True)  # type: ignore[type-var]
    stage.session._store.set(card=card)
    panel.prompts._chat.click()
    panel._on_run()
    assert stage.engine.last(m.RunBatch).batch.chat
    answer(stage)
    stage.session._store.set(card=msgspec.structs.replace(card, has_chat_template=False))
    assert not panel.request().chat


def test_the_selected_prompt_shows_its_bars_and_the_others_one_line(stage: WindowStage) -> None:
    panel = loaded(stage)
    panel._on_run()
    answer(stage)
    grid = panel._batch.grid
    heights = [place.bottom - place.top for place in grid._places]
    assert heights[0] > heights[1]
    place = grid._places[1]
    QTest.mouseClick(
        grid.viewport(), Qt.MouseButton.LeftButton, pos=grid.viewport().rect().topLeft()
        + QPoint(20, round(place.top) + 4 - grid._offset().y()),
    )  # fmt: skip
    assert [place.bottom - place.top for place in grid._places] == heights[::-1]
    assert "prompt 2" in panel.look_button.text()


def test_it_is_no_wider_than_half_a_projector(stage: WindowStage) -> None:
    panel = loaded(stage)
    panel._on_run()
    answer(stage)
    for _ in range(2):
        assert panel.minimumSizeHint().width() <= 520 * stage.look.scale
        stage.look.zoom(+1)
        stage.paint()


def test_cancel_stays_directly_after_run_in_its_row(stage: WindowStage) -> None:
    panel = loaded(stage)
    run, cancel = panel.run_button, panel.cancel_button
    for width, height in ((1280, 720), (1024, 640)):
        stage.resize(width, height)
        places = []
        for act in (lambda: None, run.click, lambda: answer(stage), run.click, cancel.click):
            act()
            stage.paint()
            places.append([part.mapTo(panel, part.rect().topLeft()) for part in (run, cancel)])
        assert all(place == places[0] for place in places)
        (left, top), (beside, same) = (place.toTuple() for place in places[0])
        assert same == top
        assert 0 < beside - (left + run.width()) <= 8 * stage.look.scale
