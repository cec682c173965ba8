"""How weights become colours: which share of a colour scale a weight has.

fixed       0 to 100 %: colours of all maps compare
max         0 to the map's largest weight
row         0 to each row's own largest weight: rows do not compare
log         logarithmic from FLOOR to 100 %, a fifth of the scale for a factor of ten
"""

from __future__ import annotations

from typing import Literal

import numpy as np

Scale = Literal["fixed", "max", "row", "log"]
DECADES = 5
FLOOR = 10.0**-DECADES  # the logarithmic scale shows this and less as nothing


def row_tops(weights: np.ndarray) -> np.ndarray:
    """(R, 1) float32: the largest weight of each row, of a difference the largest change.

    1 for a row without any, so that it can be divided by.
    """
    tops = np.maximum(weights.max(axis=-1, initial=0), -weights.min(axis=-1, initial=0))
    return np.where(tops > 0, tops, np.float32(1))[..., None]


def scaled(weights: np.ndarray, scale: Scale, top: float | np.ndarray = 1.0) -> np.ndarray:
    """float32 from 0 to 1, of a difference from -1 to 1; `top` is the weight with a share of 1.

    `top` may differ from row to row; the logarithmic scale has its own.
    """
    if scale == "log":
        sizes = np.maximum(np.abs(weights), np.float32(FLOOR))
        found = np.log10(sizes, out=sizes)
        found *= np.float32(1 / DECADES)
        found += np.float32(1)
        return np.asarray(np.clip(np.copysign(found, weights), -1, 1))
    return np.clip(weights * (np.float32(1) / np.float32(top)), -1, 1)
