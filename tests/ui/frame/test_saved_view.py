"""A session's file keeps how it was looked at: opening it shows the same again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication

from explorer.trace.files import dxt
from explorer.trace.files.saved_extras import SavedExtras
from explorer.trace.files.saved_view import SavedView
from explorer.trace.request import RunRequest
from explorer.trace.step import Token
from explorer.trace.trace import Trace
from explorer.ui.frame import saved_view
from explorer.ui.settings.settings import Settings
from tests.session.saving.test_trace_files import made_trace
from tests.session.scripted import card, made_step
from tests.trace.runs import edited
from tests.ui.files.test_unsaved_question import settle
from tests.ui.stage import WindowStage
from tests.ui.waiting import wait_until


@pytest.fixture
def stage(qapp: QApplication, tmp_path: Path) -> Iterator[WindowStage]:
    (tmp_path / "one").mkdir()
    stage = WindowStage(qapp, tmp_path / "one")
    yield stage
    stage.look.set_theme("light")
    stage.close()


@pytest.fixture
def other(qapp: QApplication, tmp_path: Path) -> Iterator[WindowStage]:
    """Another start of the program, with another theme."""
    (tmp_path / "two").mkdir()
    stage = WindowStage(qapp, tmp_path / "two")
    stage.look.set_theme("light")
    yield stage
    stage.look.set_theme("light")
    stage.close()


def opened(stage: WindowStage, path: Path) -> WindowStage:
    stage.session.saving.open(path)
    settle(stage)
    stage.until_settled()
    stage.paint()
    return stage


def attention(stage: WindowStage) -> Any:
    return stage.window.docks.bring_up("attention")


def look(stage: WindowStage) -> SavedView:
    return saved_view.look_at(stage.window.docks, stage.look)


def long_trace() -> Trace:
    """A prompt of sixty tokens and three steps: a map with something to zoom in on."""
    prompt = tuple(Token(i, f"p{i}".encode()) for i in range(60))
    trace = Trace(request=RunRequest(model="tiny", prompt="long"), card=card(), prompt=prompt)
    for i in range(3):
        step = made_step(i, len(prompt))
        trace = trace.appended(step, Token(step.draw.token_id, b"t", "generated"))
    return trace


def turned(stage: WindowStage, folder: Path) -> None:
    """Everything that is kept, turned to something else."""
    dxt.save(long_trace(), folder / "long.dxt")
    opened(stage, folder / "long.dxt")
    stage.session.select(step=0, layer=1, head=1, query=2)
    panel = attention(stage)
    panel.heads.order.setCurrentIndex(3)
    panel.tools.figure.setCurrentIndex(2)
    panel.tools.choose(scale="log", colours="cividis")
    stage.window.docks.bring_up("padding")
    stage.window.docks.bring_up("sampling")
    timings = stage.window.docks.bring_up("timings")
    timings.turn_to(type(timings._pages_in_order()[1]))  # type: ignore[attr-defined]
    stage.look.set_theme("dark")
    stage.until_settled()
    panel.pages.walked.zoom(4.0)
    panel.pages.maps.view.pan(-30.0, -20.0)


def test_all_of_the_view_comes_back(stage: WindowStage, other: WindowStage, tmp_path: Path) -> None:
    turned(stage, tmp_path)
    before = look(stage)
    stage.session.saving.save(tmp_path / "a.dxt")
    settle(stage)
    stage.look.set_theme("light")
    opened(other, tmp_path / "a.dxt")
    part = before.choices["attention"].pop("zoom"), before.choices["attention"].pop("left")
    wait_until(lambda: "zoom" in look(other).choices["attention"])
    after = look(other)
    again = after.choices["attention"].pop("zoom"), after.choices["attention"].pop("left")
    for one in (before, after):
        one.choices["attention"].pop("top")
    assert after == before
    assert again == pytest.approx(part, rel=0.05)
    selection = other.state.selection
    assert (selection.step, selection.layer, selection.head, selection.query) == (0, 1, 1, 2)
    assert other.look.theme.name == "dark"
    assert Settings(tmp_path / "two" / "settings.ini").text("theme") == "light", "the user's own"


def test_an_enlarged_panel_comes_back_enlarged_and_goes_back_to_its_place(
    stage: WindowStage, other: WindowStage, tmp_path: Path
) -> None:
    stage.loaded().ran(2)
    stage.window.docks.enlarge(stage.window.docks.docks[3])
    stage.session.saving.save(tmp_path / "a.dxt")
    settle(stage)
    docks = other.window.docks
    shown = [dock.place.id for dock in docks.docks if not dock.isHidden()]
    opened(other, tmp_path / "a.dxt")
    assert docks.enlarged is docks.docks[3]
    docks.enlarge(None)
    other.paint()
    assert [dock.place.id for dock in docks.docks if not dock.isHidden()] == shown


def test_a_file_without_a_view_changes_none(stage: WindowStage, tmp_path: Path) -> None:
    stage.session.select(layer=1)
    before = look(stage)
    dxt.save(made_trace(), tmp_path / "plain.dxt")
    edited(tmp_path / "plain.dxt", lambda head, body: body.pop("seen"))  # as older programs wrote
    opened(stage, tmp_path / "plain.dxt")
    assert stage.state.trace is not None
    assert stage.state.selection.layer == 1
    assert look(stage).shown == before.shown


def test_a_page_is_found_by_its_id_and_by_what_older_files_call_it(
    stage: WindowStage, tmp_path: Path
) -> None:
    stage.session.select(layer=1)
    for written, read in (
        ({"timings": "BothWaysPage", "kv-cache": "WhatIfPage"}, ("cache-comparison", "estimate")),
        # a page that is no more leaves things as they are
        ({"timings": "steps", "kv-cache": "position"}, ("cache-comparison", "position")),
        ({"timings": "PassesPage", "kv-cache": "LayersPage"}, ("passes", "layers")),
    ):
        seen = SavedView(
            shown=("timings", "kv-cache"),
            choices={panel: {"page": page} for panel, page in written.items()},
        )
        dxt.save(made_trace(), tmp_path / "page.dxt", SavedExtras(seen=seen))
        opened(stage, tmp_path / "page.dxt")
        chosen = look(stage).choices
        assert (chosen["timings"]["page"], chosen["kv-cache"]["page"]) == read


def test_names_that_are_not_known_are_passed_over(stage: WindowStage, tmp_path: Path) -> None:
    before = look(stage)
    odd = SavedView(
        step=99, layer=99, head=99, query=99, theme="neon",
        shown=("horoscope",), in_front=("horoscope",),
        enlarged="horoscope",
        choices={
            "attention": {"view": "cube", "zoom": 1e15, "left": 1e15, "top": 0.0, "order": 3.0},
            "timings": {"page": "Nowhere"}, "padding": {"tab": 77.0}, "horoscope": {"x": "y"},
        },
    )  # fmt: skip
    dxt.save(made_trace(), tmp_path / "odd.dxt", SavedExtras(seen=odd))
    opened(stage, tmp_path / "odd.dxt")
    assert stage.state.error == ""
    assert stage.state.step_index == 1
    after = look(stage)
    assert (after.theme, after.shown, after.enlarged) == (before.theme, before.shown, "")
    assert after.choices["timings"] == before.choices["timings"]
