"""Times by part from the moments at which their last nodes were computed."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.llama_engine.passes.part_times import HEAD, NORM, OUTPUT, PartTimes


def test_parts_lie_between_the_ends_and_calls_add_up() -> None:
    times = PartTimes(2)
    for began in (1.0, 5.0):
        ends = {(OUTPUT, 0): began + 0.2, (OUTPUT, 1): began + 0.5, (NORM, -1): began + 0.6,
                (HEAD, -1): began + 1.0}  # fmt: skip
        times.add(ends, {0, 1}, began)
    np.testing.assert_allclose(times.layer_ms, [400, 600], rtol=1e-5)
    assert times.norm_ms == pytest.approx(200)
    assert times.head_ms == pytest.approx(800)


def test_what_the_clock_tells_backwards_took_no_time() -> None:
    times = PartTimes(1)
    times.add({(OUTPUT, 0): 1.2, (NORM, -1): 1.3, (HEAD, -1): 1.2999974}, {0}, 1.0)
    assert times.head_ms == 0.0
    assert times.norm_ms == pytest.approx(100)


def test_a_layer_whose_end_has_no_name_is_not_known() -> None:
    times = PartTimes(2)
    times.add({(OUTPUT, 1): 1.5, (NORM, -1): 1.6}, {0, 1}, 1.0)
    assert np.isnan(times.layer_ms).all()
    assert times.norm_ms == pytest.approx(100)
    assert times.head_ms is None
