"""What layers write to the stream: the parts found, and their figures by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from explorer.engine.callbacks import never, nobody
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.inside import residual, telling, watched_pass
from explorer.engine.inside.route import Write, find_route
from explorer.engine.inside.sums import find_sum
from explorer.engine.passes.runner import Runner
from explorer.trace.inside.stream import ReadStream, ResidualStream
from explorer.trace.request import RunRequest
from tests.engine import architectures
from tests.engine.experiments.batches import PROMPTS, ids_of, runner_of
from tests.engine.tiny import runner_on, tiny_runner

TEXT = PROMPTS[4]


def stream(runner: Runner, **more: Any) -> ResidualStream:
    asked = ReadStream(request=RunRequest(prompt=TEXT), **more)
    return residual.read(runner, asked, nobody)


def writes(runner: Runner) -> list[tuple[Write, ...]]:
    route = find_route(runner, never)
    assert route.reason == ""
    return [layer.writes for layer in route.layers]


@pytest.mark.parametrize(
    ("kind", "names", "heads"),
    [
        ("llama", ("self_attn.o_proj", "mlp.down_proj"), 4),
        ("gpt2", ("attn.c_proj", "mlp.c_proj"), 4),
        ("gemma2", ("post_attention_layernorm", "post_feedforward_layernorm"), 4),
        ("gpt_oss", ("self_attn.o_proj", "mlp.experts"), 4),
    ],
)
def test_the_two_writes_of_a_layer_are_found(kind: str, names: tuple[str, ...], heads: int) -> None:
    for layer in writes(runner_of(kind)):
        assert tuple(write.name for write in layer) == names
        assert [write.kind for write in layer] == ["attention", "mlp"]
        assert [write.heads for write in layer] == [heads, 0]
        assert all(write.factor == 1 for write in layer)


def test_a_norm_after_a_part_knows_whose_output_it_takes() -> None:
    attention, mlp = writes(runner_of("gemma2"))[0]
    assert attention.source == attention.projection == "self_attn.o_proj"
    assert mlp.source == "mlp.down_proj"


def test_scaled_writes_have_their_factor() -> None:
    for layer in writes(runner_on(architectures.tiny("minicpm3"))):
        assert [write.factor for write in layer] == pytest.approx([1.4 / 4**0.5] * 2, rel=1e-5)


def test_a_recurrent_mixer_is_no_attention() -> None:
    runner = runner_on(architectures.tiny("falcon_h1"))
    kinds = {write.name: write.kind for write in writes(runner)[0]}
    assert kinds == {
        "mamba.out_proj": "mixer",
        "self_attn.o_proj": "attention",
        "feed_forward.down_proj": "mlp",
    }


def test_figures_by_hand() -> None:
    runner = runner_of("llama")
    found = stream(runner)
    model, ids = runner.model.model, torch.tensor([ids_of(TEXT)])
    kept: dict[str, torch.Tensor] = {}
    with torch.inference_mode():
        handles = [
            layer.mlp.register_forward_hook(
                lambda module, args, output, i=i: kept.__setitem__(f"mlp{i}", output[0])
            )
            for i, layer in enumerate(model.layers)
        ]
        handles += [
            layer.register_forward_hook(
                lambda module, args, output, i=i: kept.__setitem__(f"out{i}", output[0])
            )
            for i, layer in enumerate(model.layers)
        ]
        runner.model(input_ids=ids)
        for handle in handles:
            handle.remove()
        embedded = model.embed_tokens(ids)[0]
    final = kept["out2"]
    states = [embedded, *(kept[f"out{i}"] for i in range(3))]
    np.testing.assert_allclose(found.norms, [s.norm(dim=-1).tolist() for s in states], rtol=1e-5)
    cosines = [torch.cosine_similarity(s, final, dim=-1).tolist() for s in states]
    np.testing.assert_allclose(found.cosines, cosines, atol=1e-5)
    for place, write in enumerate(found.writes):
        if write.kind == "mlp":
            by_hand = kept[f"mlp{write.layer}"]
            np.testing.assert_allclose(
                found.write_norms[place], by_hand.norm(dim=-1).tolist(), rtol=1e-5
            )
            np.testing.assert_allclose(
                found.write_cosines[place],
                torch.cosine_similarity(by_hand, final, dim=-1).tolist(),
                atol=1e-5,
            )


def test_a_long_run_is_read_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = runner_of("llama")
    whole = stream(runner)
    monkeypatch.setattr(watched_pass.chunked_prefill, "CHUNK", 7)
    portions = stream(runner)
    assert portions.slots == whole.slots
    np.testing.assert_allclose(portions.norms, whole.norms, rtol=1e-4)
    monkeypatch.setattr(telling, "_EVERY_S", -1.0)
    parts: list[ResidualStream] = []
    asked = ReadStream(request=RunRequest(prompt=TEXT))
    residual.read(runner, asked, nobody, part=parts.append)
    assert [len(part.slots) for part in parts] == list(range(7, len(whole.slots), 7))
    np.testing.assert_allclose(parts[0].write_norms, whole.write_norms[:, :7], rtol=1e-4)
    monkeypatch.setattr(watched_pass, "STREAM_BYTES", 1)  # room for one token's vectors
    np.testing.assert_allclose(stream(runner).norms, whole.norms, rtol=1e-4)
    some = stream(runner, slots=(3, 11))
    assert some.slots == (3, 11)
    np.testing.assert_allclose(some.write_norms, whole.write_norms[:, [3, 11]], rtol=1e-4)


def test_a_model_with_norms_after_its_sums_is_refused_in_words() -> None:
    runner = runner_on(architectures.tiny("bert"))
    with pytest.raises(BadInput, match="In layer 0 of this model no outputs"):
        stream(runner)


def test_a_layer_that_writes_otherwise_on_this_run_is_refused() -> None:
    runner = tiny_runner("llama")
    stream(runner)
    layer = runner.model.model.layers[1]
    handle = layer.register_forward_hook(lambda module, args, output: output * 1.5)
    try:
        with pytest.raises(BadInput, match="does not add up"):
            stream(runner)
    finally:
        handle.remove()


def test_cancel_ends_it() -> None:
    asked = ReadStream(request=RunRequest(prompt=TEXT))
    with pytest.raises(Cancelled):
        residual.read(runner_of("llama"), asked, nobody, lambda: True)


def test_the_smallest_sum_with_the_plainest_factors_is_taken() -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 12, 8))
    exact = np.zeros((12, 8))
    found = find_sum([a, b, c, a + b], a + b, exact, 1e-9)
    assert found is not None
    assert found[0] == (3,)
    found = find_sum([a, b, c], 0.5 * a + b, exact, 1e-9)
    assert found is not None
    places, factors, gap = found
    assert places == (0, 1)
    assert factors.tolist() == pytest.approx([0.5, 1])
    assert gap < 1e-9
    assert find_sum([a, b, c], a - b, exact, 1e-9) is None
    assert find_sum([a, b], a + b + c, exact, 1e-2) is None
    assert find_sum([], a, exact, 1e-9) is None


def test_a_huge_stream_may_lose_what_its_rounding_takes() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 12, 8))
    lost = np.zeros((12, 8))
    lost[:, 3] = 1e-3
    off = a + b
    off[:, 3] += 9e-4
    assert find_sum([a, b], off, lost, 1e-6) is not None
    assert find_sum([a, b], off, np.zeros((12, 8)), 1e-6) is None
