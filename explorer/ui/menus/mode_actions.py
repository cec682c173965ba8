"""The engine's modes as rows of the table of actions."""

from __future__ import annotations

from PySide6.QtCore import QT_TRANSLATE_NOOP

from explorer.session.state import State
from explorer.ui.menus.action import Action


def _can_change(state: State) -> bool:
    return bool(state.request.model) and not state.busy


MODES = tuple(
    Action(
        id=f"mode-{mode}",
        menu="run",
        text=text,
        tip=tip,
        wish=lambda w, mode=mode: w.session.set_mode(mode),
        enabled=_can_change,
        checked=lambda s, mode=mode: s.request.mode == mode,
        locked_when_presenting=True,
        line_before=mode == "exact",
    )
    for mode, text, tip in (
        (
            "exact",
            QT_TRANSLATE_NOOP("actions", "Mode exact"),
            QT_TRANSLATE_NOOP("actions", "Default: the kernels of the transformers library"),
        ),
        (
            "fast",
            QT_TRANSLATE_NOOP("actions", "Mode fast (float32)"),
            QT_TRANSLATE_NOOP(
                "actions",
                "Decode with built-in kernels. The Model panel shows the speed-up.",
            ),
        ),
        (
            "rounded",
            QT_TRANSLATE_NOOP("actions", "Mode rounded (changes the model's numbers)"),
            QT_TRANSLATE_NOOP(
                "actions",
                "Round the weights to float16. The Model panel shows the speed-up and "
                "the differences.",
            ),
        ),
    )
)
