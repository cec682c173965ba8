"""The Model panel: recipe, what works, how text is read; asked for once, exact figures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel

from explorer.figures.inside.model_map import MapPart
from explorer.trace.card import Capability
from explorer.trace.inside.structure import ReadStructure
from explorer.trace.wire import messages as m
from explorer.ui.access.accessible import line_of
from explorer.ui.look.theme import THEMES
from explorer.ui.panels.model import part_words
from explorer.ui.panels.model.panel import ModelPanel
from tests.figures.inside.structures import facts
from tests.ui.stage import WindowStage

LEFT = Qt.MouseButton.LeftButton
RECIPE: dict[str, Any] = {
    "model": "tiny", "layers": 2, "hidden_size": 8, "parameters": 124_439_808,
    "parameters_rule_of_thumb": 123_532_032, "tying_saves": 38_597_376,
    "kv_bytes_per_token": {"float32": 73_728, "bfloat16": 36_864},
    "recipe": ["12 layers, each 768 numbers wide.", "Norm: LayerNorm <b>&."],
    "compare": [
        {"name": "GPT-1", "year": 2018, "layers": 12, "hidden_size": 768, "parameters": 116534784}
    ],
}  # fmt: skip


@pytest.fixture
def stage(qapp: QApplication, tmp_path: Path) -> Iterator[WindowStage]:
    stage = WindowStage(qapp, tmp_path)
    yield stage
    stage.look.set_theme("light")
    stage.close()


def opened(stage: WindowStage) -> ModelPanel:
    dock = next(d for d in stage.window.docks.docks if d.panel.ID == "model")
    dock.toggleViewAction().trigger()
    stage.paint()
    assert isinstance(dock.panel, ModelPanel)
    return dock.panel


def words(panel: ModelPanel) -> str:
    return "\n".join(label.text() for label in panel.findChildren(QLabel) if label.isVisible())


def described(stage: WindowStage) -> None:
    stage.say(m.Facts(run=stage.engine.last(m.Inspect).run, facts=RECIPE))


def test_a_recipe_is_asked_for_when_the_panel_is_seen_and_no_earlier(stage: WindowStage) -> None:
    stage.loaded()
    assert stage.engine.count(m.Inspect) == 0
    panel = opened(stage)
    assert stage.engine.count(m.Inspect) == 1
    assert "Reading the config" in words(panel)
    described(stage)
    shown = words(panel)
    assert "12 layers, each 768 numbers wide." in shown
    assert "<b>Norm</b>: LayerNorm &lt;b&gt;&amp;." in shown  # never as markup of its own
    assert "124,439,808" in shown
    assert "116,534,784" in shown
    assert "73,728" in shown
    assert stage.engine.count(m.Inspect) == 1


def test_what_the_self_test_found_has_a_mark_and_a_word(stage: WindowStage) -> None:
    stage.loaded()
    found = (
        Capability(name="cache", offered=True, words="cached steps equal uncached ones"),
        Capability(name="undo", offered=False, words="the window cannot be cut back"),
        Capability(name="left_padding", offered=False, words="not offered: no padding token"),
    )
    stage.session.open_model("other")
    stage.answer_load(
        name="other", capabilities=found, warnings=("3 tensors are not used.",),
        source="from Q4_1 (dequantised)", bos_policy="<s> is added in front of the text.",
        pad_note="The end token also serves as padding", missing_bytes=(4, 255), eos_ids=(2, 7),
    )  # fmt: skip
    shown = words(opened(stage))
    assert "✓" in shown
    assert "Cached steps equal uncached ones." in shown
    assert "<b>Not offered</b>: The window cannot be cut back." in shown
    assert "<b>Not offered</b>: No padding token." in shown
    assert "3 tensors are not used." in shown
    assert "from Q4_1 (dequantised)" in shown
    assert "&lt;s&gt; is added in front of the text." in shown
    assert "2 byte values are missing from the vocabulary: 0x04, 0xFF." in shown
    assert "End tokens: 2, 7." in shown


def test_an_earlier_test_says_its_day(stage: WindowStage) -> None:
    stage.loaded()
    panel = opened(stage)
    assert "tested when it was opened" not in words(panel)  # nothing was found out
    stage.session.open_model("other")
    found = (Capability(name="cache", offered=True, words="x"),)
    stage.answer_load(name="other", capabilities=found)
    assert "(tested when it was opened)" in words(panel)
    stage.session.open_model("other")
    stage.answer_load(name="other", capabilities=found, tested="2026-11-29")
    assert "(tested on 2026-11-29; unchanged since)" in words(panel)


def test_another_model_takes_the_recipe_away(stage: WindowStage) -> None:
    stage.loaded()
    panel = opened(stage)
    described(stage)
    stage.session.open_model("other")
    stage.answer_load(name="other")
    assert "124,439,808" not in words(panel)
    assert stage.engine.count(m.Inspect) == 2
    run = stage.engine.last(m.Inspect).run
    stage.say(m.Failed(run=run, sentence="No llama model can be built from this config.json."))
    assert "No llama model can be built" in words(panel)
    assert stage.state.error == ""


def test_of_a_file_as_it_is_the_card_tells_the_sizes(stage: WindowStage) -> None:
    stage.loaded()
    panel = opened(stage)
    stage.session.open_model("a.gguf", form="as-is")
    stage.drain()
    sizes = {"layers": 30, "hidden_size": 576, "parameters": 134_515_008, "context": 8192}
    stage.answer_load(name="a", form="as-is", heads=9, kv_heads=3, head_dim=64, **sizes)
    run = stage.engine.last(m.Inspect).run
    stage.say(m.Failed(run=run, sentence="No such model is known."))
    shown = words(panel)
    assert "30 layers of width 576, 134,515,008 parameters." in shown
    assert "9 heads of 64 numbers, 3 of keys and values." in shown
    assert "Built for texts of up to 8,192 tokens." in shown
    assert "No such model is known." in shown


def test_the_table_holds_exact_figures_and_every_sentence(stage: WindowStage) -> None:
    stage.loaded()
    panel = opened(stage)
    described(stage)
    table = panel.views()["Model card"].table
    assert table is not None
    rows = [tuple(row) for row in table()]
    assert ("parameters", 124_439_808) in rows
    assert ("tying_saves", 38_597_376) in rows
    assert ("recipe", "12 layers, each 768 numbers wide.") in rows
    assert ("kv_bytes_per_token bfloat16", 36_864) in rows


def test_marks_take_the_colours_of_the_theme(stage: WindowStage) -> None:
    stage.loaded()
    stage.session.open_model("other")
    good = Capability(name="cache", offered=True, words="x")
    stage.answer_load(name="other", capabilities=(good,))
    panel = opened(stage)
    for theme in THEMES.values():
        stage.look.set_theme(theme.name)
        stage.paint()
        assert theme.good in words(panel)


def pictured(stage: WindowStage) -> ModelPanel:
    stage.loaded().ran(1)
    panel = opened(stage)
    stage.say(m.Facts(run=stage.engine.last(ReadStructure).run, facts=facts()))
    return panel


def test_the_parts_are_looked_at_when_the_panel_is_seen_with_a_run(stage: WindowStage) -> None:
    stage.loaded()
    panel = opened(stage)
    assert stage.engine.count(ReadStructure) == 0
    assert "Press Step (Space) to see the parts" in words(panel)
    stage.ran(1)
    asked = stage.engine.last(ReadStructure)
    stage.say(m.Facts(run=asked.run, facts=facts()))
    assert stage.engine.count(ReadStructure) == 1
    assert [row.kind for row in panel.picture.rows][:3] == ["embedding", "norm", "attention"]
    assert "Picture of the model" in panel.views()


def test_a_layer_and_a_part_that_are_clicked_are_shown(stage: WindowStage) -> None:
    panel = pictured(stage)
    picture = panel.picture
    told: list[str] = []
    panel.wanted.connect(told.append)
    QTest.mouseClick(picture, LEFT, pos=picture.square_of(1).center().toPoint())
    assert (stage.state.selection.layer, told) == (1, ["block"])
    opened(stage)
    assert [row.kind for row in picture.rows][3] == "experts"
    QTest.mouseClick(picture, LEFT, pos=picture.box_of(2).center().toPoint())
    assert told == ["block", "attention"]


def test_enter_opens_the_lit_layer(stage: WindowStage) -> None:
    panel = pictured(stage)
    told: list[str] = []
    panel.wanted.connect(told.append)
    panel.picture.setFocus()
    QTest.keyClick(panel.picture, Qt.Key.Key_Return)
    assert told == ["block"]


def test_keys_read_the_parts_and_go_along_the_layers(stage: WindowStage) -> None:
    panel = pictured(stage)
    panel.picture.setFocus()
    for _ in range(3):
        QTest.keyClick(panel.picture, Qt.Key.Key_Down)
    assert line_of(panel.picture).startswith("Attention")
    assert "2 heads × 4, 1 KV heads" in line_of(panel.picture)
    assert "reads ln1" not in line_of(panel.picture)  # it is the part above
    QTest.keyClick(panel.picture, Qt.Key.Key_Right)
    assert stage.state.selection.layer == 1
    stage.paint()
    QTest.keyClick(panel.picture, Qt.Key.Key_Down)
    assert line_of(panel.picture).startswith("Experts (MoE). reads ln1")


def test_where_there_is_little_room_figures_are_rounded(stage: WindowStage) -> None:
    stage.loaded()
    card = stage.state.card
    assert card is not None
    part = MapPart("mlp", "mlp", 0, shape=(576,), parameters=2_654_208, bytes=10 << 20, ms=1.5)
    assert part_words.figures(part, card, ()) == "576 · 2,654,208 parameters · 10 MiB · 1.5 ms"
    assert part_words.figures(part, card, (), short=True) == "576 · 2.65 M · 10 MiB · 1.5 ms"


def test_where_the_parts_cannot_be_seen_the_reason_is_told(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    panel = opened(stage)
    run = stage.engine.last(ReadStructure).run
    stage.say(m.Failed(run=run, sentence="This model's layers don't pass one stream on."))
    assert "don't pass one stream on" in words(panel)
    assert "Picture of the model" not in panel.views()
