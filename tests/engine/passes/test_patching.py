"""Patches against the same done by hand in a plain transformers model, with hooks of this test.

A head's output is taken and put at the input of the output projection, an MLP's at the module that
writes to the residual stream, the stream's at the layer's output.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from explorer.engine.errors import BadInput
from explorer.engine.passes import chunked_prefill, interventions
from explorer.engine.passes.generate import next_pass
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import measured_gaps, selfcheck
from explorer.trace.interventions.kinds import OtherRun, Patch, Silence
from explorer.trace.request import RunRequest
from explorer.trace.trace import source_of
from tests.engine.architectures import tiny
from tests.engine.passes.test_interventions import IDS, LAYOUT, PROMPT, projection, run, runner_of
from tests.engine.tiny import KINDS, runner_on, tiny_model

OTHER = tuple(3 + 11 * i % 89 for i in range(12))
SOURCE = OtherRun(tokens=OTHER)
NEAR = 1e-5
MEAN = Silence(layer=0, head=1, by="mean")


def ours(kind: str, *patches: Patch, layout: Layout = LAYOUT) -> np.ndarray:
    request = RunRequest(interventions=patches)
    return measured_gaps.every_slot(runner_of(kind), request, layout, lambda: False).logits


def of(ids: tuple[int, ...]) -> Layout:
    return Layout(ids, (1,) * len(ids), tuple(range(len(ids))))


@functools.cache
def plain(kind: str) -> Any:
    model = tiny_model(kind)
    model.set_attn_implementation("eager")
    return model


@torch.inference_mode()
def logits(model: Any, ids: tuple[int, ...] = IDS) -> np.ndarray:
    return model(torch.tensor([ids]), use_cache=False).logits[0].numpy()


@contextlib.contextmanager
def hooked(*handles: Any) -> Iterator[None]:
    yield
    for handle in handles:
        handle.remove()


def by_hand(
    kind: str, part: str, layer: int, into: slice, taken: slice, head: int = 2
) -> np.ndarray:
    """Logits of IDS with what the part gave for OTHER."""
    model = plain(kind)
    block = runner_on(model).layers[layer]
    kept: list[torch.Tensor] = []

    def heads(module: Any, args: Any) -> Any:
        apart = args[0].clone().unflatten(-1, (4, -1))
        if not kept:
            kept.append(apart[0, taken, head].clone())
        else:
            apart[0, into, head] = kept[0]
        return (apart.flatten(-2),)

    def outputs(module: Any, args: Any, output: Any) -> Any:
        tensor = (output[0] if isinstance(output, tuple) else output).clone()
        if not kept:
            kept.append(tensor[0, taken].clone())
        else:
            tensor[0, into] = kept[0]
        return (tensor, *output[1:]) if isinstance(output, tuple) else tensor

    if part == "head":
        handle = projection(block).register_forward_pre_hook(heads)
    else:
        mlp = getattr(block, "post_feedforward_layernorm", block.mlp)
        handle = (mlp if part == "mlp" else block).register_forward_hook(outputs)
    with hooked(handle):
        logits(model, OTHER)
        return logits(model)


@pytest.mark.parametrize("part", ["head", "mlp", "stream"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_patched_part_gives_what_hooks_by_hand_give(kind: str, part: Any) -> None:
    layer = 1
    unpatched = logits(plain(kind))
    for into, first in (((4, 6), 4), ((7, 7), 2), (None, 0)):
        span = into or (0, len(OTHER) - 1)
        count = span[1] - span[0] + 1
        expected = by_hand(
            kind, part, layer, slice(span[0], span[1] + 1), slice(first, first + count)
        )
        patch = Patch(
            layer=layer, part=part, head=2 if part == "head" else 0, positions=into, first=first,
            source=SOURCE,
        )  # fmt: skip
        found = ours(kind, patch)
        np.testing.assert_allclose(found, expected, atol=NEAR)
        assert np.abs(found - unpatched).max() > 1e-3
        np.testing.assert_allclose(found[: span[0]], unpatched[: span[0]], atol=NEAR)


@pytest.mark.parametrize("kind", KINDS)
def test_from_itself_nothing_changes(kind: str) -> None:
    source = OtherRun(tokens=IDS)
    layers = range(3)
    every = [Patch(layer=layer, head=head, source=source) for layer in layers for head in range(4)]
    every += [Patch(layer=layer, part="mlp", source=source) for layer in layers]
    every += [Patch(layer=layer, part="stream", source=source) for layer in layers]
    np.testing.assert_array_equal(ours(kind, *every), ours(kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layer", range(3))
def test_the_whole_stream_of_any_layer_gives_the_other_runs_logits(kind: str, layer: int) -> None:
    found = ours(kind, Patch(layer=layer, part="stream", source=SOURCE))
    np.testing.assert_array_equal(found, ours(kind, layout=of(OTHER)))


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_every_write_of_a_layer_and_the_stream_before_it_make_its_stream(kind: str) -> None:
    before = Patch(layer=0, part="stream", source=SOURCE)
    writes = [Patch(layer=1, head=head, source=SOURCE) for head in range(4)]
    writes.append(Patch(layer=1, part="mlp", source=SOURCE))
    mixed = ours(kind, *writes)
    whole = ours(kind, before, *writes)
    np.testing.assert_array_equal(whole, ours(kind, layout=of(OTHER)))
    assert np.abs(mixed - whole).max() > 1e-2, "without it the text's own stream is below them"


def patches(source: OtherRun) -> tuple[Patch, ...]:
    return (
        Patch(layer=0, head=1, positions=(2, 3), first=4, source=source),
        Patch(layer=1, part="mlp", positions=(5, 5), first=5, source=source),
        Patch(layer=1, part="stream", positions=(9, 10), first=8, source=source),
        Patch(layer=2, head=3, source=source),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_cached_equals_uncached_and_the_proof_holds(kind: str) -> None:
    runner = runner_of(kind)
    request = RunRequest(interventions=patches(SOURCE), prompt=PROMPT)
    cached = run(runner, request)
    bare = run(runner, msgspec.structs.replace(request, cache=False))
    assert [step.phase for step in cached.steps[1:]] == ["decode"] * 4
    for one, other in zip(cached.steps, bare.steps, strict=True):
        np.testing.assert_allclose(one.logits, other.logits, atol=1e-4)
    free = run(runner, RunRequest(prompt=PROMPT))
    assert np.abs(free.steps[0].logits - cached.steps[0].logits).max() > 1e-2
    found = {c.name: c for c in selfcheck.check(runner, request, cached.chosen_ids)}
    assert all(check.passed for check in found.values()), found
    assert {"kernel_output", "eager_weights", "cached_equals_uncached"} <= found.keys()


def test_a_long_prompt_in_chunks_is_patched_at_the_same_positions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = runner_of("llama")
    request = RunRequest(interventions=patches(SOURCE), prompt=PROMPT)
    whole = run(runner, request, 1)
    monkeypatch.setattr(chunked_prefill, "WHOLE", 4)
    monkeypatch.setattr(chunked_prefill, "CHUNK", 3)
    parts = run(runner, request, 1)
    assert "chunks" in parts.steps[0].note
    np.testing.assert_allclose(parts.steps[0].logits, whole.steps[0].logits, atol=1e-4)


def test_the_other_run_is_read_once_for_all_patches_and_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = runner_of("llama")
    read: list[tuple[int, ...]] = []
    model: Callable[..., Any] = runner.model.forward

    def noted(*args: Any, **kwargs: Any) -> Any:
        read.append(tuple(kwargs["input_ids"][0].tolist()))
        return model(*args, **kwargs)

    monkeypatch.setattr(runner.model, "forward", noted)
    fresh = OtherRun(tokens=OTHER[::-1])
    request = RunRequest(interventions=patches(fresh), prompt=PROMPT)
    run(runner, request, 3)
    assert read.count(fresh.tokens) == 1
    run(runner, RunRequest(prompt=PROMPT), 1)
    run(runner, request, 1)
    assert read.count(fresh.tokens) == 1, "another run between does not matter"


def test_the_other_run_is_run_as_it_was() -> None:
    """With its own interventions, and without the mask if it had none."""
    runner = runner_of("llama")
    silent = (Silence(layer=0, head=1), Silence(layer=1, part="mlp"))
    for request in (
        RunRequest(prompt=PROMPT, interventions=silent),
        RunRequest(prompt=PROMPT, causal_mask=False),
    ):
        other = run(runner, request, 2)
        source = source_of(other)
        assert source.tokens == tuple(token.id for token in other.tokens[:-1])
        text = " ".join(map(str, OTHER[:9]))
        patch = Patch(layer=2, part="stream", source=source)
        found = run(runner, RunRequest(prompt=text, interventions=(patch,)), 1)
        np.testing.assert_allclose(found.steps[0].logits, other.steps[1].logits, atol=NEAR)


def test_no_patch_is_taken_from_a_run_whose_turns_were_left_out() -> None:
    other = run(runner_of("llama"), RunRequest(prompt=PROMPT), 2)
    steps = (other.steps[0], replace(other.steps[1], left_out=((1, 3),)))
    with pytest.raises(ValueError, match="Turns were left out"):
        source_of(replace(other, steps=steps))


def test_no_patch_is_taken_from_a_run_with_moved_positions() -> None:
    other = run(runner_of("gpt2"), RunRequest(prompt=PROMPT, position_offset=3), 1)
    with pytest.raises(ValueError, match="positions are moved"):
        source_of(other)


def test_the_last_of_two_changes_of_one_part_counts() -> None:
    runner = runner_of("llama")
    patch, silence = Patch(layer=1, part="mlp", source=SOURCE), Silence(layer=1, part="mlp")

    def found(*asked: Any) -> np.ndarray:
        return next_pass(runner, RunRequest(interventions=asked, cache=False), LAYOUT, 0).logits

    np.testing.assert_array_equal(found(silence, patch), found(patch))
    np.testing.assert_array_equal(found(patch, silence), found(silence))
    head, silent = Patch(layer=1, head=2, source=SOURCE), Silence(layer=1, head=2)
    np.testing.assert_array_equal(found(silent, head), found(head))
    np.testing.assert_array_equal(found(head, silent), found(silent))


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        (Patch(layer=3, part="mlp", source=SOURCE), "layers 0 to 2"),
        (Patch(layer=1, head=4, source=SOURCE), "Layer 1 has heads 0 to 3, no head 4"),
        (Patch(layer=1, source=OtherRun(tokens=(5, 96))), "no token 96"),
        (Patch(layer=1, positions=(0, 1), first=11, source=SOURCE), "no position 12"),
        (Patch(layer=1, source=OtherRun(tokens=(5,) * 65)), "at most 64"),
        (Patch(layer=1, source=OtherRun(tokens=OTHER, interventions=(MEAN,))), "its mean"),
        (
            Patch(layer=1, source=OtherRun(tokens=OTHER, interventions=(Silence(layer=9),))),
            "layers 0 to 2",
        ),
    ],
)
def test_what_can_not_be_patched_is_refused_in_words(patch: Patch, words: str) -> None:
    runner, request = runner_of("llama"), RunRequest(interventions=(patch,), prompt=PROMPT)

    def refuse() -> None:
        interventions.require_possible(runner, request)  # as the dispatcher does
        run(runner, request, 1)

    with pytest.raises(BadInput, match=words):
        refuse()


def test_a_runner_without_findings_patches_nothing() -> None:
    from tests.engine.tiny import tiny_runner

    request = RunRequest(interventions=(Patch(layer=0, source=SOURCE),))
    with pytest.raises(BadInput, match=r"'patch 0\.0:\*<-\*' is not possible here"):
        interventions.require_possible(tiny_runner("llama"), request)


def test_runners_do_not_share_what_was_taken() -> None:
    one, other = (Runner(runner_of(kind).loaded) for kind in ("llama", "mistral"))
    assert one.sources is not other.sources


def test_a_layer_that_runs_more_than_once_is_patched_with_what_it_gave_each_time() -> None:
    """A dory's middle layers do: from its own text nothing may change."""
    runner = runner_on(tiny("dory"))
    source = OtherRun(tokens=IDS)
    every = tuple(
        Patch(layer=layer, part="stream", source=source) for layer in range(len(runner.layers))
    )
    plain, patched = (
        measured_gaps.every_slot(runner, RunRequest(interventions=asked), LAYOUT, lambda: False)
        for asked in ((), every)
    )
    assert len(set(plain.recorder.visited)) < len(plain.recorder.visited)
    np.testing.assert_array_equal(patched.logits, plain.logits)
