"""The engine's modes as rows of the table of actions."""

from __future__ import annotations

from functools import partial

from explorer.session.state import State
from explorer.trace.modes import Mode
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.menus.action import Action
from explorer.ui.menus.action_window import ActionWindow


def _can_change(state: State) -> bool:
    return bool(state.request.model) and not state.busy


def _set_mode(mode: Mode, window: ActionWindow) -> None:
    window.session.set_mode(mode)


def _is_mode(mode: Mode, state: State) -> bool:
    return state.request.mode == mode


_ROWS: tuple[tuple[Mode, str, str], ...] = (
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
            "Round the weights to float16. The Model panel shows the speed-up and the differences.",
        ),
    ),
)
MODES = tuple(
    Action(
        id=f"mode-{mode}",
        menu="run",
        text=text,
        tip=tip,
        act=partial(_set_mode, mode),
        enabled=_can_change,
        checked=partial(_is_mode, mode),
        locked_when_presenting=True,
        line_before=mode == "exact",
    )
    for mode, text, tip in _ROWS
)
