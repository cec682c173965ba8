"""Names and colours of what layers keep."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from explorer.ui.kit.translation import QT_TRANSLATE_NOOP

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


def tr(text: str) -> str:
    return QCoreApplication.translate("cache", text)
