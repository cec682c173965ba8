"""The chain stage by stage: its own fast path, transformers' processors, orders, ties, speed."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
import torch
from transformers import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from explorer import sampling
from explorer.sampling import SamplingError
from explorer.trace.request import ORDER, Sampling
from tests.sampling.transformers_chain import drawn, require_all_equal, require_equal


def random_settings(rng: np.random.Generator) -> Sampling:
    return drawn(
        temperature=float(rng.uniform(0.2, 2)),
        top_k=int(rng.choice([0, 1, rng.integers(2, 80), 10**6])),
        top_p=float(rng.choice([1.0, rng.uniform(0.02, 1)])),
        min_p=float(rng.choice([0.0, rng.uniform(0, 0.3)])),
        repetition_penalty=float(rng.choice([1.0, rng.uniform(0.8, 2)])),
        order=tuple(rng.permutation(ORDER).tolist()) if rng.random() < 0.5 else ORDER,
    )


def test_200_settings_on_20_vectors_equal_transformers() -> None:
    rng = np.random.default_rng(6)
    vectors = (rng.standard_normal((20, 300)) * rng.uniform(0.5, 6, (20, 1))).astype(np.float32)
    for _ in range(200):
        require_all_equal(vectors, random_settings(rng), rng.integers(0, 300, (20, 30)).tolist())


def test_the_order_by_default_is_the_one_that_generate_builds() -> None:
    from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(n_embd=8, n_layer=1, n_head=1, vocab_size=20))
    config = GenerationConfig(
        do_sample=True, temperature=0.5, top_k=3, top_p=0.9, min_p=0.1, repetition_penalty=1.2
    )
    built = model._get_logits_processor(
        config, input_ids_seq_length=3, model_kwargs={"attention_mask": torch.ones(1, 3)}
    )
    kinds = {
        RepetitionPenaltyLogitsProcessor: "penalty", TemperatureLogitsWarper: "temperature",
        TopKLogitsWarper: "top_k", TopPLogitsWarper: "top_p", MinPLogitsWarper: "min_p",
    }  # fmt: skip
    assert tuple(kinds[type(p)] for p in built) == ORDER


def test_three_logits_in_both_orders() -> None:
    logits = np.array([3.0, 2.0, 1.0], np.float32)
    first = drawn(temperature=0.5, top_p=0.8)
    last = drawn(
        temperature=0.5, top_p=0.8, order=("penalty", "top_k", "top_p", "min_p", "temperature")
    )
    # Sharpened first, one token holds 86.7 % by itself; before that it takes two to reach 80 %.
    np.testing.assert_allclose(sampling.distribution(logits, first).final, [1, 0, 0])
    e = np.exp([2.0, 0.0])
    np.testing.assert_allclose(sampling.distribution(logits, last).final, [*(e / e.sum()), 0])


def test_stages_end_where_the_fast_path_does_and_say_what_each_link_did() -> None:
    rng = np.random.default_rng(3)
    logits = (rng.standard_normal(500) * 3).astype(np.float32)
    for _ in range(30):
        settings = random_settings(rng)
        previous = rng.integers(0, 500, 20).tolist()
        found = sampling.stages(logits, settings, previous)
        dist = sampling.distribution(logits, settings, previous)
        assert [s.name for s in found] == ["logits", *settings.order]
        np.testing.assert_array_equal(found[-1].ids, dist.ids)
        np.testing.assert_array_equal(found[-1].p, dist.p)
        for before, stage in itertools.pairwise(found):
            assert stage.p.sum() == pytest.approx(1)
            assert stage.entropy_bits == pytest.approx(sampling.entropy_bits(stage.p))
            assert (np.diff(stage.p) <= 0).all()
            shares = dict(zip(before.ids.tolist(), before.p, strict=True))
            if stage.name in ("top_k", "top_p", "min_p"):
                kept = sum(shares[i] for i in stage.ids.tolist())
                assert stage.mass_kept == pytest.approx(kept)
            else:
                assert stage.mass_kept == 1
            if not stage.active:
                assert stage.ids is before.ids


def test_the_penalty_counts_for_greedy_too_and_once_per_token() -> None:
    logits = np.array([2.0, 1.9, -1.0], np.float32)
    settings = Sampling(repetition_penalty=1.5)
    assert sampling.pick(logits, settings, 0, (0, 0, 0)).token_id == 1
    found = sampling.stages(logits, settings, (0, 0))
    assert [s.name for s in found] == ["logits", "penalty", "greedy"]
    assert (found[-1].ids.tolist(), found[-1].p.tolist()) == ([1], [1.0])
    # a negative logit is multiplied
    after = sampling.distribution(logits, drawn(repetition_penalty=2.0), (2,)).final
    np.testing.assert_allclose(after[2] / after[0], np.exp(-2.0 - 2.0))


def test_penalised_ties_stay_in_order_of_id() -> None:
    logits = np.array([1.0, 2.0, 1.0, 4.0, 1.0, 2.0], np.float32)
    found = sampling.stages(logits, drawn(repetition_penalty=2.0), (1, 3, 9999, -1))
    assert found[1].ids.tolist() == [3, 5, 0, 1, 2, 4]


def test_min_p_keeps_what_reaches_its_share_of_the_best() -> None:
    logits = np.log([0.5, 0.25, 0.2, 0.05])
    final = sampling.distribution(logits, drawn(min_p=0.45)).final
    np.testing.assert_allclose(final, [2 / 3, 1 / 3, 0, 0])
    ties = sampling.distribution(np.array([1.0, 3.0, 3.0]), drawn(min_p=1.0)).final
    np.testing.assert_allclose(ties, [0, 0.5, 0.5])


@pytest.mark.parametrize(
    "settings",
    [
        {"min_p": -0.1},
        {"min_p": 1.1},
        {"repetition_penalty": 0.0},
        {"repetition_penalty": float("nan")},
        {"order": ("top_k", "top_p")},
    ],
)
def test_new_settings_out_of_range_are_one_sentence(settings: dict[str, object]) -> None:
    with pytest.raises(SamplingError, match=r"must"):
        sampling.stages(np.zeros(3), drawn(**settings))


def test_read_only_logits_are_sorted_once_and_others_never_remembered() -> None:
    logits = np.arange(5, dtype=np.float32)
    first = sampling.stages(logits, drawn())[0].ids.tolist()
    logits[0] = 9
    assert sampling.stages(logits, drawn())[0].ids.tolist() != first
    logits.flags.writeable = False
    one, two = sampling.stages(logits, drawn()), sampling.stages(logits, drawn(top_k=2))
    assert one[0].ids is two[0].ids


@pytest.mark.parametrize(("size", "per_second"), [(50_000, 60), (260_000, 20)])
def test_stages_keep_up_with_a_slider(size: int, per_second: int) -> None:
    rng = np.random.default_rng(0)
    logits = (rng.standard_normal(size) * 2).astype(np.float32)
    logits.flags.writeable = False
    sampling.stages(logits, drawn())  # the sort is paid once a step
    took = []
    for i in range(12):
        settings = drawn(temperature=0.5 + i / 10, top_p=0.95, min_p=0.001, repetition_penalty=1.1)
        start = time.process_time()
        sampling.stages(logits, settings, range(0, 4000, 3))
        took.append(time.process_time() - start)
    assert min(took) < 1 / per_second


@pytest.mark.slow
@pytest.mark.smollm2
@pytest.mark.timeout(1800)
def test_real_logits_equal_transformers() -> None:
    from explorer.engine.loading import loading
    from explorer.engine.passes.generate import one_step
    from explorer.engine.passes.runner import Runner
    from explorer.trace.request import RunRequest

    runner = Runner(loading.load("smollm2"))
    request = RunRequest(prompt="The capital of France is", model="smollm2")
    found: list[tuple[np.ndarray, list[int]]] = []
    ids: list[int] = []
    for index in range(20):
        layout = runner.layout(request, ids)
        step = one_step(runner, request, layout, index, Sampling(greedy=False, temperature=1.5))
        found.append((step.logits, list(layout.ids)))
        ids.append(step.draw.token_id)
    rng = np.random.default_rng(20)
    for _ in range(200):
        settings = random_settings(rng)
        for logits, context in found:
            require_equal(logits, settings, context)
