"""Cache figures: measured bytes beside the formula, and whether they agree."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from explorer.figures.cost import cache
from explorer.trace.interventions.context_policy import ContextPolicy
from explorer.trace.request import RunRequest
from explorer.trace.trace import Trace
from explorer.ui.panels.kv_cache.words import verdict
from explorer.wording import bytes_text, short_bytes
from tests.session.scripted import PROMPT, card, stepped

PER_TOKEN = 2 * 2 * 1 * 4 * 4  # 2 · layers · KV heads · width · bytes, of the scripted model


def trace(steps: int = 3, **request: object) -> Trace:
    made = Trace(
        request=RunRequest(model="tiny", **request),  # type: ignore[arg-type]
        card=card(kv_bytes_per_token=PER_TOKEN),
        prompt=PROMPT,
    )
    for index in range(steps):
        event = stepped(0, index)
        made = made.appended(event.step, event.token)
    return made


def test_measured_bytes_equal_the_formula() -> None:
    figure = cache.chart(trace(), 2)
    assert figure.tokens == 5
    assert figure.layer_bytes.tolist() == [5 * 32, 5 * 32]
    assert figure.measured_bytes == figure.formula_bytes == 5 * PER_TOKEN
    assert figure.agrees
    assert verdict(figure).endswith("measured = formula")


def test_growth_is_one_value_a_step() -> None:
    figure = cache.chart(trace(), 0)
    assert [held.tokens for held in figure.growth] == [3, 4, 5]
    assert [held.total for held in figure.growth] == [n * PER_TOKEN for n in (3, 4, 5)]
    assert figure.tokens == 3  # of the step that was asked for


def test_a_window_keeps_less_than_the_formula_and_says_so() -> None:
    made = trace()
    last = replace(made.steps[-1], cache_bytes_per_layer=(2 * 32, 5 * 32))
    kinds = msgspec.structs.replace(made.card, layer_kinds=("sliding", "full"))
    figure = cache.chart(replace(made, steps=(*made.steps[:-1], last), card=kinds), 2)
    assert not figure.agrees
    assert verdict(figure).endswith("96 bytes below the formula: 1 layer keeps only a window")


def test_growth_is_told_by_kind_and_taken_over_from_the_figure_before() -> None:
    made = trace()
    kinds = msgspec.structs.replace(made.card, layer_kinds=("sliding", "full"))
    made = replace(made, card=kinds)
    before = cache.chart(made.truncated(2), 1)
    figure = cache.chart(made, 2, before.growth)
    assert figure.kinds == ("sliding", "full")
    assert figure.growth[2].by_kind == (160, 160)
    assert figure.growth[0] is before.growth[0]
    assert figure.growth[2].step is made.steps[2]


def test_recurrent_layers_are_told_apart_from_keys_and_values() -> None:
    made = trace()
    last = replace(made.steps[-1], cache_bytes_per_layer=(2048, 5 * 32))
    kinds = msgspec.structs.replace(
        made.card, layer_kinds=("linear", "full"), kv_bytes_per_token=PER_TOKEN // 2
    )
    figure = cache.chart(replace(made, steps=(*made.steps[:-1], last), card=kinds), 2)
    assert figure.state_bytes == 2048
    assert figure.agrees
    assert verdict(figure).endswith("= formula + 2 KiB of fixed state")
    assert figure.formula == "2·1 layer·1 KV head·4·4 bytes"
    assert np.isnan(figure.layer_formula[0])
    assert figure.layer_formula[1] == 5 * 32


def test_a_latent_has_a_formula_and_a_name_of_its_own() -> None:
    made = trace()
    latent = msgspec.structs.replace(
        made.card, layer_kinds=("full", "full"), latent_width=6, kv_bytes_per_token=2 * 6 * 4
    )
    figure = cache.chart(replace(made, card=latent), 2)
    assert figure.layer_kinds == ("latent", "latent")
    assert figure.formula == "2 layers·6 latent·4 bytes"
    assert figure.mha_factor == 1


def test_what_sharing_keys_saves_and_what_context_is_left() -> None:
    figure = cache.chart(trace(), 2)
    assert figure.mha_factor == 2  # two query heads, one key head
    assert figure.context_left == 64 - 5


def test_what_a_policy_evicted_is_no_shortfall_and_takes_context_all_the_same() -> None:
    made = trace(context=ContextPolicy(name="window", tokens=2))
    last = replace(made.steps[-1], cache_tokens=2, cache_bytes_per_layer=(2 * 32, 2 * 32))
    figure = cache.chart(replace(made, steps=(*made.steps[:-1], last)), 2)
    assert (figure.tokens, figure.measured_bytes) == (2, 2 * PER_TOKEN)
    assert verdict(figure).startswith("3 of 5 evicted · ")
    assert verdict(figure).endswith(" bytes measured = formula")
    assert figure.layer_formula.tolist() == [5 * 32, 5 * 32], "with every token kept"
    assert figure.context_left == 64 - 5


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        (ContextPolicy(tokens=9), 4),
        (ContextPolicy(name="sinks", tokens=2, sinks=1, distances="cache"), None),
    ],
)
def test_the_context_left_is_that_of_the_policy(policy: ContextPolicy, left: int | None) -> None:
    assert cache.chart(trace(context=policy), 2).context_left == left


def test_more_than_the_formula_is_told_too() -> None:
    made = trace()
    last = replace(made.steps[-1], cache_bytes_per_layer=(6 * 32, 5 * 32))
    figure = cache.chart(replace(made, steps=(*made.steps[:-1], last)), 2)
    assert verdict(figure).endswith("32 bytes above the formula")


def test_an_unmasked_run_has_no_cache_and_a_reason() -> None:
    assert "causal mask" in cache.chart(trace(causal_mask=False), 0).off_reason
    assert "switched off" in cache.chart(trace(cache=False), 0).off_reason
    assert cache.chart(trace(), 0).off_reason == ""


def test_the_formula_is_spelled_only_where_it_gives_the_bytes() -> None:
    right = card(kv_bytes_per_token=PER_TOKEN)
    assert cache.formula_words(right) == "2·2 layers·1 KV head·4·4 bytes"
    assert cache.formula_words(card(kv_bytes_per_token=PER_TOKEN + 1)) == ""


def test_bytes_beyond_two_gibibytes_stay_exact() -> None:
    made = trace()
    huge = replace(made.steps[-1], cache_bytes_per_layer=(3 << 31, 3 << 31))
    figure = cache.chart(replace(made, steps=(*made.steps[:-1], huge)), 2)
    assert figure.measured_bytes == 3 << 32


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1000, "1,000 bytes"),
        (552_960, "552,960 bytes (540 KiB)"),
        (3 << 30, "3,221,225,472 bytes (3 GiB)"),
    ],
)
def test_bytes_in_words(count: int, words: str) -> None:
    assert bytes_text(count) == words


def test_short_bytes() -> None:
    assert [short_bytes(n) for n in (999, 1024, 46_080, 5 << 40)] == [
        "999 bytes", "1 KiB", "45 KiB", "5,120 GiB",
    ]  # fmt: skip
