"""Without causality, windows, chunks and padding stay; everything is put back exactly."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AttentionInterface, masking_utils
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

from explorer.engine.passes import masks
from explorer.engine.passes.generate import forward, one_step
from explorer.engine.passes.layout import lay_out
from explorer.trace.request import RunRequest, Sampling
from tests.engine.architectures import tiny
from tests.engine.tiny import runner_on, tiny_model, tiny_runner

BEHIND = np.subtract.outer(np.arange(12), np.arange(12))


def cells(mask_function: masks.MaskFunction) -> np.ndarray:
    """(12, 12) bool: what the mask function allows."""
    place = torch.arange(12)
    at = torch.zeros((), dtype=torch.long)
    return np.array([[bool(mask_function(at, at, q, k)) for k in place] for q in place])


def test_a_plain_mask_opens() -> None:
    assert cells(masks.without_causality(masking_utils.causal_mask_function)).all()


def test_a_window_looks_both_ways() -> None:
    window = masking_utils.sliding_window_causal_mask_function(5)
    np.testing.assert_array_equal(cells(window), (BEHIND >= 0) & (BEHIND < 5))
    np.testing.assert_array_equal(cells(masks.without_causality(window)), np.abs(BEHIND) < 5)


def test_chunks_stay_chunks() -> None:
    left = torch.zeros(1, dtype=torch.long)
    chunked = masking_utils.chunked_causal_mask_function(4, left)
    chunk = np.arange(12) // 4
    same = np.equal.outer(chunk, chunk)
    np.testing.assert_array_equal(cells(chunked), same & (BEHIND >= 0))
    np.testing.assert_array_equal(cells(masks.without_causality(chunked)), same)


def test_what_has_a_window_is_told_from_what_has_none() -> None:
    left = torch.zeros(1, dtype=torch.long)
    window = masking_utils.sliding_window_causal_mask_function(5)
    assert masks.is_windowed(window)
    assert masks.is_windowed(masking_utils.chunked_causal_mask_function(4, left))
    assert masks.is_windowed(masking_utils.add_offsets_to_mask_function(window, 3, 0))
    assert not masks.is_windowed(masking_utils.causal_mask_function)


@pytest.mark.parametrize(("kind", "windowed"), [("llama", False), ("mistral", True)])
def test_windows_longer_than_the_pass_are_seen(kind: str, windowed: bool) -> None:
    model = tiny_model(kind, **({"sliding_window": 60} if windowed else {}))
    ids = torch.arange(5, 12)[None]
    with masks.watching(model) as seen, torch.inference_mode():
        model(ids, use_cache=False)
    assert bool(seen) is windowed


def test_windows_kept_in_buffers_are_seen_and_stay() -> None:
    model = tiny("gpt_neo")
    local = dict(model.named_buffers())["transformer.h.1.attn.attention.bias"]
    before = local.clone()
    with masks.watching(model) as seen:
        pass
    assert seen
    with masks.causal_off(model):
        width = len(local[0, 0])
        behind = np.subtract.outer(np.arange(width), np.arange(width))
        np.testing.assert_array_equal(local[0, 0].numpy() != 0, np.abs(behind) < 16)
    assert torch.equal(local, before)


def test_every_way_of_making_a_mask_is_put_back_after_a_fault() -> None:
    model = tiny_model("llama")
    before = dict(ALL_MASK_ATTENTION_FUNCTIONS._global_mapping)
    with pytest.raises(RuntimeError, match="boom"), masks.causal_off(model):
        raise RuntimeError("boom")
    assert before == ALL_MASK_ATTENTION_FUNCTIONS._global_mapping


def test_padding_stays_hidden_without_the_mask() -> None:
    runner = tiny_runner("llama")
    request = RunRequest(prompt="5 6 7 8", causal_mask=False, padding="left", pad=2)
    layout = lay_out((5, 6, 7, 8), (), request, 0)
    trace_mask = one_step(runner, request, layout, 0, Sampling()).layers[0].mask
    assert trace_mask is not None
    allowed = trace_mask.allowed()[2:]
    np.testing.assert_array_equal(allowed, [[False, False, True, True, True, True]] * 4)


def test_the_registry_holds_nothing_of_ours_between_passes() -> None:
    before = dict(AttentionInterface._global_mapping)
    runner = runner_on(tiny_model("llama"))
    layout = lay_out((5, 6, 7), (), RunRequest(), 0)
    forward(runner, RunRequest(), layout, 0, None)
    assert before == AttentionInterface._global_mapping
