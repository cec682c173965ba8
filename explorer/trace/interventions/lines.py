"""Interventions from text, one line each, in commands, scenes and results alike.

    silence 1.0           head 0 of layer 1 gives nothing
    silence 1.mlp         the MLP of layer 1 writes nothing
    silence 1             layer 1 passes its input on
    cut 1.0:5<-3          position 5 does not attend to position 3 there
    allow *.*:5<-7        position 5 attends to position 7 in every layer and head
    scale 1.0:2           scores are twice as large: attention is sharper

Layers, heads and positions are counted from 0.  `*` is all of them, `3-5` a range, `q-1` the key
one back from the query, and `q-4+` every key four or more back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial

from explorer.trace.interventions.kinds import MOST, Cells, Intervention, Scale, Silence, Span


def read(line: str) -> Intervention:
    """An intervention from its line of text; ValueError with a sentence if it is none."""
    kind, _, rest = line.strip().partition(" ")
    if kind in ("cut", "allow"):
        return read_cells(rest, kind == "allow")
    if kind == "silence":
        return read_silence(rest)
    if kind == "scale":
        return read_scale(rest)
    raise ValueError(
        f"{line[:80]!r} is no intervention. Write for example 'silence 1.0' or 'cut 1.0:5<-3'."
    )


def read_silence(text: str) -> Silence:
    """`L.H`, `L.mlp` or `L`; ValueError with a sentence for anything else."""
    found = re.fullmatch(r"(\d{1,9})(?:\.(\d{1,9}|mlp))?", text.strip())
    if not found:
        raise ValueError(
            f"{text[:80]!r} names no part of the model. Write layer and head as 1.0, an MLP as "
            "1.mlp, a whole layer as 1."
        )
    layer, part = int(found[1]), found[2]
    if part is None:
        return Silence(layer=layer, part="layer")
    return (
        Silence(layer=layer, part="mlp") if part == "mlp" else Silence(layer=layer, head=int(part))
    )


def read_cells(text: str, allowed: bool = False) -> Cells:
    """`L.H:q<-k`; ValueError with a sentence for anything else."""
    number = r"\d{1,9}"
    span = rf"\*|{number}(?:-{number})?"
    back = rf"q-{number}(?:\+|-{number})?"
    found = re.fullmatch(
        rf"(\*|{number})\.(\*|{number})\s*:\s*({span})\s*<-\s*({span}|{back})", text.strip()
    )
    if not found:
        raise ValueError(
            f"{text[:80]!r} names no cells. Write layer, head, query and key as 1.0:5<-3; * is "
            "all, 3-5 a range."
        )
    layer, head, queries, keys = found.groups()
    of: dict[str, Span | None] = {"keys": None, "back": None}
    if keys.startswith("q-"):
        bare = keys.removeprefix("q-")
        of["back"] = (int(bare[:-1]), MOST) if bare.endswith("+") else _read_span(bare, text)
    else:
        of["keys"] = _read_span(keys, text)
    return Cells(
        layer=_read_index(layer),
        head=_read_index(head),
        queries=_read_span(queries, text),
        allowed=allowed,
        **of,
    )


def read_scale(text: str) -> Scale:
    """`L.H:factor`; ValueError with a sentence for anything else."""
    found = re.fullmatch(r"(\*|\d{1,9})\.(\*|\d{1,9})\s*:\s*([0-9.eE+-]{1,20})", text.strip())
    try:
        factor = float(found[3]) if found else math.nan
    except ValueError:
        factor = math.nan
    if found is None or not 0 <= factor <= 1e6:
        raise ValueError(
            f"{text[:80]!r} names no scale. Write layer, head and factor as 1.0:2; * is all, and "
            "the factor is at most 1,000,000."
        )
    return Scale(layer=_read_index(found[1]), head=_read_index(found[2]), factor=factor)


def _read_index(text: str) -> int | None:
    return None if text == "*" else int(text)


def _read_span(text: str, whole: str) -> Span | None:
    if text == "*":
        return None
    first, _, last = text.partition("-")
    span = int(first), int(last or first)
    if span[1] < span[0]:
        raise ValueError(f"{whole[:80]!r} has a range that ends before it begins.")
    return span


READERS: dict[str, Callable[[str], Intervention]] = {
    "silence": read_silence,
    "cut": read_cells,
    "allow": partial(read_cells, allowed=True),
    "scale": read_scale,
}
"""By the options of the command line."""
