"""Interventions from text, one line each, in commands, scenes and results alike.

    silence 1.0           head 0 of layer 1 gives nothing
    silence 1.mlp         the MLP of layer 1 writes nothing
    silence 1             layer 1 passes its input on
    silence 1.0=mean      head 0 of layer 1 gives its mean over the prompt at every token
    cut 1.0:5<-3          position 5 does not attend to position 3 there
    allow *.*:5<-7        position 5 attends to position 7 in every layer and head
    restore 1.0:5<-3      there position 5 attends to position 3 as the model has it
    scale 1.0:2           scores are twice as large: attention is sharper
    patch 1.0:5<-3 of 12,7,44,9       the head's output at position 5 is what it is at position 3
                                      of the text with these token ids
    patch 1.mlp:*<-* of 12,7,44,9     the same of an MLP, at every position of that text
    patch 1:4-5<-2-3 of 12,7,44,9     the same of the residual stream after layer 1

Layers, heads and positions are counted from 0.  `*` is all of them, `3-5` a range, `q-1` the key
one back from the query, and `q-4+` every key four or more back.  `of IDS` may be followed by
`without mask` and by `with` and the interventions of that other run, split by semicolons.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial

from explorer.trace.interventions.kinds import (
    MOST,
    MOST_SOURCE,
    Cells,
    Effect,
    Intervention,
    OtherRun,
    Patch,
    Scale,
    Silence,
    Span,
)


def read(line: str) -> Intervention:
    """An intervention from its line of text; ValueError with a sentence if it is none."""
    kind, _, rest = line.strip().partition(" ")
    if kind in READERS:
        return READERS[kind](rest)
    raise ValueError(
        f"{line[:80]!r} is no intervention. Write for example 'silence 1.0' or 'cut 1.0:5<-3'."
    )


def read_silence(text: str) -> Silence:
    """`L.H`, `L.H=mean`, `L.mlp` or `L`; ValueError with a sentence for anything else."""
    found = re.fullmatch(r"(\d{1,9})(?:\.(\d{1,9}|mlp))?(=mean)?", text.strip())
    if not found or (found[3] and not (found[2] or "mlp").isdigit()):
        raise ValueError(
            f"{text[:80]!r} names no part of the model. Write layer and head as 1.0, an MLP as "
            "1.mlp, a whole layer as 1, a head at its mean as 1.0=mean."
        )
    layer, part = int(found[1]), found[2]
    if found[3]:
        return Silence(layer=layer, head=int(part), by="mean")
    if part is None:
        return Silence(layer=layer, part="layer")
    return (
        Silence(layer=layer, part="mlp") if part == "mlp" else Silence(layer=layer, head=int(part))
    )


def read_cells(text: str, effect: Effect = "cut") -> Cells:
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
        allowed=effect == "allow",
        restored=effect == "restore",
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


def read_patch(text: str, open_source: Callable[[str], OtherRun] | None = None) -> Patch:
    """`PART:positions<-positions of SOURCE`; ValueError with a sentence for anything else.

    SOURCE is token ids.  Where `open_source` is given it may be the name of something else that has
    tokens, such as a file, and its positions may be left out: those that are written, then.
    """
    span = r"\*|\d{1,9}(?:-\d{1,9})?"
    found = re.fullmatch(
        rf"(\d{{1,9}})(?:\.(\d{{1,9}}|mlp))?\s*:\s*({span})\s*<-\s*(?:({span})\s+of\s+)?(.+)",
        text.strip(),
        re.DOTALL,
    )
    named = None if found is None else _read_source(found[5])
    if found is None or (named is None and open_source is None) or (named and not found[4]):
        raise ValueError(
            f"{text[:80]!r} is no patch. Write the part, its positions, those of the other text "
            "and its token ids, as in 1.0:5<-3 of 12,7,44,9."
        )
    source = named or open_source(found[5])  # type: ignore[misc]
    positions, taken = _read_span(found[3], text), _read_span(found[4] or found[3], text)
    if (positions is None) != (taken is None):
        raise ValueError(f"{text[:80]!r} has positions on one side only. Write * on both sides.")
    if positions is not None and taken is not None:
        if positions[1] - positions[0] != taken[1] - taken[0]:
            raise ValueError(f"{text[:80]!r} has ranges of different length.")
        if taken[1] >= len(source.tokens):
            raise ValueError(
                f"The text that the patch is taken from has positions 0 to "
                f"{len(source.tokens) - 1}, no position {taken[1]}."
            )
    part = found[2]
    return Patch(
        layer=int(found[1]),
        part="stream" if part is None else "mlp" if part == "mlp" else "head",
        head=int(part) if part not in (None, "mlp") else 0,
        positions=positions,
        first=0 if taken is None else taken[0],
        source=source,
    )


def _read_source(text: str) -> OtherRun | None:
    """Token ids, with what else that run was; None if the text is no such list."""
    found = re.fullmatch(
        r"(\d{1,9}(?:\s*,\s*\d{1,9})*)(\s+without mask)?(?:\s+with\s+(.+))?",
        text.strip(),
        re.DOTALL,
    )
    if found is None:
        return None
    ids = tuple(map(int, found[1].split(",")))
    if len(ids) > MOST_SOURCE:
        raise ValueError(
            f"A patch is taken from a text of up to {MOST_SOURCE:,} tokens; this one has "
            f"{len(ids):,}."
        )
    inner = [read(line) for line in (found[3] or "").split(";") if line.strip()]
    return OtherRun.of(ids, not found[2], inner)


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
    "allow": partial(read_cells, effect="allow"),
    "restore": partial(read_cells, effect="restore"),
    "scale": read_scale,
    "patch": read_patch,
}
"""By the options of the command line."""
