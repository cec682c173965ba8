"""The names by which a lesson or scene means a part of the window; the window has the same ones."""

from __future__ import annotations

import difflib
from collections.abc import Collection

TOKENS = "tokens"  # the row of tokens: a question can hide it, though it is no panel
PANELS = (
    "attention", "next-token", "kv-cache", "timings", "sampling", "surprisal", "block",
    "lens", "stream", "attribution", "branches", "draws", "padding", "prompts", "training",
    "plan", "model",
)  # fmt: skip
HIDEABLE = (*PANELS, TOKENS)
CONTROLS = (
    "prompt", "sampling", "greedy", "temperature", "top-k", "top-p", "seed", "stops", "tokens",
    "timeline", "model", "reset", "back", "step", "run", "mask", "cache", "padding", "pad",
    "padding-lab", "presenter", "previous-panel", "next-panel",
)  # fmt: skip
THEMES = ("light", "dark", "high_contrast")
LEAST_ZOOM, MOST_ZOOM = 0.75, 2.5  # of a scene; 1 = 100 %


def refusal(name: str, names: Collection[str], what: str) -> str:
    """Why `name` is none of `names`, as one or two sentences; "" if it is one of them.

    `what` says what they are the names of, such as panel.
    """
    if name in names:
        return ""
    close = difflib.get_close_matches(name, names, 1)
    hint = f"Did you mean “{close[0]}”?" if close else f"There are: {', '.join(names)}."
    return f"There is no {what} called “{name[:60]}”. {hint}"
