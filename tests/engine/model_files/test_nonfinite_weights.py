"""Weights that are NaN or infinite are told, fail the check, and give a reason instead of a map."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from explorer.engine.callbacks import never
from explorer.engine.capture import records
from explorer.engine.errors import BadInput
from explorer.engine.loading.loading import load
from explorer.engine.passes.generate import forward, one_step
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import selfcheck, selftest, store
from explorer.trace.request import RunRequest, Sampling
from tests.engine.folders import model, write_folder


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path / "home"))


QUERIES = "model.layers.1.self_attn.q_proj.weight"


def runner_with(folder: Path, tensor: str, value: float, dtype: str = "float32") -> Runner:
    """A tested runner on a tiny model with one weight replaced."""
    write_folder(folder, model())
    tensors = load_file(folder / "model.safetensors")
    tensors[tensor][2, 3] = value
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    runner = Runner(load(str(folder), dtype))
    store.find(runner, never)
    return runner


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("tensor", [QUERIES, "lm_head.weight", "model.embed_tokens.weight"])
def test_they_are_told_and_fail_the_check(tmp_path: Path, tensor: str, value: float) -> None:
    runner = runner_with(tmp_path / "tiny", tensor, value)
    card = runner.loaded.card
    assert card.not_finite == 1
    assert any("1 weight is NaN or infinite" in warning for warning in card.warnings)
    (check,) = selfcheck.check(runner, RunRequest(prompt="the cat"), ())
    assert (check.name, check.passed, check.note) == ("finite_weights", False, tensor)


def test_they_are_looked_for_once_and_told_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, looked = tmp_path / "tiny", []
    stock = store.not_finite
    monkeypatch.setattr(store, "not_finite", lambda *how: looked.append(1) or stock(*how))
    first = runner_with(folder, QUERIES, float("nan"))
    second, again = Runner(load(str(folder))), Runner(load(str(folder)))
    store.find(second, never)
    assert len(looked) == 1
    assert second.loaded.not_finite == first.loaded.not_finite
    assert second.loaded.card.warnings == first.loaded.card.warnings
    assert second.loaded.card.not_finite == 1
    store.find(again, never, again=True)
    assert len(looked) == 2
    changed = runner_with(folder, QUERIES, 0.5)
    assert len(looked) == 3
    assert changed.loaded.card.not_finite == 0


def test_a_layer_of_no_numbers_has_a_reason_and_no_map(tmp_path: Path) -> None:
    runner = runner_with(tmp_path / "tiny", QUERIES, float("nan"))
    request = RunRequest(prompt="the cat sat on the mat")
    for chosen in ((), (5,), (5, 6)):  # passes alone: with some kernels no logit is a number
        done = forward(runner, request, runner.layout(request, chosen), 0, None)
        layers = done.records(None)
        assert layers[1].kind == "absent"
        assert layers[1].reason == records.NOT_NUMBERS
        assert layers[0].kind == "absent" or layers[0].queries is not None


def test_where_nothing_can_be_chosen_the_weights_are_named(tmp_path: Path) -> None:
    runner = runner_with(tmp_path / "tiny", "lm_head.weight", float("nan"))
    request = RunRequest(prompt="the cat")
    with pytest.raises(BadInput, match=r"1 weight is NaN .*lm_head"):
        one_step(runner, request, runner.layout(request, ()), 0, Sampling())


def test_numbers_too_large_for_a_dtype_give_a_reason_too(tmp_path: Path) -> None:
    write_folder(tmp_path / "tiny", model())
    tensors = load_file(tmp_path / "tiny" / "model.safetensors")
    tensors["model.layers.0.mlp.down_proj.weight"] *= 60_000
    tensors["model.layers.0.mlp.up_proj.weight"] *= 60_000
    save_file(tensors, tmp_path / "tiny" / "model.safetensors", {"format": "pt"})
    runner = Runner(load(str(tmp_path / "tiny"), "float16"))
    store.find(runner, never)
    assert runner.loaded.card.not_finite == 0
    request = RunRequest(prompt="the cat sat on the mat")
    done = forward(runner, request, runner.layout(request, ()), 0, None)
    kinds = [record.kind for record in done.records(None)]
    assert kinds[0] == "qk"
    assert kinds[2] == "absent"


def test_a_sound_model_has_nothing_to_tell(tmp_path: Path) -> None:
    runner = Runner(load(str(write_folder(tmp_path / "tiny", model()))))
    store.find(runner, never)
    loaded = runner.loaded
    assert loaded.not_finite.count == 0
    assert loaded.not_finite.warning == ""
    assert torch.isfinite(loaded.model.lm_head.weight).all()


SETTINGS: list[dict[str, Any]] = [
    {"stop_strings": ["a"]},
    {"return_dict_in_generate": True, "output_scores": True},
    {"token_healing": True},
    {"num_return_sequences": 3, "num_beams": 3},
    {"repetition_penalty": 1.8, "no_repeat_ngram_size": 2, "min_new_tokens": 4},
    {"assistant_early_exit": 1, "prompt_lookup_num_tokens": 2},
    {"cache_implementation": "static"},
    {"bad_words_ids": [[5], [6], [7]], "forced_eos_token_id": 3, "suppress_tokens": [8, 9]},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: next(iter(settings)))
def test_the_check_asks_generate_without_the_models_own_settings(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": 2, **settings}))
    runner = Runner(load(str(folder)))
    selftest.run(runner)
    found = {one.name: one for one in selfcheck.check(runner, RunRequest(prompt="the cat"), ())}
    assert found["greedy_equals_generate"].passed
    assert all(one.passed for one in found.values())
    assert runner.model.generation_config.to_dict().items() >= settings.items()


def test_a_generation_config_at_fault_is_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny", model())
    for text in ("{", "[]", '{"temperature": "hot", "max_new_tokens": -5}'):
        (folder / "generation_config.json").write_text(text)
        with pytest.raises(BadInput, match=r"generation_config\.json"):
            load(str(folder))
