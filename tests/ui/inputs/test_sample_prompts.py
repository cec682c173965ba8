"""Sample prompts: well-formed, offered in a menu, taken onto their own model."""

from __future__ import annotations

from PySide6.QtWidgets import QMenu

from explorer.trace.wire import messages as m
from explorer.ui.files.session_files import BUNDLED
from explorer.ui.inputs.sample_prompts import samples
from tests.ui.stage import WindowStage


def test_every_sample_names_a_bundled_model_and_what_to_look_at() -> None:
    found = samples()
    assert {sample.model for sample in found} == set(BUNDLED)
    assert all(sample.prompt and sample.title and sample.look_at for sample in found)


def test_a_sample_opens_its_model_with_its_prompt(stage: WindowStage) -> None:
    stage.loaded()
    menu = next(
        m for m in stage.window.menuBar().findChildren(QMenu) if m.title() == "Sample prompts"
    )
    sample = samples()[0]
    menu.actions()[0].trigger()
    assert stage.engine.last(m.Load).model == sample.model
    stage.answer_load(name=sample.model)
    assert stage.state.request.model == sample.model
    assert stage.state.request.prompt == sample.prompt
    assert menu.actions()[0].toolTip() == sample.look_at
