"""Names of undo and redo in the menu, by what they would undo or redo."""

from __future__ import annotations

from explorer.session.state import State
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP

UNDO = {
    "": QT_TRANSLATE_NOOP("actions", "Undo"),
    "prompt": QT_TRANSLATE_NOOP("actions", "Undo typing"),
    "chat": QT_TRANSLATE_NOOP("actions", "Undo raw text or chat"),
    "conversation": QT_TRANSLATE_NOOP("actions", "Undo change of the conversation"),
    "special tokens": QT_TRANSLATE_NOOP("actions", "Undo reading of control tokens"),
    "causal mask": QT_TRANSLATE_NOOP("actions", "Undo causal mask"),
    "interventions": QT_TRANSLATE_NOOP("actions", "Undo interventions"),
    "cache": QT_TRANSLATE_NOOP("actions", "Undo KV cache"),
    "context": QT_TRANSLATE_NOOP("actions", "Undo context policy"),
    "padding": QT_TRANSLATE_NOOP("actions", "Undo padding"),
    "batch prompt": QT_TRANSLATE_NOOP("actions", "Undo prompt from the batch"),
    "scene": QT_TRANSLATE_NOOP("actions", "Undo scene"),
    "capture": QT_TRANSLATE_NOOP("actions", "Undo layers to record"),
    "sampling": QT_TRANSLATE_NOOP("actions", "Undo sampling settings"),
    "stops": QT_TRANSLATE_NOOP("actions", "Undo stop rules"),
    "step": QT_TRANSLATE_NOOP("actions", "Undo step"),
    "run": QT_TRANSLATE_NOOP("actions", "Undo run"),
    "cut": QT_TRANSLATE_NOOP("actions", "Undo cut"),
    "reset": QT_TRANSLATE_NOOP("actions", "Undo reset"),
    "force": QT_TRANSLATE_NOOP("actions", "Undo forced token"),
    "branch": QT_TRANSLATE_NOOP("actions", "Undo change of branch"),
    "rename": QT_TRANSLATE_NOOP("actions", "Undo name of branch"),
    "forget": QT_TRANSLATE_NOOP("actions", "Undo deleting a branch"),
    "open": QT_TRANSLATE_NOOP("actions", "Undo opening a session"),
}
REDO = {
    "": QT_TRANSLATE_NOOP("actions", "Redo"),
    "prompt": QT_TRANSLATE_NOOP("actions", "Redo typing"),
    "chat": QT_TRANSLATE_NOOP("actions", "Redo raw text or chat"),
    "conversation": QT_TRANSLATE_NOOP("actions", "Redo change of the conversation"),
    "special tokens": QT_TRANSLATE_NOOP("actions", "Redo reading of control tokens"),
    "causal mask": QT_TRANSLATE_NOOP("actions", "Redo causal mask"),
    "interventions": QT_TRANSLATE_NOOP("actions", "Redo interventions"),
    "cache": QT_TRANSLATE_NOOP("actions", "Redo KV cache"),
    "context": QT_TRANSLATE_NOOP("actions", "Redo context policy"),
    "padding": QT_TRANSLATE_NOOP("actions", "Redo padding"),
    "batch prompt": QT_TRANSLATE_NOOP("actions", "Redo prompt from the batch"),
    "scene": QT_TRANSLATE_NOOP("actions", "Redo scene"),
    "capture": QT_TRANSLATE_NOOP("actions", "Redo layers to record"),
    "sampling": QT_TRANSLATE_NOOP("actions", "Redo sampling settings"),
    "stops": QT_TRANSLATE_NOOP("actions", "Redo stop rules"),
    "step": QT_TRANSLATE_NOOP("actions", "Redo step"),
    "run": QT_TRANSLATE_NOOP("actions", "Redo run"),
    "cut": QT_TRANSLATE_NOOP("actions", "Redo cut"),
    "reset": QT_TRANSLATE_NOOP("actions", "Redo reset"),
    "force": QT_TRANSLATE_NOOP("actions", "Redo forced token"),
    "branch": QT_TRANSLATE_NOOP("actions", "Redo change of branch"),
    "rename": QT_TRANSLATE_NOOP("actions", "Redo name of branch"),
    "forget": QT_TRANSLATE_NOOP("actions", "Redo deleting a branch"),
    "open": QT_TRANSLATE_NOOP("actions", "Redo opening a session"),
}


def undo_text(state: State) -> str:
    """In English, as the table of actions has it."""
    return UNDO[state.undo_kind]


def redo_text(state: State) -> str:
    """In English, as the table of actions has it."""
    return REDO[state.redo_kind]
