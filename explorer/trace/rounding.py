"""How far two passes over the same tokens may differ by rounding alone."""

from __future__ import annotations

import numpy as np

from explorer.trace.request import RunRequest

USUAL_LOGITS = 10.0
TOLERANCE = {"float32": 1e-4, "float16": 5e-2, "bfloat16": 0.5, "as-is": 0.2}


def arithmetic(request: RunRequest) -> str:
    """What a run is computed in, as `tolerance` asks for it."""
    return request.form if request.form == "as-is" else request.dtype


def tolerance(dtype: str) -> float:
    """Largest difference in logits that counts as equal, by dtype; of a file as it is: "as-is"."""
    return TOLERANCE.get(dtype, 1e-4)


def logit_tolerance(dtype: str, logits: np.ndarray) -> float:
    """The same for these logits: rounding grows with them, a part in 100,000 in float32."""
    return tolerance(dtype) * max(1.0, largest(logits) / USUAL_LOGITS)


def largest(difference: np.ndarray) -> float:
    """The largest absolute entry; inf where anything is not a number."""
    if difference.size == 0:
        return 0.0
    return float(np.abs(difference).max()) if np.isfinite(difference).all() else float("inf")
