"""Small damage to a model's files, drawn from a seed: bytes for any file, values for JSON."""

from __future__ import annotations

import json
import random
from typing import Any

_NUMBERS = (0, 1, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 31, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)
_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 7, 3.5, 1e308, 2**31, 2**40, 2**63, 500_000_000, 200_000_000, "", "x",
    "\x00", "\u20ac" * 50, [], {}, [[]], [0], ["a", "b"], {"a": 1}, "9" * 5000, [None] * 3,
)  # fmt: skip


def mutant(data: bytes, draw: random.Random, is_json: bool = False) -> bytes:
    """`data` with one to three things wrong with it."""
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        if is_json and draw.random() < 0.8:
            data = _changed_json(data, draw)
        else:
            data = draw.choice(_BYTES)(data, draw)
    return data


def _flip(data: bytes, draw: random.Random) -> bytes:
    if not data:
        return data
    changed = bytearray(data)
    # The head of a file says what the rest is: it is hit more often.
    last = draw.choice((min(64, len(data)), min(2048, len(data)), len(data)))
    changed[draw.randrange(last)] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _number(data: bytes, draw: random.Random) -> bytes:
    width = draw.choice((4, 8))
    if len(data) < width:
        return data
    at = draw.randrange(min(len(data), draw.choice((64, 4096, len(data)))))
    written = (draw.choice(_NUMBERS) % (1 << 8 * width)).to_bytes(width, "little")
    return data[:at] + written + data[at + width :]


def _cut(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _lost(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + data[at + draw.choice((1, 8, 100)) :]


def _doubled(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + data[at : at + draw.choice((1, 8, 300))] * 2 + data[at:]


def _noise(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    noise = draw.randbytes(draw.choice((1, 4, 40)))
    return data[:at] + noise + data[at + len(noise) :]


_BYTES = (_flip, _flip, _number, _number, _cut, _lost, _doubled, _noise)


def _changed_json(data: bytes, draw: random.Random) -> bytes:
    try:
        value = json.loads(data)
    except ValueError:
        return _flip(data, draw)
    places = list(_places(value))
    if not places:
        return _flip(data, draw)
    holder, key = draw.choice(places)
    act = draw.randrange(4)
    if act == 0 and isinstance(holder, dict):
        del holder[key]
    elif act == 1 and isinstance(holder, dict):
        holder[f"{key}s"] = holder.pop(key)
    else:
        holder[key] = draw.choice(_VALUES)
    return json.dumps(value).encode()


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Where a value can be changed; of long lists and tables only a few entries."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        keys: Any = ()
        if isinstance(holder, dict):
            keys = list(holder)
        elif isinstance(holder, list):
            keys = range(len(holder))
        if len(keys) > 40:
            keys = [*keys[:3], *keys[-3:]]
        found += [(holder, key) for key in keys]
        waiting += [holder[key] for key in keys]
    return found
