"""A run of another model than the one that is open: every place says which is which."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from PySide6.QtWidgets import QLabel, QScrollArea

from explorer.trace.files import dxt
from explorer.trace.trace import Trace
from tests.session.saving.test_trace_files import made_trace
from tests.session.saving.test_trace_files import settle as read
from tests.session.scripted import PROMPT, card
from tests.ui.stage import WindowStage


def of_model(name: str, **request: object) -> Trace:
    trace = made_trace()
    asked = msgspec.structs.replace(trace.request, model=name, **request)
    return replace(trace, request=asked, card=card(name))


@pytest.fixture
def both(stage: WindowStage, tmp_path: Path) -> WindowStage:
    """`tiny` is open, and a saved run of `other` on screen."""
    stage.loaded()
    opened(stage, tmp_path, of_model("other"))
    return stage


def opened(stage: WindowStage, folder: Path, trace: Trace) -> None:
    dxt.save(trace, folder / "run.dxt")
    stage.session.saving.open(folder / "run.dxt")
    read(stage)
    stage.paint()


def said(stage: WindowStage) -> dict[str, str]:
    """What each place says of models."""
    window = stage.window
    panel = window.docks.bring_up("model")
    stage.paint()
    labels = panel.findChild(QScrollArea).findChildren(QLabel)
    return {
        "title": window.windowTitle(),
        "picker": window.topbar.model_text,
        "bar": window.notices.stale.text,
        "status": window.status.model_text,
        "next": window.status.text,
        "prompt": window.prompt.count_text,
        "panel": "\n".join(label.text() for label in labels if label.isVisible()),
    }


def test_each_place_says_which_model_is_open_and_which_the_run_is_of(both: WindowStage) -> None:
    words = said(both)
    assert words["title"].startswith("run.dxt[*] — run of other (tiny is open)")
    assert words["picker"] == "tiny"
    assert words["bar"] == (
        "This run used other, but tiny is open. Press Step to open other and continue."
    )
    assert words["status"].startswith("tiny is open · ")
    assert words["next"] == "Step opens other and continues this run"
    assert words["prompt"].startswith("3 of 64 tokens (tokenizer of other)")
    assert words["panel"].startswith("tiny\n")
    assert "This is the open model. The run on screen is of other." in words["panel"]


def test_the_prompt_is_tinted_as_the_run_was_read(both: WindowStage) -> None:
    assert both.state.prompt_tokens == ()
    assert len(both.window.prompt.edit.tokens) == len(PROMPT)
    both.session.set_prompt("typed")
    both.paint()
    assert both.window.prompt.edit.tokens == ()
    assert both.window.prompt.count_text == "Open other to count the tokens"


def test_once_the_model_of_the_run_is_open_nothing_names_the_one_before(both: WindowStage) -> None:
    both.session.step()
    both.answer_load(name="other")
    both.prove()
    both.paint()
    words = said(both)
    assert not [place for place, text in words.items() if "tiny" in text]
    assert words["picker"] == "other"
    assert words["bar"] == ""


def test_undo_makes_all_places_speak_of_the_open_model_again(both: WindowStage) -> None:
    both.session.undo()
    both.paint()
    assert not [place for place, text in said(both).items() if "other" in text]


def test_a_run_of_the_same_model_with_another_dtype(stage: WindowStage, tmp_path: Path) -> None:
    stage.loaded()
    opened(stage, tmp_path, of_model("tiny", dtype="bfloat16"))
    assert stage.window.notices.stale.text == (
        "This run used bfloat16 on cpu, but tiny is open in float32 on cpu. Press "
        "Step to reopen it and continue."
    )
    assert "is open" not in stage.window.windowTitle()
