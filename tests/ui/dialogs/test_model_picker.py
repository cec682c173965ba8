"""The list of models: filter, sort, memory in words, folders, conversions, opening."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog

from explorer.trace.wire import messages as m
from explorer.ui.dialogs.model_picker import ModelPicker
from tests.ui.stage import WindowStage

GIB = 2**30


def row(name: str, size: int, **more: Any) -> dict[str, Any]:
    fields = {
        "name": name, "path": f"/models/{name}", "source": "/models", "architecture": "llama",
        "parameters": size, "bytes": size * 2, "dtype": "bfloat16", "fits": True,
        "memory_bytes": {"float32": size * 5, "bfloat16": size * 5 // 2, "float16": 0},
    }  # fmt: skip
    return {**fields, **more}


FOUND: dict[str, Any] = {
    "models": [
        row("big", 3 * GIB, fits=False),
        row("small", GIB, architecture="gpt2"),
        row("Qwen/tiny", 1000, source="Hugging Face cache", path="/cache/abc"),
    ],
    "folders": ["/models"], "available_bytes": 8 * GIB, "conversions_bytes": 3 * GIB,
}  # fmt: skip


@pytest.fixture
def stage(qapp: QApplication, tmp_path: Path) -> Iterator[WindowStage]:
    stage = WindowStage(qapp, tmp_path)
    stage.loaded()
    yield stage
    stage.close()


def opened(stage: WindowStage, facts: dict[str, Any] = FOUND) -> ModelPicker:
    stage.window.choose_model()
    stage.say(m.Facts(run=stage.engine.last(m.FindModels).run, facts=facts))
    picker = stage.window.findChild(ModelPicker)
    assert isinstance(picker, ModelPicker)
    return picker


def names(picker: ModelPicker) -> list[str]:
    return [str(picker.rows.index(i, 0).data()) for i in range(picker.rows.rowCount())]


def test_the_list_is_asked_for_each_time_it_is_opened(stage: WindowStage) -> None:
    picker = opened(stage)
    assert names(picker) == ["big", "small", "Qwen/tiny"]
    picker.close()
    stage.window.choose_model()
    assert stage.engine.count(m.FindModels) == 2
    assert "Searching for models" in picker.note.text()
    assert names(picker) == ["big", "small", "Qwen/tiny"]  # what is known meanwhile


def test_every_word_of_the_filter_must_occur(stage: WindowStage) -> None:
    picker = opened(stage)
    QTest.keyClicks(picker.filter, "gpt2 SMALL")
    assert names(picker) == ["small"]
    current = picker.current()
    assert current is not None
    assert current.name == "small"
    picker.filter.setText("nothing like it")
    assert names(picker) == []
    assert not picker.open_button.isEnabled()


def test_sizes_sort_as_figures(stage: WindowStage) -> None:
    picker = opened(stage)
    picker.view.sortByColumn(2, Qt.SortOrder.AscendingOrder)
    assert names(picker) == ["Qwen/tiny", "small", "big"]


def test_memory_is_weighed_for_the_dtype_before_anything_is_loaded(stage: WindowStage) -> None:
    picker = opened(stage)
    for part in (
        "15 GiB in float32 (weights 12 GiB, one run 3 GiB)",
        "only 8 GiB",
        "(about 7.5 GiB)",
    ):
        assert part in picker.needs.text()
    assert picker.needs.property("look") == "error"
    picker.dtype.setCurrentText("bfloat16")
    assert "7.5 GiB in bfloat16 (weights 6 GiB, one run 1.5 GiB)" in picker.needs.text()
    assert picker.needs.property("look") == ""
    picker.open_button.click()
    asked = stage.engine.last(m.Load)
    assert (asked.model, asked.dtype) == ("/models/big", "bfloat16")
    assert not picker.isVisible()


def test_pickles_and_own_code_are_told_before_they_are_opened(stage: WindowStage) -> None:
    models = [row("old", 1000, pickle=True), row("own", 1000, own_code=True)]
    picker = opened(stage, {**FOUND, "models": models})
    assert "can contain programs" in picker.needs.text()
    QTest.keyClick(picker.filter, Qt.Key.Key_Down)
    assert "its own program code" in picker.needs.text()
    assert "can contain programs" not in picker.needs.text()


def test_enter_in_the_filter_opens_by_name_what_has_one(stage: WindowStage) -> None:
    picker = opened(stage)
    QTest.keyClicks(picker.filter, "qwen")
    QTest.keyClick(picker.filter, Qt.Key.Key_Return)
    assert stage.engine.last(m.Load).model == "Qwen/tiny"


def test_arrows_in_the_filter_move_in_the_list(stage: WindowStage) -> None:
    picker = opened(stage)
    QTest.keyClick(picker.filter, Qt.Key.Key_Down)
    current = picker.current()
    assert current is not None
    assert current.name == "small"


def test_another_model_can_be_opened_while_one_loads(stage: WindowStage) -> None:
    stage.session.open_model("first")
    run = stage.engine.last(m.Load).run
    picker = opened(stage)
    picker.open_button.click()
    assert stage.engine.last(m.Cancel).run == run
    assert stage.engine.last(m.Load).model == "/models/big"


def test_folders_are_added_and_given_up(
    stage: WindowStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    picker = opened(stage)
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "/more")
    picker.add.click()
    assert stage.engine.last(m.FindModels).add_folder == "/more"
    stage.say(m.Failed(run=stage.engine.last(m.FindModels).run, sentence="There is no folder."))
    assert picker.note.text() == "There is no folder."
    menu = picker.folders.menu()
    assert menu is not None
    menu.actions()[0].trigger()
    assert stage.engine.last(m.FindModels).remove_folder == "/models"


def test_converted_files_can_be_cleared(stage: WindowStage) -> None:
    picker = opened(stage)
    assert "3 GiB" in picker._conversions.text()
    picker.clear.click()
    run = stage.engine.last(m.FindModels)
    assert run.clear_conversions
    stage.say(m.Facts(run=run.run, facts={**FOUND, "conversions_bytes": 0}))
    assert not picker.clear.isVisible()


def test_an_empty_disk_says_what_to_do(stage: WindowStage) -> None:
    picker = opened(stage, {"models": []})
    assert "Add the folder" in picker.note.text()


def test_an_incomplete_download_is_shown_as_one_and_does_not_open(stage: WindowStage) -> None:
    late = row("late-Q4_K_M", 500, parameters=None, memory_bytes={}, fits=None, incomplete=True)
    picker = opened(stage, {**FOUND, "models": [late, *FOUND["models"]]})
    assert [str(picker.rows.index(0, i).data()) for i in (0, 2, 5)] == [
        "late-Q4_K_M", "–", "incomplete"
    ]  # fmt: skip
    assert picker.needs.text() == (
        "The download of late-Q4_K_M is incomplete. Let it finish, or start it again."
    )
    assert not picker.open_button.isEnabled()
    chosen: list[str] = []
    picker.chosen.connect(lambda *what: chosen.append(what[0]))
    QTest.keyClick(picker.filter, Qt.Key.Key_Return)
    assert chosen == []
    picker.view.sortByColumn(2, Qt.SortOrder.AscendingOrder)
    assert names(picker)[0] == "late-Q4_K_M"


LONG = "/models/Meta-Llama-3.1-8B-Instruct-abliterated-and-more-words-Q5_K_M.gguf"


def test_a_long_name_keeps_its_quantisation(stage: WindowStage) -> None:
    picker = opened(stage)
    assert picker.view.textElideMode() == Qt.TextElideMode.ElideMiddle
    stage.session.open_model(LONG)
    stage.answer_load()
    name = stage.window.topbar._model
    for _ in range(4):
        stage.look.zoom(1)
        stage.paint()
        assert name.text().endswith("Q5_K_M")
        assert name.text().startswith("Meta-")
        assert name.sizeHint().width() <= name.maximumWidth()
    assert name.toolTip() == LONG


def gguf_row() -> dict[str, Any]:
    memory = {"float32": 5 * GIB, "bfloat16": 3 * GIB, "float16": 3 * GIB, "as-is": 2 * GIB}
    return row("small.gguf", GIB, dtype="Q4_1 79 %, Q8_0 21 %", memory_bytes=memory)


def test_a_gguf_file_opens_as_it_is_or_converted_in_one_click(stage: WindowStage) -> None:
    picker = opened(stage, {**FOUND, "models": [gguf_row(), row("big", GIB)]})
    assert "2 GiB as it is (Q4_1 79 %, Q8_0 21 %), or 5 GiB in float32" in picker.needs.text()
    button = {one.text(): one for one in (picker.open_button, picker.other_button)}
    button["Open as it is"].click()
    assert (stage.engine.last(m.Load).model, stage.engine.last(m.Load).form) == (
        "/models/small.gguf", "as-is",
    )  # fmt: skip
    stage.window.choose_model()
    button["Open as float32"].click()
    assert stage.engine.last(m.Load).form == "float32"
    stage.window.choose_model()
    QTest.keyClick(picker.filter, Qt.Key.Key_Down)
    assert not picker.other_button.isVisible(), "a folder has one form"
    picker.open_button.click()
    assert stage.engine.last(m.Load).form == ""


def test_keys_are_kept_as_chosen_in_a_file_that_opens_as_it_is(stage: WindowStage) -> None:
    picker = opened(stage, {**FOUND, "models": [gguf_row(), row("big", GIB)]})
    button = {one.text(): one for one in (picker.open_button, picker.other_button)}
    picker.cache_type_k.setCurrentText("q8_0")
    button["Open as it is"].click()
    assert stage.engine.last(m.Load).cache_type_k == "q8_0"
    stage.window.choose_model()
    picker.cache_type_k.setCurrentText("q8_0")
    button["Open as float32"].click()
    assert stage.engine.last(m.Load).cache_type_k == "f16"
    stage.window.choose_model()
    QTest.keyClick(picker.filter, Qt.Key.Key_Down)
    assert not picker.cache_type_k.isVisible(), "a folder is not run by llama.cpp"


def test_layers_go_to_a_gpu_as_chosen(stage: WindowStage) -> None:
    models = [gguf_row(), row("big", GIB)]
    picker = opened(stage, {**FOUND, "models": models, "gpu": True})
    assert "GPU" not in picker.needs.text()
    picker.gpu_layers.setValue(20)
    picker.open_button.click()
    assert stage.engine.last(m.Load).gpu_layers == 20
    stage.window.choose_model()
    picker.gpu_layers.setValue(20)
    picker.other_button.click()
    assert stage.engine.last(m.Load).gpu_layers == 0, "in float32"
    stage.window.choose_model()
    QTest.keyClick(picker.filter, Qt.Key.Key_Down)
    assert not picker.gpu_layers.isVisible(), "a folder is not run by llama.cpp"


def test_a_large_model_is_spread_as_chosen_and_the_next_one_is_not(stage: WindowStage) -> None:
    picker = opened(stage, {**FOUND, "models": [gguf_row(), row("big", GIB)]})
    picker.device.setCurrentText("auto:2GB")
    picker.open_button.click()
    assert stage.engine.last(m.Load).device == "cpu", "llama.cpp decides by itself"
    stage.window.choose_model()
    QTest.keyClick(picker.filter, Qt.Key.Key_Down)
    picker.device.setCurrentText("auto:2GB")
    picker.open_button.click()
    assert stage.engine.last(m.Load).device == "auto:2GB"
    stage.window.files.open("/models/other")
    assert stage.engine.last(m.Load).device == "cpu"


def test_without_a_gpu_no_layers_are_offered_and_it_says_why(stage: WindowStage) -> None:
    picker = opened(stage, {**FOUND, "models": [gguf_row()]})
    assert not picker.gpu_layers.isVisible()
    assert "llama.cpp has no GPU support here" in picker.needs.text()
    picker.open_button.click()
    assert stage.engine.last(m.Load).gpu_layers == 0


def test_a_file_too_large_for_float32_is_offered_as_it_is(stage: WindowStage) -> None:
    models = [{**gguf_row(), "fits": False}]
    picker = opened(stage, {**FOUND, "models": models, "available_bytes": int(2.5 * GIB)})
    assert picker.rows.index(0, 5).data() == "as it is"
    assert "Only 2.5 GiB of memory is free. Open it as it is." in picker.needs.text()
    assert picker.needs.property("look") == ""


def test_a_recent_file_opens_as_it_was_opened_last(stage: WindowStage) -> None:
    stage.window.files.open("/models/small.gguf", form="as-is")
    stage.window.files.open("/models/other.gguf")
    assert stage.engine.last(m.Load).form == ""
    stage.window.files.open("/models/small.gguf")
    assert stage.engine.last(m.Load).form == "as-is"
    assert stage.engine.last(m.Load).anew
