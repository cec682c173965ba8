"""What the KV panel says of every kind of layer is what the engine's own tensors hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from explorer.engine.model_files.meta_model import kept_per_token, latent_width, skeleton
from explorer.engine.model_files.model_shape import shape_of
from explorer.engine.passes.generate import generate
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import selftest
from explorer.figures.cost import cache
from explorer.figures.cost.cache_estimate import what_if
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.trace import Trace
from explorer.ui.panels.kv_cache.words import verdict
from tests.engine.architectures import tiny
from tests.engine.tiny import runner_on, tiny_model

REQUEST = RunRequest(prompt=" ".join(str(i) for i in range(5, 13)))
STEPS = 20

pytestmark = pytest.mark.filterwarnings("ignore")  # of transformers' modelling code


def with_card(model: Any) -> Runner:
    """A runner whose card has the sizes that loading gives it."""
    runner = runner_on(model)
    shape = shape_of(model.config)
    kept = kept_per_token(model.config, skeleton(model.config), shape)
    card = msgspec.structs.replace(
        runner.loaded.card, heads=shape.heads, kv_heads=shape.kv_heads, head_dim=shape.head_dim,
        layer_kinds=shape.layer_kinds, windows=shape.windows, kv_bytes_per_token=kept * 4,
        latent_width=latent_width(model.config, kept),
    )  # fmt: skip
    runner.loaded = replace(runner.loaded, card=card)
    selftest.run(runner)
    return runner


def traced(runner: Runner) -> Trace:
    made = [Trace(request=REQUEST, card=runner.loaded.card, prompt=runner.prompt(REQUEST).tokens)]
    generate(
        runner,
        runner.prompt(REQUEST),
        (),
        STEPS,
        Sampling,
        lambda step, token: made.append(made[-1].appended(step, token)),
    )
    assert len(made[-1].steps) == STEPS
    return made[-1]


def held(runner: Runner) -> list[int]:
    """Bytes per layer, asked of the tensors themselves."""
    found = []
    for layer in runner.cache.live.layers:
        parts = [getattr(layer, name, None) for name in ("keys", "values")]
        for name in ("conv_states", "recurrent_states"):
            parts += list(getattr(layer, name, {}).values())
        found.append(sum(part.nbytes for part in parts if part is not None))
    return found


def test_full_attention_holds_what_the_formula_says_at_every_step() -> None:
    runner = with_card(tiny_model("llama"))
    trace = traced(runner)
    for index in range(STEPS):
        figure = cache.chart(trace, index)
        assert figure.agrees
        assert figure.layer_bytes.tolist() == figure.layer_formula.tolist()
        expected = what_if(trace.card, "float32", 1, figure.tokens)
        assert expected is not None
        assert expected.total == figure.measured_bytes
    assert cache.chart(trace, STEPS - 1).layer_bytes.tolist() == held(runner)
    assert figure.mha_factor == 2


def test_sliding_layers_stay_below_it_past_the_window() -> None:
    runner = with_card(tiny_model("gemma3_text", sliding_window=16))
    trace = traced(runner)
    figure = cache.chart(trace, STEPS - 1)
    assert figure.layer_kinds == ("sliding", "sliding", "full")
    assert figure.layer_bytes.tolist() == held(runner)
    below = figure.layer_bytes < figure.layer_formula
    assert below.tolist() == [True, True, False]
    sliding = [one.by_kind[figure.kinds.index("sliding")] for one in figure.growth]
    full = [one.by_kind[figure.kinds.index("full")] for one in figure.growth]
    assert len(set(sliding[8:])) == 1  # 15 tokens are kept: the next one makes the window full
    assert np.all(np.diff(full) > 0)
    expected = what_if(trace.card, "float32", 1, figure.tokens)
    assert expected is not None
    assert expected.total == figure.measured_bytes
    assert "2 layers keep only a window" in verdict(figure)


@pytest.mark.parametrize("kind", ["jamba", "mamba"])
def test_recurrent_layers_hold_the_same_at_every_step(kind: str) -> None:
    runner = with_card(tiny(kind))
    trace = traced(runner)
    figure = cache.chart(trace, STEPS - 1)
    place = next(i for i, kind in enumerate(figure.kinds) if kind in cache.STATES)
    states = {one.by_kind[place] for one in figure.growth}
    assert states == {figure.state_bytes}
    assert figure.layer_bytes.tolist() == held(runner)
    assert figure.state_bytes > 0
    assert figure.agrees


def test_a_latent_cache_is_called_so_and_measures_its_width() -> None:
    runner = with_card(tiny("deepseek_v3"))
    figure = cache.chart(traced(runner), STEPS - 1)
    assert set(figure.layer_kinds) == {"latent"}
    assert figure.formula == "4 layers·32 latent·4 bytes"
    assert figure.agrees


@pytest.mark.parametrize("window", [3, 8, 16])
def test_the_formula_holds_below_a_window_however_short(window: int) -> None:
    kinds = ["sliding_attention", "full_attention", "full_attention"]
    config = tiny_model("gemma2", sliding_window=window, layer_types=kinds).config
    shape = shape_of(config)
    assert shape.windows == (window, 0, 0)
    kept = kept_per_token(config, skeleton(config), shape)
    assert kept == 2 * shape.layers * shape.kv_heads * shape.head_dim
