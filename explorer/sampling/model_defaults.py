"""The sampling settings that a model's makers ship in its generation_config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from explorer.trace.request import Sampling

_KINDS: dict[str, type] = {
    "temperature": float,
    "top_k": int,
    "top_p": float,
    "min_p": float,
    "repetition_penalty": float,
}
SETTINGS = ("do_sample", *_KINDS)
NOT_HERE: dict[str, float] = {
    "no_repeat_ngram_size": 0,
    "typical_p": 1,
    "num_beams": 1,
    "min_length": 0,
    "min_new_tokens": 0,
    "epsilon_cutoff": 0,
    "eta_cutoff": 0,
    "encoder_repetition_penalty": 1,
}
"""Settings of generate() that this program lacks, with the value that changes nothing."""


def model_defaults(given: Mapping[str, object]) -> dict[str, float | bool | int]:
    """Of a generation_config, the settings this program has, in its own names and types.

    As in generate(), a repetition penalty by itself goes with taking the best token.
    """
    found: dict[str, float | bool | int] = {}
    for name, kind in _KINDS.items():
        value = given.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[name] = kind(value)
    if isinstance(given.get("do_sample"), bool):
        found["greedy"] = not given["do_sample"]
    elif found:
        found["greedy"] = found.keys() == {"repetition_penalty"}
    return found


def left_out(given: Mapping[str, object], sampling: Sampling) -> str:
    """One sentence if `sampling` picks otherwise than the model's makers say; else empty."""
    own: dict[str, Any] = {**model_defaults(given)}
    asked = Sampling(**own)
    # generate() takes the best token unless do_sample is stated, whatever else is.
    drawn = given.get("do_sample") is True
    generated = asked if drawn else msgspec.structs.replace(asked, greedy=True)
    plain = _effect(generated) == _effect(Sampling())
    applied = plain or _effect(sampling) in (_effect(asked), _effect(generated))
    missing = {name: given[name] for name in NOT_HERE if name in given}
    if applied and not missing:
        return ""
    words = ", ".join([*_words(generated), *(f"{name} {value}" for name, value in missing.items())])
    if applied:
        names = " and ".join(missing)
        return (
            f"The model recommends settings ({words}) that include {names}, which this "
            "program does not support."
        )
    return (
        f"The model's recommended settings ({words}) are not applied, so its generate() "
        "may choose other tokens. Use trace --model-defaults to apply them."
    )


def _effect(sampling: Sampling) -> tuple[float, ...]:
    """What of the settings changes which token is picked."""
    if sampling.takes_best:
        return (sampling.repetition_penalty,)
    drawn = sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p
    return (sampling.repetition_penalty, *drawn)


def _words(sampling: Sampling) -> list[str]:
    neutral = Sampling()
    names = [name for name in _KINDS if getattr(sampling, name) != getattr(neutral, name)]
    if sampling.takes_best:
        names = [name for name in names if name == "repetition_penalty"]
    found = [f"{name.replace('_', '-')} {getattr(sampling, name):g}" for name in names]
    return ["greedy" if sampling.takes_best else "sampled", *found]
