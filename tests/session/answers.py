"""A right answer to each experiment, as an engine sends it."""

from __future__ import annotations

from typing import Any

import numpy as np

from explorer.trace.experiments import (
    CacheExperiment,
    CheckInputs,
    ComparePolicies,
    DrawMany,
    Experiment,
    PrefixExperiment,
    ReadSlot,
    ScorePrompt,
    ScorePrompts,
    SearchSequences,
)

_SEQUENCE = {"ids": [1, 2], "raw": [b" a", b" b"], "log_probability": -2.3, "probability": 0.1}
_PART = {"heads": 1, "width": 4, "numbers": np.arange(4, dtype="<f4").tobytes()}

ANSWERS: dict[type[Experiment], dict[str, Any]] = {
    DrawMany: {
        "count": 10, "asked": 10, "length": 1, "passes": 1, "distinct": 1,
        "first": [{"id": 1, "raw": b" a", "exact": 0.7, "raw_probability": 0.6, "drawn": 10}],
        "continuations": [{"ids": [1], "raw": b" a", "drawn": 10}],
    },
    SearchSequences: {
        "length": 2, "width": 4, "passes": 9, "greedy": _SEQUENCE, "best": _SEQUENCE,
        "beats_greedy": False, "proven": True, "bound": 0.1,
    },
    PrefixExperiment: {
        "tokens": 4, "note": "", "why": "",
        "masked": {"layers": [0.0, 0.0], "logits": 0.0, "logits_abs": 0.0},
        "unmasked": {"layers": [0.0, 0.5], "logits": 0.1, "logits_abs": 2.0},
    },
    ScorePrompt: {
        "slots": [1], "nats": [1.5], "entropy_bits": [2.0], "ranks": [3], "top": [[[1, 0.5]]],
        "passes": 1,
    },
    ScorePrompts: {
        "asked": 1,
        "rows": [
            {"prompt": "a", "tokens": 2, "id": 1, "raw": b" a", "probability": 0.5,
             "mean_nats": 1.5, "answer": 0.25, "ms": 3.0, "problem": ""},
        ],
    },
    CacheExperiment: {
        "prompt": 2, "tokens": 1, "ids": [5], "same_tokens": True,
        "cached": {"positions": [2], "ms": [5.0]}, "uncached": {"positions": [2], "ms": [6.0]},
    },
    CheckInputs: {
        "tolerance": 1e-4,
        "rows": [
            {
                "verdict": "right", "readout": 1, "attention_mask": [1, 1], "position_ids": [0, 1],
                "difference": 0.0, "last_slot_difference": 0.0, "next_id": 5, "next_id_alone": 5,
            }
        ],
    },
    ComparePolicies: {
        "tokens": 3, "slots": [1, 2], "first_keys": 1,
        "sides": [
            {"name": "refuse", "kept": 0, "sinks": 0, "distances": "text",
             "nats": [1.5, 2.5], "cache_bytes": 192,
             "first_attention": 0.3},
            {"name": "window", "kept": 2, "sinks": 0, "distances": "text",
             "nats": [1.5, 4.5],
             "cache_bytes": 128, "first_attention": 0.1},
        ],
    },
    ReadSlot: {"slot": 0, "layers": [{"key": _PART, "value": _PART}, {"reason": "a state"}]},
}  # fmt: skip
