"""The timings panel: passes and their parts, and what a step costs the window."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from explorer.figures.cost import timing
from explorer.figures.cost.timing import PIECES
from explorer.trace.experiments import CacheExperiment
from explorer.trace.step import Step
from explorer.trace.wire import messages as m
from explorer.ui.access.accessible import line_of
from explorer.ui.canvases.charts.chart import Chart, ChartReading
from explorer.ui.files import export
from explorer.ui.look.theme import LIGHT
from explorer.ui.panels.timings import words as timing_words
from explorer.ui.panels.timings.cache_comparison_page import CacheComparisonPage
from explorer.ui.panels.timings.panel import TimingsPanel
from explorer.ui.panels.timings.passes_page import PassesPage
from explorer.wording import ms_text
from tests.session.scripted import played, stepped
from tests.ui import pointer
from tests.ui.stage import WindowStage
from tests.ui.waiting import settle, wait_until


def timings(stage: WindowStage) -> TimingsPanel:
    return next(p for p in stage.window.docks.panels if isinstance(p, TimingsPanel))


def words(panel: TimingsPanel) -> str:
    return "\n".join(label.text() for label in panel.findChildren(QLabel) if label.isVisible())


def rows(panel: TimingsPanel, view: str) -> list[dict[str, object]]:
    table = panel.views()[view].table
    assert table is not None
    head, *body = (tuple(row) for row in table())
    return [dict(zip(head, row, strict=True)) for row in body]


def chart(panel: TimingsPanel, view: str) -> Chart:
    """The chart of a view, brought to the front."""
    page = panel.page
    assert isinstance(page, PassesPage)
    widget = panel.views()[view].widget
    page.charts.show_in_front((page.charts.first, page.charts.second).index(widget))  # type: ignore
    assert isinstance(widget, Chart)
    settle()
    return widget


def drawn(one: Chart) -> ChartReading:
    found = one.drawn
    assert found is not None
    return found


def with_parts(step: Step) -> Step:
    return replace(
        step,
        forward_ms=10.0,
        layer_ms=np.array([3, 4], np.float32),
        attention_ms=np.array([2, 1], np.float32),
        mlp_ms=np.array([0.5, 2], np.float32),
        embedding_ms=0.5,
        norm_ms=0.25,
        head_ms=2.0,
    )


def ran(stage: WindowStage, count: int) -> None:
    stage.session.step(count)
    run = stage.prompted()
    for index in range(count):
        event = stepped(run, index)
        stage.say(m.Stepped(run=run, step=with_parts(event.step), token=event.token))
    stage.finish()


def test_a_pass_is_shown_in_its_parts_and_they_add_up(stage: WindowStage) -> None:
    stage.loaded()
    ran(stage, 2)
    one = rows(timings(stage), "Time by token")[1]
    parts = {name: one[f"{name.replace(' ', '_')}_ms"] for name in PIECES}
    assert parts == {
        "embedding": 0.5, "attention": 3, "mlp": 2.5, "layer rest": 1.5, "norm": 0.25, "head": 2,
        "rest": 0.25,
    }  # fmt: skip
    assert sum(parts.values()) == one["forward_ms"]  # type: ignore[arg-type]
    layers = rows(timings(stage), "Time by layer")
    assert [row["layer"] for row in layers] == [0, 1, "embedding", "norm", "head", "rest"]
    assert (layers[1]["attention_ms"], layers[1]["mlp_ms"], layers[1]["ms"]) == (1, 2, 4)


def test_the_column_under_the_mouse_reads_out_its_split(stage: WindowStage) -> None:
    stage.loaded()
    ran(stage, 2)
    panel = timings(stage)
    line = words(panel)
    over = chart(panel, "Time by token")
    pointer.move(over, over.point_of(1).toPoint())
    assert "Token 2, decode of 1 position: 10 ms" in words(panel)
    assert "attention 3 ms, MLP 2.5 ms, norms and adds 1.5 ms" in words(panel)
    pointer.move(over, QPoint(-5, -5))
    assert words(panel) == line


def test_the_keys_read_out_the_layers_from_embedding_to_head(stage: WindowStage) -> None:
    stage.loaded()
    ran(stage, 2)
    over = chart(timings(stage), "Time by layer")
    over.setFocus()
    told = []
    for _ in range(6):
        QTest.keyClick(over, Qt.Key.Key_Right)
        told.append(line_of(over))
    assert told[0] == "embedding: 0.5 ms"
    assert told[2] == "Layer 1: 4 ms (attention 1 ms, MLP 2 ms, norms and adds 1 ms)"
    assert told[3:] == ["final norm: 0.25 ms", "head: 2 ms", "other: 0.25 ms"]


def test_the_memory_bound_is_a_line_once_it_is_known(stage: WindowStage) -> None:
    stage.loaded()
    ran(stage, 6)
    panel = timings(stage)
    page = panel.page
    assert isinstance(page, PassesPage)
    assert drawn(page.charts.first).notes == ("memory limit not measured yet",)
    asked = stage.engine.last(m.MeasureTraffic)
    facts = {"bytes_per_second": 1e9, "step_bytes": 4_000_000, "threads": 1}
    stage.say(m.Facts(run=asked.run, facts=facts))
    (words,) = drawn(page.charts.first).notes
    assert words.endswith("memory 4 ms")
    x, y = drawn(page.charts.first).series[words]
    assert y.tolist() == [4, 4]
    assert x[0] < 1 < 6 < x[1]  # token 1 to token 6
    assert page.charts.words[2] == "memory limit 4 ms; decode takes 2.5 times as long"


def course(panel: TimingsPanel) -> str:
    """The line on the whole step looked at."""
    page = panel.page
    assert isinstance(page, PassesPage)
    return page.charts.words[3]


def test_a_step_that_was_painted_has_its_display_time(stage: WindowStage) -> None:
    stage.loaded()
    ran(stage, 1)
    panel = timings(stage)
    wait_until(lambda: rows(panel, "Time by token")[0]["display_ms"] != "")
    one = rows(panel, "Time by token")[0]
    parts = ("pick_ms", "hand_over_ms", "display_ms", "step_ms")
    assert all(float(one[name]) >= 0 for name in parts)  # type: ignore[arg-type]
    assert float(one["display_ms"]) > 0  # type: ignore[arg-type]
    told = course(panel)
    assert told.startswith(f"Whole step {ms_text(float(one['step_ms']))}: pass ")  # type: ignore[arg-type]
    painted = ms_text(float(one["display_ms"]))  # type: ignore[arg-type]
    assert f"{told} ms".endswith(f"display {painted}")


def test_a_step_from_a_file_says_that_its_display_is_not_known(stage: WindowStage) -> None:
    stage.loaded()
    ran(stage, 1)
    stage.until_settled()
    trace = stage.state.trace
    assert trace is not None
    copied = replace(trace.steps[0], logits=trace.steps[0].logits.copy())
    stage.session._store.set(trace=replace(trace, steps=(copied,)))
    panel = timings(stage)
    assert rows(panel, "Time by token")[0]["display_ms"] == ""
    assert "did not run in this window" in course(panel)


def test_the_page_is_chosen_in_the_header_and_only_it_is_drawn(stage: WindowStage) -> None:
    stage.loaded()
    ran(stage, 1)
    panel = timings(stage)
    assert panel._chooser.text() == "Per pass"
    other = next(a for a in panel._menu.actions() if a.text() == "With and without cache")
    other.trigger()
    assert isinstance(panel.page, CacheComparisonPage)
    assert panel._chooser.accessibleName() == "Timings shows: With and without cache"
    passes = panel.findChild(PassesPage)
    assert passes is not None
    before = drawn(passes.charts.first).series["MLP"][1].tolist()
    stage.session.reset()
    ran(stage, 2)
    assert drawn(passes.charts.first).series["MLP"][1].tolist() == before
    panel.turn_to(PassesPage)
    assert len(drawn(passes.charts.first).series["MLP"][1]) > len(before)


def ways(panel: TimingsPanel) -> CacheComparisonPage:
    panel.turn_to(CacheComparisonPage)
    page = panel.page
    assert isinstance(page, CacheComparisonPage)
    return page


def facts(cached: list[int], uncached: list[int], same: bool = True) -> dict[str, object]:
    return {
        "prompt": 10, "tokens": len(cached), "ids": [1] * len(cached), "same_tokens": same,
        "cached": {"positions": cached, "ms": [2.0] * len(cached)},
        "uncached": {"positions": uncached, "ms": [3.0] * len(uncached)},
    }  # fmt: skip


def test_the_cache_experiment_runs_on_request_with_progress_and_gives_its_totals(
    stage: WindowStage,
) -> None:
    stage.loaded()
    ran(stage, 1)
    page = ways(timings(stage))
    assert timings(stage).views() == {}
    wait_until(page.run_button.isEnabled)
    QTest.mouseClick(page.run_button, Qt.MouseButton.LeftButton)
    asked = stage.engine.last(CacheExperiment)
    assert asked.tokens == 20
    stage.say(m.Progress(run=asked.run, text="Token 7 of 20", fraction=0.3))
    assert page.progress.isVisible()
    wait_until(lambda: page.progress.value() == 300)  # the lower panels come a little later
    assert not page.run_button.isEnabled()
    assert not page.run_button.geometry().intersects(page.cancel_button.geometry())
    stage.say(m.Facts(run=asked.run, facts=facts([10, *[1] * 19], list(range(10, 30)))))
    assert "390 without a cache, 29 with it. Time: 60 ms without, 40 ms with; the same tokens" in (
        words(timings(stage))
    )
    assert page.run_button.isVisible()
    table = rows(timings(stage), "Positions, with and without cache")
    assert rows(timings(stage), "Time, with and without cache") == table
    assert sum(row["positions_uncached"] for row in table) == 390  # type: ignore[misc]
    assert sum(row["positions_cached"] for row in table) == 29  # type: ignore[misc]


def test_a_step_of_the_experiment_is_read_out(stage: WindowStage) -> None:
    stage.loaded()
    ran(stage, 1)
    page = ways(timings(stage))
    page.run()
    asked = stage.engine.last(CacheExperiment)
    stage.say(m.Facts(run=asked.run, facts=facts([10, 1], [10, 11], same=False)))
    assert "different tokens" in words(timings(stage))
    first = page.charts.first
    first.setFocus()
    for _ in range(2):
        QTest.keyClick(first, Qt.Key.Key_Right)
    line = "Token 2: 11 positions in 3 ms without a cache, 1 in 2 ms with it"
    assert line_of(first) == line
    assert line in words(timings(stage))


def test_the_experiment_can_be_cancelled_and_belongs_to_its_prompt(stage: WindowStage) -> None:
    stage.loaded()
    ran(stage, 1)
    page = ways(timings(stage))
    page.run()
    QTest.mouseClick(page.cancel_button, Qt.MouseButton.LeftButton)
    first = stage.engine.last(CacheExperiment)
    assert stage.engine.last(m.Cancel).run == first.run
    assert page.run_button.isVisible()
    page.run()
    asked = stage.engine.last(CacheExperiment)
    stage.say(m.Facts(run=asked.run, facts=facts([10, 1], [10, 11])))
    assert timings(stage).views()
    stage.session.set_prompt("another")
    ran(stage, 1)
    assert timings(stage).views() == {}


def test_a_slow_layer_is_the_one_column_that_stands_out(stage: WindowStage) -> None:
    stage.loaded()
    stage.session.step()
    run = stage.prompted()
    event = stepped(run, 0)
    slow = with_parts(event.step)
    slow = replace(
        slow, forward_ms=62.0, layer_ms=slow.layer_ms + np.array([0, 50], np.float32),
        attention_ms=slow.attention_ms + np.array([0, 50], np.float32),  # type: ignore[operator]
    )  # fmt: skip
    stage.say(m.Stepped(run=run, step=slow, token=event.token))
    series = drawn(chart(timings(stage), "Time by layer")).series
    places, attention = series["attention"]
    assert places.tolist() == [-1, 0, 1, 2, 3, 4]  # embedding, two layers, norm, head, the rest
    assert attention.tolist() == [0, 2, 51, 0, 0, 0]
    for name in ("MLP", "rest"):
        assert max(series[name][1]) < 10


def test_both_ways_are_drawn_as_they_were_measured(stage: WindowStage) -> None:
    stage.loaded()
    ran(stage, 1)
    page = ways(timings(stage))
    page.run()
    asked = stage.engine.last(CacheExperiment)
    stage.say(m.Facts(run=asked.run, facts=facts([10, 1, 1], [10, 11, 12])))
    positions = drawn(page.charts.first)
    assert positions.series["no cache"][1].tolist() == [10, 11, 12]
    assert positions.series["cache"][1].tolist() == [10, 1, 1]
    assert positions.axes == ("token", "positions")
    assert set(positions.notes) == {"no cache", "cache"}
    assert drawn(page.charts.second).series["cache"][1].tolist() == [2, 2, 2]


def test_with_little_room_one_chart_is_seen_and_a_list_turns_to_the_other(
    stage: WindowStage,
) -> None:
    stage.loaded()
    ran(stage, 3)
    stage.resize(1280, 720)
    page = timings(stage).page
    assert isinstance(page, PassesPage)
    first, second = page.charts.first, page.charts.second
    assert page.charts.seen == (first,)
    across, up = drawn(first).ticks
    assert across == ["1", "2", "3"]
    assert len(up) >= 2
    assert up[0] == "0 ms"
    hidden = export.picture(second)  # of a chart that is not seen
    assert hidden.size() == 2 * first.size()
    middle = 2 * second.point_of(2, 0.5).toPoint()  # layer 1: attention, MLP and the rest
    assert hidden.pixelColor(middle).name() == QColor(LIGHT.decode).name()
    page.charts.show_in_front(1)
    settle()
    assert (first.isVisible(), second.isVisible()) == (False, True)
    assert timings(stage).choices() == {"page": "passes", "chart": 1.0}
    stage.window.docks.enlarge(
        next(d for d in stage.window.docks.docks if d.panel is timings(stage))
    )
    settle()
    assert page.charts.seen == (first, second)
    assert first.isVisible()
    assert second.isVisible()


def test_prompt_tokens_from_the_cache_are_told() -> None:
    run = played(2)
    first = replace(run.steps[0], first_slot=4)  # 3 of 7 slots were read
    figure = timing.chart(replace(run, steps=(first, *run.steps[1:])), 0)
    said = "4 of 7 prompt tokens from the cache; 4 positions computed; without a cache: "
    assert timing_words.positions(figure).startswith(said)
