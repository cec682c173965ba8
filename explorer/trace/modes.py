"""The engine's named modes: which kernels a decode step runs on, and what that changes."""

from __future__ import annotations

from typing import Literal

Mode = Literal["exact", "fast", "rounded"]

MODES: dict[Mode, str] = {
    "exact": "the library's own kernels",
    "fast": "float32 as in exact mode, but decode uses this program's own kernels",
    "rounded": "fast kernels on weights rounded to float16; this changes the model's numbers",
}
"""Each mode in a few words; the first is the default."""

NOT_MEASURED = "not measured yet on this machine"
