"""What a cache would take: the formula, with windows, groups of heads and recurrent states."""

from __future__ import annotations

import msgspec
import pytest

from explorer.figures.cost.cache_estimate import what_if
from tests.session.scripted import card

SMOLLM2 = card(
    layers=30, heads=9, kv_heads=3, head_dim=64, kv_bytes_per_token=46_080, context=8192,
    layer_kinds=("full",) * 30, windows=(0,) * 30,
)  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "batch", "length", "size"),
    [
        ("float32", 1, 1, 46_080),
        ("float32", 1, 8192, 46_080 * 8192),
        ("bfloat16", 4, 100, 46_080 * 200),
        ("float16", 1, 100, 46_080 * 50),
    ],
)
def test_dtype_batch_and_length_are_factors(dtype: str, batch: int, length: int, size: int) -> None:
    found = what_if(SMOLLM2, dtype, batch, length)
    assert found is not None
    assert found.total == found.keys_values == size
    assert found.as_mha == 3 * size


def test_a_window_stops_growing() -> None:
    mixed = msgspec.structs.replace(
        SMOLLM2, layer_kinds=("sliding",) * 15 + ("full",) * 15, windows=(512,) * 15 + (0,) * 15
    )
    short, long = (what_if(mixed, "float32", 1, n) for n in (100, 10_000))
    assert short is not None
    assert long is not None
    assert short.total == 100 * 46_080
    assert long.total == (15 * 511 + 15 * 10_000) * 1536


def test_recurrent_states_are_those_that_were_measured() -> None:
    hybrid = msgspec.structs.replace(
        SMOLLM2, layer_kinds=("linear",) * 29 + ("full",), kv_bytes_per_token=1536
    )
    unseen = what_if(hybrid, "float32", 2, 10)
    assert unseen is not None
    assert unseen.states is None
    seen = what_if(hybrid, "float32", 2, 10, (1000,) * 29 + (99,))
    assert seen is not None
    assert (seen.keys_values, seen.states) == (2 * 10 * 1536, 2 * 29_000)


def test_a_latent_is_shared_by_all_heads_as_it_is() -> None:
    latent = msgspec.structs.replace(SMOLLM2, latent_width=576, kv_bytes_per_token=30 * 576 * 4)
    found = what_if(latent, "bfloat16", 1, 1)
    assert found is not None
    assert found.total == 30 * 576 * 2
    assert found.as_mha is None


def test_layers_that_differ_have_no_formula() -> None:
    odd = msgspec.structs.replace(SMOLLM2, kv_bytes_per_token=46_081)
    assert what_if(odd, "float32", 1, 1) is None
