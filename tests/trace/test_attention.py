"""Maps from queries, keys and masks against torch's own attention."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from explorer.trace.attention import LayerRecord, Mask, as_float32, softmax_rows, weights

RNG = np.random.default_rng(0)


def record(
    queries: int, keys: int, heads: int = 4, kv_heads: int = 2, **more: object
) -> LayerRecord:
    return LayerRecord(
        layer=0,
        kind="qk",
        queries=RNG.standard_normal((queries, heads, 8)).astype(np.float32),
        keys=RNG.standard_normal((keys, kv_heads, 8)).astype(np.float32),
        scaling=0.35,
        **more,  # type: ignore[arg-type]
    )


def by_torch(one: LayerRecord, head: int, allowed: np.ndarray | None) -> np.ndarray:
    """Weights as sdpa gives them, read off with the identity as values."""
    assert one.queries is not None
    assert one.keys is not None
    q = torch.tensor(one.queries[:, head])[None]
    group = one.queries.shape[1] // one.keys.shape[1]
    k = torch.tensor(one.keys[:, head // group])[None]
    mask = None if allowed is None else torch.tensor(allowed)[None]
    eye = torch.eye(k.shape[1])[None]
    out = torch.nn.functional.scaled_dot_product_attention(
        q, k, eye, attn_mask=mask, scale=one.scaling
    )
    return out[0].numpy()


@pytest.mark.parametrize("head", range(4))
def test_causal_map_equals_torch_and_is_exactly_zero_above(head: int) -> None:
    one = record(7, 7, mask=Mask("causal", 7, 7))
    assert one.keys is not None
    ours = weights(one, one.keys, head)
    np.testing.assert_allclose(ours, by_torch(one, head, np.tri(7, dtype=bool)), atol=1e-6)
    assert (ours[np.triu_indices(7, 1)] == 0).all()
    np.testing.assert_allclose(ours.sum(axis=1), 1, atol=1e-6)


def test_bits_hold_any_pattern_with_odd_widths() -> None:
    allowed = RNG.random((5, 11)) > 0.4
    allowed[:, 0] = True
    mask = Mask.of_bits(allowed)
    np.testing.assert_array_equal(mask.allowed(), allowed)
    one = record(5, 11, mask=mask)
    assert one.keys is not None
    np.testing.assert_allclose(weights(one, one.keys, 3), by_torch(one, 3, allowed), atol=1e-6)
    np.testing.assert_array_equal(mask.allowed(slice(2, 4)), allowed[2:4])


def test_unmasked_view_of_the_same_scores() -> None:
    one = record(6, 6, mask=Mask("causal", 6, 6))
    assert one.keys is not None
    free = weights(one, one.keys, 1, masked=False)
    np.testing.assert_allclose(free, by_torch(one, 1, None), atol=1e-6)
    assert (free[np.triu_indices(6, 1)] > 0).all()


def test_rows_can_be_asked_for_alone() -> None:
    one = record(6, 6, mask=Mask("causal", 6, 6))
    assert one.keys is not None
    whole = weights(one, one.keys, 2)
    row = weights(one, one.keys, 2, slice(4, 5))
    np.testing.assert_allclose(row, whole[4:5], atol=1e-6)


def test_additive_masks_keep_their_values_and_hide_what_is_minimal() -> None:
    values = RNG.standard_normal((4, 5, 5)).astype(np.float32)
    values[:, 0, 4] = np.finfo(np.float32).min
    one = record(5, 5, mask=Mask("values", 5, 5, values))
    assert one.keys is not None
    ours = weights(one, one.keys, 2)
    np.testing.assert_allclose(ours, by_torch(one, 2, values[2]), atol=1e-6)
    assert ours[0, 4] == 0


def test_a_row_that_may_read_nothing_is_zero_and_never_nan() -> None:
    allowed = np.tri(4, dtype=bool)
    allowed[0] = False
    one = record(4, 4, mask=Mask.of_bits(allowed))
    assert one.keys is not None
    ours = weights(one, one.keys, 0)
    assert np.isfinite(ours).all()
    assert (ours[0] == 0).all()


def test_a_sink_takes_its_share_of_each_row() -> None:
    scored = np.array([[1.0, 2.0]], np.float32)
    row = softmax_rows(scored, sink=0.5)[0]
    whole = torch.softmax(torch.tensor([1.0, 2.0, 0.5]), 0).numpy()
    np.testing.assert_allclose(row, whole[:2], atol=1e-6)


def test_softcap_squeezes_scores() -> None:
    one = record(3, 3, softcap=2.0, mask=Mask("none", 3, 3))
    assert one.keys is not None
    assert one.queries is not None
    raw = one.queries[:, 0] @ one.keys[:, 0].T * 0.35
    expected = torch.softmax(torch.tensor(np.tanh(raw / 2) * 2), -1).numpy()
    np.testing.assert_allclose(weights(one, one.keys, 0), expected, atol=1e-6)


def test_absent_layers_say_why() -> None:
    one = LayerRecord(layer=3, kind="absent", reason="a recurrent layer")
    with pytest.raises(ValueError, match="a recurrent layer"):
        weights(one, np.empty(0), 0)


def test_bfloat16_bits_are_exact() -> None:
    values = torch.randn(100).to(torch.bfloat16)
    bits = values.view(torch.int16).numpy().view(np.uint16)
    np.testing.assert_array_equal(as_float32(bits, "bfloat16"), values.float().numpy())
