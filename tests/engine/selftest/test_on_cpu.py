"""A device that calculates wrongly is found by the same model on the processor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import torch

from explorer.engine import device_clock
from explorer.engine.loading.loading import load
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import on_cpu, selfcheck, selftest
from explorer.trace.card import Check
from explorer.trace.request import RunRequest
from tests.engine import folders


@pytest.fixture(scope="module")
def on_gpu(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """A model whose card says that it is on a GPU, though it is not."""
    folder = folders.write_folder(
        Path(str(tmp_path_factory.mktemp("m"))) / "tiny", folders.model(eos_token_id=None)
    )
    loaded = load(str(folder))
    card = msgspec.structs.replace(loaded.card, device="cuda")
    runner = Runner(replace(loaded, card=card))
    selftest.run(runner)
    return runner


def compared(runner: Runner, request: RunRequest) -> Check | None:
    checks = {check.name: check for check in selfcheck.check(runner, request, (5, 6))}
    return checks.get("same_on_cpu")


def test_a_sound_device_gives_the_same_logits(on_gpu: Runner) -> None:
    check = compared(on_gpu, RunRequest(prompt="the cat sat on"))
    assert check is not None
    assert check.passed
    assert check.measured <= 1e-5


@pytest.mark.parametrize("wrong", [1.01, float("nan")])
def test_one_wrong_weight_is_found(on_gpu: Runner, wrong: float) -> None:
    weight = on_gpu.layers[1].mlp.down_proj.weight
    kept = weight.detach().clone()
    weight.mul_(wrong)
    try:
        check = compared(on_gpu, RunRequest(prompt="the cat sat on"))
    finally:
        weight.copy_(kept)
    assert check is not None
    assert not check.passed


def test_only_what_plain_transformers_can_repeat_is_compared(
    on_gpu: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = "the cat sat on"
    assert compared(on_gpu, RunRequest(prompt=prompt, causal_mask=False)) is None
    here = msgspec.structs.replace(on_gpu.loaded.card, device="cpu")
    assert not on_cpu.comparable(Runner(replace(on_gpu.loaded, card=here)), RunRequest())
    monkeypatch.setattr(on_cpu, "MOST_BYTES", 1000)
    assert not on_cpu.comparable(on_gpu, RunRequest())


@pytest.mark.parametrize("device", ["cuda:1", "mps"])
def test_clocks_wait_for_the_device_they_time(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda one: waited.append(str(one)))
    monkeypatch.setattr(torch.mps, "synchronize", lambda: waited.append("mps"))
    device_clock.finish(torch.device(device))
    assert waited == [device]
