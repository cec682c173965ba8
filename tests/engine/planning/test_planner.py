"""A plan against what is measured on the same model: cache, weights, records, allocations."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from transformers import AttentionInterface, AutoConfig, DynamicCache

from explorer.engine.callbacks import never
from explorer.engine.errors import BadInput
from explorer.engine.loading import loading
from explorer.engine.model_files.meta_model import cached_per_token, skeleton
from explorer.engine.model_files.model_shape import shape_of
from explorer.engine.passes.generate import one_step
from explorer.engine.passes.runner import Runner
from explorer.engine.planning import dry_pass, planner, splits
from explorer.trace.cost.model_plan import ModelPlan
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.wire.messages import PlanModel
from tests.engine.architectures import tiny
from tests.engine.tiny import KINDS, runner_on, tiny_model

TOKENS = 24


def planned(model: Any, monkeypatch: pytest.MonkeyPatch, **asked: Any) -> ModelPlan:
    """The plan of a model's config; its weights are never looked at."""
    config = type(model.config).from_dict(model.config.to_dict())
    monkeypatch.setattr(planner, "_config", lambda name: (name, config))
    return planner.plan(PlanModel(model="tiny", **{"tokens": TOKENS, **asked}))


def weights(model: Any) -> int:
    return sum(parameter.nbytes for parameter in model.parameters())


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_cache_weights_and_records_are_those_that_the_engine_measures(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model(kind)
    runner = runner_on(model)
    request = RunRequest(prompt=" ".join(map(str, range(1, TOKENS + 1))))
    step = one_step(runner, request, runner.layout(request, ()), 0, Sampling(), never)
    plan = planned(model, monkeypatch)
    assert plan.weights_bytes == weights(model)
    assert tuple(one.bytes for one in plan.cache_bytes_per_layer) == step.cache_bytes_per_layer
    assert plan.cache_bytes == sum(step.cache_bytes_per_layer) > 0
    assert step.hidden is not None
    recorded = [part for one in step.layers for part in (one.queries, one.keys)]
    recorded += [step.hidden]
    assert plan.captured == sum(part.nbytes for part in recorded if part is not None)
    assert plan.activation_bytes is not None


@pytest.mark.parametrize(
    ("kind", "kinds"),
    [
        ("qwen3_next", {"linear", "full"}),
        ("deepseek_v3", {"latent"}),
        ("jamba", {"linear", "full"}),
        ("mixtral", {"full"}),
        ("bart", {"full"}),
    ],
)
@pytest.mark.parametrize("batch", [1, 3])
def test_every_kind_of_layer_keeps_what_transformers_keeps(
    kind: str, kinds: set[str], batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny(kind)
    cache = DynamicCache(config=model.config)
    ids = torch.arange(1, TOKENS + 1).expand(batch, -1)
    with torch.inference_mode():
        model(input_ids=ids, cache=cache, use_cache=True)
    measured = []
    for layer in cache.layers:
        found = [v.values() if isinstance(v, dict) else [v] for v in vars(layer).values()]
        tensors = [t for part in found for t in part if isinstance(t, torch.Tensor) and t.ndim > 1]
        measured.append(sum(t.nbytes for t in tensors))
    plan = planned(model, monkeypatch, batch=batch)
    assert [one.bytes for one in plan.cache_bytes_per_layer] == measured
    assert set(plan.cache_by_kind) == kinds
    assert plan.weights_bytes == weights(model)


def allocated(work: Any) -> int:
    """Most bytes that torch's own allocator has given out during `work`, by its profiler."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        work()
    sizes = [e.nbytes() for e in seen.profiler.kineto_results.events() if e.name() == "[memory]"]
    return int(np.max(np.cumsum(sizes)))


@pytest.mark.parametrize(
    ("kind", "tokens"), [("llama", 700), ("gemma3_text", 700), ("gpt_oss", 300), ("jamba", 120)]
)
def test_activations_are_what_the_allocator_gives_out(
    kind: str, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = {"max_position_embeddings": 1024, "hidden_size": 256, "intermediate_size": 512}
    model = tiny_model(kind, **wide) if kind in KINDS else tiny(kind)
    plan = planned(model, monkeypatch, tokens=tokens)
    ids = torch.ones(1, tokens, dtype=torch.long)

    def read(cache: Any) -> None:
        with torch.inference_mode():
            model(input_ids=ids, cache=cache, use_cache=True, logits_to_keep=1)

    read(DynamicCache(config=model.config))
    kept = DynamicCache(config=model.config)
    most = allocated(lambda: read(kept))
    assert plan.cache_bytes is not None
    assert plan.activation_bytes is not None
    assert plan.cache_bytes + plan.activation_bytes == pytest.approx(most, rel=0.05)


@pytest.mark.smollm2
def test_smollm2_takes_what_is_planned(smollm2: Runner) -> None:
    plan = planner.plan(PlanModel(model="smollm2", tokens=512))
    text = " ".join(["word"] * 511)
    request = RunRequest(model="smollm2", prompt=text)
    with smollm2.own_cache_aside():
        layout = smollm2.layout(request, ())
        assert abs(len(layout.ids) - 512) <= 1
        found: list[Any] = []
        most = allocated(
            lambda: found.append(one_step(smollm2, request, layout, 0, Sampling(), never))
        )
    assert plan.weights_bytes == weights(smollm2.model)
    assert plan.cache_bytes == pytest.approx(sum(found[0].cache_bytes_per_layer), rel=0.01)
    assert plan.total_bytes is not None
    keys = plan.cache_bytes // 2  # recorded keys are the cache's own: no copy of them is made
    assert plan.total_bytes - plan.weights_bytes - keys == pytest.approx(most, rel=0.05)


@pytest.mark.parametrize("kind", ["llama", "gpt_oss"])
def test_a_model_that_runs_meanwhile_is_left_alone(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plans and recipes are made in a thread of their own, in the middle of passes."""
    model = tiny_model(kind)
    runner = runner_on(model)
    request = RunRequest(prompt=" ".join(map(str, range(1, TOKENS + 1))))

    def step() -> Any:
        return one_step(runner, request, runner.layout(request, ()), 0, Sampling(), never)

    alone, plans = step(), []
    registry = vars(AttentionInterface)["_global_mapping"]
    here: list[dict[str, Any]] = []  # what the passes of the other thread would meet
    signature = dry_pass.inspect.signature  # asked of the model ahead of each pass over shapes

    def asked(*args: Any, **more: Any) -> Any:
        here.append(dict(registry))
        return signature(*args, **more)

    monkeypatch.setattr(dry_pass.inspect, "signature", asked)

    met: list[bool] = []

    def meanwhile(_module: Any, _args: Any) -> None:
        here[:] = [dict(registry)]
        plans.append(planned(model, monkeypatch, gpus=1))
        config = type(model.config).from_dict(model.config.to_dict())
        assert cached_per_token(skeleton(config))
        met.extend(one == here[0] for one in here)

    hook = runner.layers[1].self_attn.register_forward_pre_hook(meanwhile)
    try:
        beside = step()
    finally:
        hook.remove()
    assert plans == [planned(model, monkeypatch, gpus=1)]
    assert len(met) > 1
    assert all(met)
    np.testing.assert_array_equal(alone.logits, beside.logits)
    assert len(alone.layers) == len(beside.layers)
    for one, other in zip(alone.layers, beside.layers, strict=True):
        np.testing.assert_array_equal(one.queries, other.queries)
    np.testing.assert_array_equal(alone.logits, step().logits)


def test_a_long_prompt_is_planned_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = {"hidden_size": 256, "intermediate_size": 1024, "max_position_embeddings": 8192}
    model = tiny_model("llama", **wide)
    short, long = (planned(model, monkeypatch, tokens=n) for n in (2048, 4096))
    assert short.activation_bytes is not None
    assert long.activation_bytes is not None
    assert long.activation_bytes < short.activation_bytes
    assert long.cache_bytes == 2 * (short.cache_bytes or 0)


def test_what_cannot_be_known_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dry_pass, "_read", lambda *_: 1 / 0)
    plan = planned(tiny("deepseek_v3"), monkeypatch)
    assert plan.cache_bytes is plan.total_bytes is plan.activation_bytes is None
    assert plan.not_known == (planner.NO_CACHE,)
    assert planned(tiny_model("llama"), monkeypatch).not_known == (planner.NO_PASS,)


# -- sharing out


def test_a_tensor_split_halves_heads_and_a_pipeline_takes_whole_layers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = tiny_model("llama", tie_word_embeddings=False)
    plan = planned(model, monkeypatch, gpus=2, gpu_memory=10**6, bytes_per_second=1e9)
    assert [one.possible for one in plan.splits] == [True, True]
    tensor = [one for one in plan.devices if one.split == "tensor"]
    whole = sum(p.nbytes for n, p in model.named_parameters() if "norm" in n)
    assert {one.weights_bytes for one in tensor} == {whole + (plan.weights_bytes - whole) // 2}
    assert {one.cache_bytes for one in tensor} == {(plan.cache_bytes or 0) // 2}
    pipeline = [one for one in plan.devices if one.split == "pipeline"]
    assert sum(one.weights_bytes for one in pipeline) == plan.weights_bytes
    assert sum(one.cache_bytes or 0 for one in pipeline) == plan.cache_bytes
    assert [one.layers for one in pipeline] == [(0, 2), (2, 3)]
    read = sum(one.bytes_read or 0 for one in pipeline)
    assert read == plan.step_bound.bytes_read
    assert plan.splits[1].seconds == read / 1e9
    assert all(one.fits for one in plan.devices)


def test_a_tied_table_lies_on_the_first_and_on_the_last_gpu() -> None:
    model = skeleton(AutoConfig.for_model("llama", **KINDS["llama"], tie_word_embeddings=True))
    found = splits.weights_of(model)
    table = model.get_input_embeddings().weight.nbytes
    assert found.first == table
    assert found.last == table + model.model.norm.weight.nbytes
    assert found.total == weights(model)
    assert found.read_last == found.last


@pytest.mark.parametrize(
    ("heads", "shared", "gpus", "words"),
    [
        (9, 3, 2, "9 query heads and 3 key/value heads can't be divided evenly among 2 GPUs. "
                  "Choose 3 GPUs, or the pipeline split."),
        (8, 1, 2, "Use the pipeline split."),
        (4, 2, 8, "Choose 2 GPUs"),
        (4, 2, 2, ""),
    ],
)  # fmt: skip
def test_heads_that_cannot_be_shared_out(heads: int, shared: int, gpus: int, words: str) -> None:
    sizes = {**KINDS["llama"], "num_attention_heads": heads, "num_key_value_heads": shared}
    sizes["hidden_size"] = 72
    model = skeleton(AutoConfig.for_model("llama", **sizes))
    found = splits.tensor_refusal(model, shape_of(model.config), gpus)
    assert words in found
    assert bool(found) == bool(words)


def test_no_plan_and_too_few_layers() -> None:
    model = skeleton(AutoConfig.for_model("gpt2", **KINDS["gpt2"]))
    assert "no tensor-parallel plan for gpt2" in splits.tensor_refusal(
        model, shape_of(model.config), 2
    )
    assert "3 layers, fewer than 4 GPUs" in splits.pipeline_refusal(3, 4)
    assert splits.pipeline_refusal(3, 3) == ""


@pytest.mark.parametrize("gpus", [2, 3, 4])
def test_the_fullest_gpu_holds_as_little_as_possible(gpus: int) -> None:
    costs, first, last = (5, 1, 9, 2, 2, 7, 1), 4, 6
    found = splits.stages(costs, first, last, gpus)
    items = [costs[0] + first, *costs[1:-1], costs[-1] + last]
    assert [found[0][0], found[-1][1], len(found)] == [0, len(costs), gpus]
    assert all(a[1] == b[0] for a, b in itertools.pairwise(found))
    cuts = itertools.combinations(range(1, len(costs)), gpus - 1)
    best = min(
        max(sum(items[a:b]) for a, b in itertools.pairwise([0, *cut, len(costs)])) for cut in cuts
    )
    assert max(sum(items[a:b]) for a, b in found) == best


# -- what may be named


def test_a_config_alone_and_a_shape_of_the_table(tmp_path: Path) -> None:
    file = tmp_path / "some-model.json"
    file.write_text(json.dumps({"model_type": "llama", **KINDS["llama"]}))
    plan = planner.plan(PlanModel(model=str(file), tokens=8))
    assert (plan.model, plan.architecture) == ("some-model", "llama")
    assert planner.plan(PlanModel(model="gpt-3", tokens=8, gpus=1)).parameters == 174_604_259_328
    assert not list(tmp_path.glob("*/"))


def test_a_bound_is_of_a_bandwidth_that_is_given_or_measured_here() -> None:
    gpu = planner.plan(PlanModel(model="copycat", tokens=8, gpus=1))
    assert gpu.step_bound.seconds is gpu.step_bound.bytes_per_second is None
    here = planner.plan(PlanModel(model="copycat", tokens=8)).step_bound
    assert here.bytes_per_second
    assert here.seconds == (here.bytes_read or 0) / here.bytes_per_second
    assert "measured on this machine" in here.bandwidth


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"tokens": 0}, "1 to 100,000,000 tokens"),
        ({"batch": 10**9}, "sequences"),
        ({"gpus": 5000}, "GPUs"),
        ({"dtype": "int4"}, "There is no dtype int4"),
        ({"tokens": 10**6}, "was built for at most"),
        ({"model": "/no/such.json"}, "no"),
    ],
)
def test_bad_use_is_one_sentence(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput) as refused:
        planner.plan(PlanModel(**{"model": "copycat", "tokens": 8, **asked}))
    assert words in refused.value.sentence


def test_copycat_is_planned_as_it_is_loaded() -> None:
    loaded = loading.load("copycat")
    plan = planner.plan(PlanModel(model="copycat", tokens=100))
    assert plan.weights_bytes == weights(loaded.model)
    assert plan.cache_bytes == 100 * loaded.card.kv_bytes_per_token
