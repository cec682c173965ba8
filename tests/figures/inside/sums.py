"""A logit as a sum of parts, made without a model."""

from __future__ import annotations

from typing import Any

import msgspec

from explorer.trace.inside.attribution import Attribution, LogitPart, Target


def found(slot: int = 2) -> Attribution:
    """Two layers, of which the second has one head less; the parts add up to 4."""
    return Attribution(
        slot=slot,
        target=Target(id=10, raw=b" a", logit=4.0),
        against=None,
        parts=(
            LogitPart(kind="embedding", value=0.25),
            LogitPart(kind="head", layer=0, head=0, value=1.0),
            LogitPart(kind="head", layer=0, head=1, value=-4.0),
            LogitPart(kind="mlp", layer=0, value=2.0),
            LogitPart(kind="head", layer=1, head=0, value=3.0),
            LogitPart(kind="mlp", layer=1, value=1.0),
            LogitPart(kind="mlp", layer=1, value=0.5),
            LogitPart(kind="bias", value=0.25),
        ),
        gap=0.0,
    )


def facts(slot: int = 2) -> dict[str, Any]:
    """The same as an engine tells it."""
    told: dict[str, Any] = msgspec.to_builtins(found(slot), builtin_types=(bytes,))
    return told
