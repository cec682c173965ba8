"""The scales of the colours in words: their names, their keys, and what they say of one row."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from explorer.figures.attention.map_request import DrawnMap, DrawnMaps
from explorer.figures.drawing.colour_scale import DECADES, FLOOR, Scale
from explorer.ui.canvases.maps.colour_key import ColourKey
from explorer.wording import exact_percent, round_percent

translate = QCoreApplication.translate


def choices() -> list[tuple[str, str, str]]:
    """(name, scale, what it means) of each; names as short as the row of lists needs them."""
    return [
        (
            translate("AttentionScales", "0–100 %"),
            "fixed",
            translate("AttentionScales", "Brightest = 100 %. Colours are comparable between maps."),
        ),
        (
            translate("AttentionScales", "Max"),
            "max",
            translate("AttentionScales", "Brightest = the largest weight in this map"),
        ),
        (
            translate("AttentionScales", "By row"),
            "row",
            translate(
                "AttentionScales",
                "Brightest is the largest weight of each row: rows do not compare",
            ),
        ),
        (
            translate("AttentionScales", "Log"),
            "log",
            translate(
                "AttentionScales", "From {0} to 100 %: each factor of ten is a fifth of the scale"
            ).format(round_percent(FLOOR)),
        ),
    ]


def name(scale: Scale) -> str:
    """What the scale is called."""
    return next(words for words, value, _ in choices() if value == scale)


def key(scale: Scale, top: float, signed: bool = False) -> ColourKey:
    """What the key of a map says; `signed`: of a difference."""
    if signed and scale == "fixed" and top < 1:
        scale = "max"
    low, high = translate("AttentionScales", "0 %"), exact_percent(top)
    ticks: tuple[tuple[float, str], ...] = ()
    if scale == "row":
        high = translate("AttentionScales", "row max")
    elif scale == "log":
        low, high = (
            translate("AttentionScales", "≤ {0}").format(round_percent(FLOOR)),
            round_percent(1),
        )
        ticks = tuple(
            (1 - place / DECADES, round_percent(10.0**-place)) for place in range(1, DECADES)
        )
    if signed:
        return ColourKey(name(scale), f"−{high}", f"+{high}")
    return ColourKey(name(scale), low, high, ticks)


def reading(drawn: DrawnMaps, query: int) -> str:
    """What the colours of one row mean, for the read-out; empty on the fixed scale."""
    scale, one = drawn.request.scale, next(filter(None, drawn.maps), None)
    if scale == "fixed" or one is None or query >= len(one.map.weights):
        return ""
    if scale == "log":
        return translate("AttentionScales", "colours: logarithmic")
    if scale == "max":
        return translate("AttentionScales", "colours: up to {0}").format(exact_percent(one.top))
    tops = [_row_top(found, query) for found in drawn.maps[:2] if found is not None]
    return translate("AttentionScales", "colours: by row, up to {0}").format(" / ".join(tops))


def _row_top(one: DrawnMap, query: int) -> str:
    return exact_percent(float(one.map.weights[query].max(initial=0)))
