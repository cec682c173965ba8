"""The KV cache panel: kinds of layers, what sharing saves, what the cache would take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QLabel

from explorer.figures.cost import policies
from explorer.trace.experiments import ComparePolicies, ReadSlot
from explorer.trace.files import dxt
from explorer.trace.interventions.context_policy import USUAL, ContextPolicy
from explorer.trace.wire import messages as m
from explorer.ui.access.accessible import line_of
from explorer.ui.panels.kv_cache.estimate_page import EstimatePage
from explorer.ui.panels.kv_cache.layers_page import LayersPage
from explorer.ui.panels.kv_cache.panel import KvCachePanel
from explorer.ui.panels.kv_cache.policies_page import PoliciesPage
from explorer.ui.panels.kv_cache.position_page import PositionPage
from tests.session.answers import ANSWERS
from tests.session.saving.test_trace_files import made_trace
from tests.session.saving.test_trace_files import settle as read
from tests.session.scripted import card
from tests.ui import pointer
from tests.ui.stage import WindowStage
from tests.ui.waiting import resize, show, wait_until

MIXED = {"kv_bytes_per_token": 64, "layer_kinds": ("sliding", "full"), "windows": (4, 0)}


def loaded(stage: WindowStage, **more: Any) -> KvCachePanel:
    stage.session.start_engine()
    stage.session.open_model("tiny")
    stage.session.set_prompt("x")
    stage.drain()
    stage.answer_load(**{"kv_bytes_per_token": 64, **more})
    return next(p for p in stage.window.docks.panels if isinstance(p, KvCachePanel))


def words(panel: KvCachePanel) -> str:
    return "\n".join(label.text() for label in panel.findChildren(QLabel) if label.isVisible())


def rows(panel: KvCachePanel, view: str) -> list[tuple[object, ...]]:
    table = panel.views()[view].table
    assert table is not None
    return [tuple(row) for row in table()]


def test_kinds_of_layers_are_told_apart(stage: WindowStage) -> None:
    panel = loaded(stage, **MIXED)
    stage.ran(3)
    assert rows(panel, "Cache by layer")[1:] == [(0, "sliding", 160, 160), (1, "full", 160, 160)]
    growth = rows(panel, "Cache growth")
    assert growth[0] == ("step", "tokens", "bytes", "sliding_bytes", "full_bytes")
    assert growth[3] == (2, 5, 320, 160, 160)
    page = panel.page
    assert isinstance(page, LayersPage)
    drawn = page.charts.first.drawn
    assert drawn is not None
    kept = "formula, every token kept"
    assert drawn.legend == ("sliding: 1 × 160 bytes", "full: 1 × 160 bytes", kept)
    assert drawn.series["measured"][1].tolist() == [160, 160]
    assert drawn.series[kept][1].tolist() == [160] * 4  # a dash across each column
    grown = page.charts.second.drawn
    assert grown is not None
    for name in ("sliding", "full"):
        assert grown.series[name][1].tolist() == [96, 128, 160]
    assert grown.ticks[1][0] == "0 bytes"


def test_a_larger_panel_tells_what_sharing_saves_and_what_context_is_left(
    stage: WindowStage,
) -> None:
    panel = loaded(stage)
    stage.ran(2)
    dock = next(d for d in stage.window.docks.docks if d.panel is panel)
    dock.setFloating(True)
    show(dock)
    resize(dock, 500, 300)
    assert "(GQA): 256 bytes instead of 512 bytes" in words(panel)
    assert "context left: 60 of 64 tokens" in words(panel)


def test_what_if_is_computed_without_a_run_and_called_computed(stage: WindowStage) -> None:
    panel = loaded(stage)
    asked = len(stage.engine.asked)
    panel.turn_to(EstimatePage)
    page = panel.page
    assert isinstance(page, EstimatePage)
    assert "By formula: 4,096 bytes (4 KiB)" in words(panel)  # 64 bytes × its context of 64
    assert "with keys for all 2 heads (MHA): 8 KiB" in words(panel)
    page.dtype.setCurrentText("bfloat16")
    page.batch.setValue(3)
    page.length.setValue(10)
    assert "By formula: 960 bytes" in words(panel)
    assert rows(panel, "Cache by length, by formula")[-1] == ("bfloat16", 3, 10, 960)
    page.length.setValue(100)
    assert "longer than the context (64 tokens)" in words(panel)
    assert len(stage.engine.asked) == asked
    drawn = page.chart.drawn
    assert drawn is not None
    assert drawn.series["computed"][0].tolist() == [12, 25, 37, 50, 62, 75, 87, 100]
    assert drawn.series["computed"][1].tolist() == [96 * n for n in drawn.series["computed"][0]]
    pointer.move(page.chart, page.chart.point_of(0).toPoint())
    assert line_of(page.chart) == "12 tokens: 1,152 bytes (1.12 KiB) by formula"


def test_what_if_begins_anew_with_another_model(stage: WindowStage) -> None:
    panel = loaded(stage)
    panel.turn_to(EstimatePage)
    page = panel.page
    assert isinstance(page, EstimatePage)
    page.length.setValue(7)
    stage.session.open_model("other")
    stage.drain()
    run = stage.engine.last(m.Load).run
    stage.say(m.Loaded(run=run, card=card("other", context=256, kv_bytes_per_token=64)))
    assert page.length.value() == 256


def test_without_a_model_it_says_what_to_do(stage: WindowStage) -> None:
    panel = next(p for p in stage.window.docks.panels if isinstance(p, KvCachePanel))
    panel.turn_to(EstimatePage)
    assert panel.empty
    assert "Open a model" in words(panel)


def values(count: int) -> list[dict[str, object]]:
    part = {"heads": 1, "width": 4, "numbers": np.arange(4, dtype="<f4").tobytes()}
    return [{"key": part, "value": part}] * (count - 1) + [{"reason": "a state of fixed size"}]


def test_keys_are_there_at_once_and_values_when_they_were_read(stage: WindowStage) -> None:
    panel = loaded(stage)
    stage.ran(2)
    panel.turn_to(PositionPage)
    page = panel.page
    assert isinstance(page, PositionPage)
    page.slot.setValue(3)
    trace = stage.state.trace
    assert trace is not None
    recorded = trace.steps[1].layers[1].keys
    assert recorded is not None
    table = rows(panel, "Keys and values")
    assert [row[4] for row in table[1:] if row[:3] == ("key", 1, 0)] == recorded[0, 0].tolist()
    assert "values are not stored" in words(panel)
    wait_until(page.read_button.isEnabled)
    page.read_button.click()
    asked = stage.engine.last(ReadSlot)
    assert (asked.slot, asked.chosen) == (3, trace.chosen_ids[:1])
    stage.say(m.Facts(run=asked.run, facts={"slot": 3, "layers": values(2)}))
    table = rows(panel, "Keys and values")
    assert [row[4] for row in table if row[0] == "value"] == [0, 1, 2, 3]
    pointer.move(page.view, QPoint(page.view.width() - 4, page.view.height() - 6))
    assert line_of(page.view) == "Layer 1: a state of fixed size"
    page.slot.setValue(0)
    assert not any(row[0] == "value" for row in rows(panel, "Keys and values"))


def test_values_are_read_by_the_model_of_the_run_alone(stage: WindowStage, tmp_path: Path) -> None:
    panel = loaded(stage)
    stage.ran(2)
    panel.turn_to(PositionPage)
    page = panel.page
    assert isinstance(page, PositionPage)
    wait_until(page.read_button.isEnabled)
    trace = made_trace()
    asked = msgspec.structs.replace(trace.request, model="other")
    dxt.save(replace(trace, request=asked, card=card("other")), tmp_path / "run.dxt")
    stage.session.saving.open(tmp_path / "run.dxt")
    read(stage)
    stage.paint()
    assert not page.read_button.isEnabled()
    assert "Only the model of this run can read its values" in page.read_button.toolTip()


def test_the_position_follows_the_key_under_the_cursor(stage: WindowStage) -> None:
    panel = loaded(stage)
    stage.ran(2)
    panel.turn_to(PositionPage)
    page = panel.page
    assert isinstance(page, PositionPage)
    stage.session.select(key=2)
    assert page.slot.value() == 2
    assert "Position 2 p2" in words(panel)


def test_one_text_under_two_context_policies(stage: WindowStage) -> None:
    panel = loaded(stage)
    stage.ran(2)
    panel.turn_to(PoliciesPage)
    page = panel.page
    assert isinstance(page, PoliciesPage)
    wait_until(page.run_button.isEnabled)
    page.tokens.setValue(9)
    page.choices_of[1].setCurrentIndex(2)
    page.run_button.click()
    asked = stage.engine.last(ComparePolicies)
    assert asked.policies == (USUAL, ContextPolicy(name="sinks", tokens=9, sinks=4))
    assert stage.state.trace is not None
    assert asked.chosen == stage.state.trace.chosen_ids[:1]
    stage.say(m.Facts(run=asked.run, facts=ANSWERS[ComparePolicies]))
    said = words(panel)
    assert "Mean: all tokens, 2 nats, 192 bytes, attention to the first token 30.0 %" in said
    assert "last 2, 3 nats, 128 bytes, attention to the first token 10.0 %" in said
    table = rows(panel, "Surprisal under two context policies")
    assert table[1:] == [(1, 1.5, 1.5), (2, 2.5, 4.5)]
    wait_until(lambda: page.chart.drawn is not None)
    drawn = page.chart.drawn
    assert drawn is not None
    assert list(drawn.series) == ["all tokens", "last 2"]
    page.run_button.click()
    facts = msgspec.json.decode(msgspec.json.encode(ANSWERS[ComparePolicies]))
    facts["sides"][0]["nats"][1] = np.inf
    stage.say(m.Facts(run=stage.engine.last(ComparePolicies).run, facts=facts))
    assert "Mean: all tokens, 1.5 nats, without 1 token of probability 0, 192" in words(panel)


def test_a_curve_has_a_gap_where_a_surprisal_is_infinite() -> None:
    nats = np.ones(100)
    nats[50] = np.inf
    found = policies.smoothed(nats.tolist())
    gap = np.zeros(100, bool)
    gap[50 : 50 + policies.MEAN_OVER] = True
    np.testing.assert_array_equal(np.isnan(found), gap)
    np.testing.assert_allclose(found[~gap], 1)


def test_a_curve_is_a_mean_over_the_tokens_before() -> None:
    nats = np.arange(100.0)
    found = policies.smoothed(nats.tolist())
    expected = [nats[max(0, i - policies.MEAN_OVER + 1) : i + 1].mean() for i in range(100)]
    np.testing.assert_allclose(found, expected)
