"""The status bar: what the open model is stored as, beside what it runs in."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel

from explorer.trace.wire import messages as m
from tests.ui.stage import WindowStage


@pytest.mark.parametrize(
    ("source", "stored", "words"),
    [
        ("safetensors", "float32", "safetensors · float32 · cpu"),
        ("safetensors", "bfloat16", "safetensors · stored as bfloat16 · run in float32 · cpu"),
        ("from Q4_1 79 %, Q8_0 21 % (dequantised)", "Q4_1 79 %, Q8_0 21 %",
         "from Q4_1 79 %, Q8_0 21 % (dequantised) · run in float32 · cpu"),
        ("safetensors", "", "safetensors · float32 · cpu"),
    ],
)  # fmt: skip
def test_the_stored_dtype_is_told(stage: WindowStage, source: str, stored: str, words: str) -> None:
    stage.session.start_engine()
    stage.session.open_model("tiny")
    stage.drain()
    stage.answer_load(source=source, stored_dtype=stored)
    stage.paint()
    label = stage.window.status._model
    assert label.text() == words
    assert "KV heads" in label.toolTip()
    assert label.minimumSizeHint().width() < 40, "it must not widen the window"


def test_a_step_that_waits_for_another_model_is_said(stage: WindowStage) -> None:
    stage.loaded()
    stage.session.open_model("another")

    def said() -> str:
        stage.paint()
        return " ".join(label.text() for label in stage.window.status.findChildren(QLabel))

    assert "another" in said()
    assert "Your step" not in said()
    stage.session.step()
    assert "Your step runs once the model is open." in said()
    stage.say(m.Progress(run=stage.engine.last(m.Load).run, text="Reading", fraction=0.5))
    assert "Reading. Your step runs once the model is open." in said()
    stage.session.cancel()
    assert "Your step" not in said()


def test_a_file_that_runs_as_it_is_says_by_what(stage: WindowStage) -> None:
    stage.session.start_engine()
    stage.session.open_model("a.gguf", form="as-is")
    stage.drain()
    stage.answer_load(source="llama.cpp", stored_dtype="Q4_1", dtype="Q4_1", form="as-is")
    stage.paint()
    said = {label.text() for label in stage.window.status.findChildren(QLabel)}
    assert "run as it is by llama.cpp (Q4_1) · cpu" in said
    stage.session.open_model("b.gguf", form="as-is", cache_type_k="q8_0", gpu_layers=99)
    stage.drain()
    more = {"layers": 2, "cache_type_k": "q8_0", "gpu_layers": 99}
    stage.answer_load(source="llama.cpp", stored_dtype="Q4_1", form="as-is", **more)
    stage.paint()
    said = {label.text() for label in stage.window.status.findChildren(QLabel)}
    words = "run as it is by llama.cpp (Q4_1) · keys in q8_0 · 2 of 2 layers on a GPU · cpu"
    assert words in said
