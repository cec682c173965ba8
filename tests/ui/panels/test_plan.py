"""The Plan panel: asks for what is set, shows every device, and says why there is no plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from PySide6.QtWidgets import QApplication

from explorer.trace.cost.model_plan import (
    DevicePlan,
    LayerCache,
    ModelPlan,
    Split,
    SplitPlan,
    StepBound,
)
from explorer.trace.wire import messages as m
from explorer.ui.panels.plan import PlanPanel
from tests.ui.stage import WindowStage


def device(number: int, split: Split, **changes: Any) -> DevicePlan:
    known = DevicePlan(
        device=f"GPU {number}", split=split, layers=(number, number + 1), weights_bytes=4096,
        cache_bytes=2048, activation_bytes=1024, captured_bytes=512, total_bytes=7680,
        bytes_read=6144, memory_bytes=8192, fits=True,
    )  # fmt: skip
    return msgspec.structs.replace(known, **changes)


PLAN = ModelPlan(
    model="far", architecture="llama", parameters=1_234, tokens=77, batch=2, dtype="bfloat16",
    weights_bytes=8192, cache_bytes=4096, activation_bytes=1024, total_bytes=14_336,
    cache_bytes_per_layer=(
        LayerCache(layer=0, kind="sliding", bytes=1024),
        LayerCache(layer=1, kind="full", bytes=3072),
    ),
    captured_bytes={"bfloat16/every layer": 1024}, step_bound=StepBound(bytes_read=12_288),
    splits=(
        SplitPlan(split="tensor", possible=False, reason="3 heads can't be divided."),
        SplitPlan(split="pipeline", possible=True),
    ),
    devices=(device(0, "pipeline"), device(1, "pipeline", total_bytes=9000, fits=False)),
)  # fmt: skip


@pytest.fixture(scope="module")
def stage(qapp: QApplication, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WindowStage]:
    stage = WindowStage(qapp, tmp_path_factory.mktemp("plan"))
    stage.loaded()
    yield stage
    stage.close()


@pytest.fixture(scope="module")
def panel(stage: WindowStage) -> PlanPanel:
    dock = next(d for d in stage.window.docks.docks if d.panel.ID == "plan")
    dock.toggleViewAction().trigger()
    stage.paint()
    assert isinstance(dock.panel, PlanPanel)
    return dock.panel


def answer(stage: WindowStage, plan: ModelPlan) -> None:
    stage.say(m.Facts(run=stage.engine.last(m.PlanModel).run, facts=msgspec.to_builtins(plan)))


def test_the_open_model_is_named_and_what_is_set_is_asked_for(
    stage: WindowStage, panel: PlanPanel
) -> None:
    assert panel.model.text() == stage.session.state.opened[0].model
    panel.model.setText(" far ")
    panel.tokens.setValue(77)
    panel.batch.setValue(2)
    panel.dtype.setCurrentText("bfloat16")
    panel.button.click()
    asked = stage.engine.last(m.PlanModel)
    assert (asked.model, asked.tokens, asked.batch, asked.dtype) == ("far", 77, 2, "bfloat16")
    assert (asked.gpus, asked.gpu_memory, asked.bytes_per_second) == (0, 0, 0.0)
    panel.gpus.setValue(2)
    panel.memory.setValue(80)
    panel.speed.setValue(2000)
    assert not panel.button.isEnabled()
    answer(stage, PLAN)
    panel.button.click()
    asked = stage.engine.last(m.PlanModel)
    assert (asked.gpus, asked.gpu_memory, asked.bytes_per_second) == (2, 80 * 10**9, 2e12)
    answer(stage, PLAN)


def test_every_device_has_a_row_and_the_split_that_is_impossible_its_reason(
    stage: WindowStage, panel: PlanPanel
) -> None:
    panel.button.click()
    answer(stage, PLAN)
    cells = [
        [panel.table.item(row, column).text() for column in range(4)]  # type: ignore[union-attr]
        for row in range(panel.table.rowCount())
    ]
    assert cells == [
        ["pipeline GPU 0", "yes", "7.5 KiB", "4 KiB"],
        ["pipeline GPU 1", "no", "8.79 KiB", "4 KiB"],
    ]
    for said in ("far (llama, 1,234 parameters)", "1 sliding layer 1 KiB, 1 full layer 3 KiB",
                 "3 heads can't be divided."):  # fmt: skip
        assert said in panel.words.text()
    rows = list(panel.views().popitem()[1].table())  # type: ignore[misc]
    assert rows[1][:5] == ("pipeline", "GPU 0", 0, 0, 4096)


def test_why_there_is_no_plan_is_said_and_the_last_one_stays(
    stage: WindowStage, panel: PlanPanel
) -> None:
    panel.button.click()
    answer(stage, PLAN)
    panel.button.click()
    refused = m.Failed(run=stage.engine.last(m.PlanModel).run, sentence="There is no model far.")
    stage.say(refused)
    assert panel.words.text() == "There is no model far."
    assert panel.table.rowCount() == 2
    panel.model.setText("")
    panel.button.click()
    assert "Name a model" in panel.words.text()
    assert stage.session.state.error == ""
    assert panel.button.isEnabled()
