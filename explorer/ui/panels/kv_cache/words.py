"""Names and colours of what layers keep."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from explorer.figures.cost.cache import WINDOWED, CacheFigure
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.wording import short_bytes

KIND_COLOURS = {
    "full": "prefill",  # not "final": in the high contrast theme that is the selection's too
    "sliding": "decode",
    "chunked": "recompute",
    "latent": "raw",
    "linear": "muted",
    "recurrent": "muted",
    "conv": "muted",
}
FORMULA = QT_TRANSLATE_NOOP("cache", "formula, every token kept")
_NAMES = (
    QT_TRANSLATE_NOOP("cache", "full"),
    QT_TRANSLATE_NOOP("cache", "sliding"),
    QT_TRANSLATE_NOOP("cache", "chunked"),
    QT_TRANSLATE_NOOP("cache", "latent"),
    QT_TRANSLATE_NOOP("cache", "linear"),
    QT_TRANSLATE_NOOP("cache", "recurrent"),
)


translate = QCoreApplication.translate


def tr(text: str) -> str:
    return QCoreApplication.translate("cache", text)


def verdict(figure: CacheFigure) -> str:
    """The bytes measured, and whether the formula agrees, in one line."""
    measured = translate("cache", "{0} bytes measured").format(f"{figure.measured_bytes:,}")
    state = figure.state_bytes
    if state and not figure.formula_bytes_per_token:
        return translate("cache", "{0}: recurrent state of fixed size").format(measured)
    if figure.agrees and state:
        text = translate("cache", "{0} = formula + {1} of fixed state")
        return text.format(measured, short_bytes(state))
    if figure.agrees and figure.evicted:
        return translate("cache", "{1} of {2} evicted · {0} = formula").format(
            measured, f"{figure.evicted:,}", f"{figure.tokens + figure.evicted:,}"
        )
    if figure.agrees:
        return translate("cache", "{0} = formula").format(measured)
    difference = figure.measured_bytes - state - figure.formula_bytes
    if difference > 0:
        said = translate("cache", "{0}, {1} above the formula")
    else:
        said = translate("cache", "{0}, {1} below the formula")
    said = said.format(measured, short_bytes(abs(difference)))
    windowed = sum(kind in WINDOWED for kind in figure.layer_kinds)
    if difference < 0 and windowed == 1:
        said += translate("cache", ": 1 layer keeps only a window")
    elif difference < 0 and windowed:
        said += translate("cache", ": {0} layers keep only a window").format(windowed)
    return said
