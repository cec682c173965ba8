"""Tiny files with one thing wrong in what they say of themselves, drawn from a seed.

Flipped bytes seldom hit a number that means something; here each hit does.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from tests.llama_engine.tiny_architectures import ARCHITECTURES, Architecture, Shapes

_WHOLE = (0, 1, 2, 3, 5, 7, 8, 12, 33, 48, 65, 100, 4096, 1 << 20, (1 << 31) - 1, (1 << 32) - 1)
_REAL = (0.0, -1.0, 1e-30, 1e30, float("nan"), float("inf"))


def wrong(name: str, draw: random.Random) -> tuple[Architecture, str]:
    """An architecture's description with one thing changed, and what that is."""
    made = ARCHITECTURES[name]()
    act = draw.choice((_number, _number, _number, _key, _tensor, _axis, _axis, _layer))
    return act(made, draw)


def _number(made: Architecture, draw: random.Random) -> tuple[Architecture, str]:
    key = draw.choice(sorted(made.numbers))
    value = made.numbers[key]
    changed: Any
    if isinstance(value, list):
        changed = draw.choice((value[:-1], [*value, 1], [draw.choice(_WHOLE) for _ in value], 2))
    else:
        changed = draw.choice(_REAL if isinstance(value, float) else _WHOLE)
    return replace(made, numbers={**made.numbers, key: changed}), f"{key} = {changed}"


def _key(made: Architecture, draw: random.Random) -> tuple[Architecture, str]:
    key = draw.choice(sorted(made.numbers))
    numbers = {name: value for name, value in made.numbers.items() if name != key}
    return replace(made, numbers=numbers), f"no {key}"


def _tensor(made: Architecture, draw: random.Random) -> tuple[Architecture, str]:
    number = draw.randrange(len(made.layers))
    gone = draw.choice(sorted(made.layers[number]))
    layer = {name: shape for name, shape in made.layers[number].items() if name != gone}
    return _with_layer(made, number, layer), f"no {gone}"


def _axis(made: Architecture, draw: random.Random) -> tuple[Architecture, str]:
    """One size of one tensor, in one layer or in all."""
    name = draw.choice(sorted(made.layers[0]))
    shape = list(made.layers[0][name])
    axis = draw.randrange(len(shape))
    shape[axis] = draw.choice((1, 2, 4, 8, 16, 32, 64, 96, 128, shape[axis] + 1, shape[axis] * 2))
    changed = made
    for number in range(len(made.layers) if draw.random() < 0.5 else 1):
        if name in made.layers[number]:
            layer = {**made.layers[number], name: tuple(shape)}
            changed = _with_layer(changed, number, layer)
    return changed, f"{name} {shape}"


def _layer(made: Architecture, draw: random.Random) -> tuple[Architecture, str]:
    number = draw.randrange(len(made.layers))
    other = ARCHITECTURES[draw.choice(sorted(ARCHITECTURES))]()
    return _with_layer(made, number, other.layers[0]), f"layer {number} of {other.name}"


def _with_layer(made: Architecture, number: int, layer: Shapes) -> Architecture:
    return replace(made, layers=(*made.layers[:number], layer, *made.layers[number + 1 :]))
