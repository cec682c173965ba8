"""The rows of the table that put a second run beside the window's own."""

from __future__ import annotations

from explorer.session.state import State
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.menus.action import Action


def _beside(state: State) -> bool:
    return bool(state.company)


SIDE_ACTIONS: tuple[Action, ...] = (
    Action(
        id="side-by-side",
        menu="sides",
        text=QT_TRANSLATE_NOOP("actions", "Side by side"),
        tip=QT_TRANSLATE_NOOP(
            "actions",
            "A second run beside this one, with an engine of its own. It begins as a copy.",
        ),
        keys=("F7",),
        icon="close",
        act=lambda w: w.beside.toggle(),
        checked=_beside,
        checked_text=QT_TRANSLATE_NOOP("actions", "Close the second side"),
        locked_when_presenting=True,
    ),
    Action(
        id="beside-prompt",
        menu="sides",
        text=QT_TRANSLATE_NOOP("actions", "Another prompt…"),
        tip=QT_TRANSLATE_NOOP("actions", "The same model and settings, with a prompt to be typed"),
        act=lambda w: w.ways_beside.another_prompt(),
        line_before=True,
        locked_when_presenting=True,
    ),
    Action(
        id="beside-model",
        menu="sides",
        text=QT_TRANSLATE_NOOP("actions", "Another model…"),
        tip=QT_TRANSLATE_NOOP("actions", "The same prompt on another model"),
        act=lambda w: w.ways_beside.another_model(),
        locked_when_presenting=True,
    ),
    Action(
        id="beside-chat",
        menu="sides",
        text=QT_TRANSLATE_NOOP("actions", "Raw text beside chat"),
        tip=QT_TRANSLATE_NOOP(
            "actions",
            "The same question as raw text and in the chat template: one continues, one answers",
        ),
        act=lambda w: w.ways_beside.raw_beside_chat(),
        enabled=lambda s: bool(s.request.model),
        locked_when_presenting=True,
    ),
    Action(
        id="beside-settings",
        menu="sides",
        text=QT_TRANSLATE_NOOP("actions", "Other settings"),
        tip=QT_TRANSLATE_NOOP("actions", "The same prompt with another temperature, seed or mask"),
        act=lambda w: w.ways_beside.other_settings(),
        locked_when_presenting=True,
    ),
    Action(
        id="beside-branch",
        menu="sides",
        text=QT_TRANSLATE_NOOP("actions", "Another branch…"),
        tip=QT_TRANSLATE_NOOP("actions", "Another continuation of this prompt, from the tree"),
        act=lambda w: w.ways_beside.another_branch(),
        enabled=lambda s: len(s.tree) > 1,
        locked_when_presenting=True,
    ),
    Action(
        id="beside-file",
        menu="sides",
        text=QT_TRANSLATE_NOOP("actions", "A saved run…"),
        tip=QT_TRANSLATE_NOOP("actions", "A run from a .dxt file; it opens without its model"),
        act=lambda w: w.ways_beside.saved_run(),
        locked_when_presenting=True,
    ),
    Action(
        id="beside-form",
        menu="sides",
        text=QT_TRANSLATE_NOOP("actions", "Quantised beside float32"),
        tip=QT_TRANSLATE_NOOP(
            "actions", "The same .gguf file as it is and converted to float32, with one prompt"
        ),
        act=lambda w: w.ways_beside.other_form(),
        enabled=lambda s: s.card is not None and bool(s.card.form),
        locked_when_presenting=True,
    ),
    Action(
        id="link-sides",
        menu="sides",
        text=QT_TRANSLATE_NOOP("actions", "Linked"),
        tip=QT_TRANSLATE_NOOP(
            "actions",
            "On: both sides step together, and look at the same token, layer and head",
        ),
        keys=("Ctrl+L",),
        act=lambda w: w.beside.switch_link(),
        enabled=_beside,
        checked=lambda s: s.company == "linked",
        line_before=True,
    ),
    Action(
        id="side-difference",
        menu="sides",
        text=QT_TRANSLATE_NOOP("actions", "Difference"),
        tip=QT_TRANSLATE_NOOP(
            "actions",
            "Show or hide what differs: every step, the next token and the map of one head",
        ),
        keys=("Ctrl+Shift+D",),
        act=lambda w: w.beside.show_difference(),
        enabled=_beside,
    ),
    Action(
        id="first-difference",
        menu="sides",
        text=QT_TRANSLATE_NOOP("actions", "First difference"),
        tip=QT_TRANSLATE_NOOP("actions", "Go to the first token that differs"),
        keys=("Ctrl+D",),
        act=lambda w: w.beside.go_to_first_difference(),
        enabled=_beside,
    ),
    Action(
        id="swap-sides",
        menu="sides",
        text=QT_TRANSLATE_NOOP("actions", "Swap"),
        tip=QT_TRANSLATE_NOOP("actions", "Exchange left and right"),
        act=lambda w: w.beside.swap(),
        enabled=_beside,
    ),
    Action(
        id="other-side",
        menu="sides",
        text=QT_TRANSLATE_NOOP("actions", "Go to the other side"),
        tip=QT_TRANSLATE_NOOP("actions", "Keys, menus and the toolbar are about the other side"),
        keys=("F6",),
        act=lambda w: w.beside.act_on_other(),
        enabled=_beside,
    ),
)
