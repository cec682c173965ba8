"""The menus of activation patching: which part, at which positions, from which other run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QMenu, QWidget

from explorer.figures.text import tokens
from explorer.figures.text.characters import elide
from explorer.session.branches import Branch
from explorer.session.state import State
from explorer.trace.fingerprint import same_weights
from explorer.trace.interventions.kinds import Intervention, OtherRun, Patch, Span
from explorer.trace.step import Token
from explorer.trace.trace import Trace, source_of
from explorer.ui.access import mnemonics

if TYPE_CHECKING:
    from explorer.session.session import Session

# Adds an entry that switches an intervention, and names what the model must offer for it.
Add = Callable[[QMenu, "Session", str, Intervention, str], None]
translate = QCoreApplication.translate
MOST_RUNS = 12  # the newest; a menu is no list of hundreds
_LETTERS = 36  # of a run's text


def sources(state: State) -> list[tuple[Branch, OtherRun]]:
    """The other runs of this model that a patch can be taken from, the newest first."""
    found: list[tuple[Branch, OtherRun]] = []
    for branch in reversed(state.branches.all):
        trace = branch.trace
        here = trace.request.model == state.request.model and state.card is not None
        if branch.number == state.branches.current or branch.number in state.forgotten or not here:
            continue
        if state.card is None or not same_weights(trace.card.fingerprint, state.card.fingerprint):
            continue
        try:
            found.append((branch, source_of(trace)))
        except ValueError:
            continue
    return found[:MOST_RUNS]


def add_patches(menu: QMenu, session: Session, add: Add) -> QMenu:
    """A menu in `menu` with every other run; greyed where there is none."""
    inner = QMenu(translate("PatchMenu", "Patch from another run"), menu)
    fill_patches(inner, session, add)
    act = menu.addMenu(inner)
    if not inner.actions():
        act.setEnabled(False)
        act.setToolTip(
            translate(
                "PatchMenu",
                "There is no other run of this model yet. Run another prompt, or force another "
                "token. Then you can put what its parts gave into this run.",
            )
        )
    return inner


def fill_patches(menu: QMenu, session: Session, add: Add) -> None:
    """A menu in `menu` for every other run."""
    menu.setToolTipsVisible(True)
    state = session.state
    for branch, source in sources(state) if state.shown is not None else ():
        menu.addMenu(run_menu(session, menu, branch, source, add))


def fill_from(menu: QMenu, session: Session, number: int, add: Add) -> None:
    """What can be taken from one branch; greyed, with the reason, if nothing can."""
    state = session.state
    branch = state.branches.get(number)
    if branch is None or state.shown is None:
        return
    try:
        _fill(menu, session, branch.trace, source_of(branch.trace), add)
    except ValueError as error:
        menu.addAction(str(error)).setEnabled(False)


def fill_from_run(menu: QMenu, session: Session, trace: Trace, add: Add) -> None:
    """What can be taken from a run of another session; greyed, with the reason, if nothing can."""
    card, state = trace.card, session.state
    if state.card is None or state.shown is None:
        why = translate("PatchMenu", "Open a model on this side and press Step first.")
        menu.addAction(why).setEnabled(False)
        return
    same = same_weights(card.fingerprint, state.card.fingerprint)
    if not (same and (card.form, card.dtype) == (state.card.form, state.card.dtype)):
        why = translate(
            "PatchMenu", "A patch needs the same model in the same dtype on both sides."
        )
        menu.addAction(why).setEnabled(False)
        return
    try:
        _fill(menu, session, trace, source_of(trace), add)
    except ValueError as error:
        menu.addAction(str(error)).setEnabled(False)


def run_menu(
    session: Session, parent: QWidget, branch: Branch, source: OtherRun, add: Add
) -> QMenu:
    """What can be taken from one run: parts of the selected layer and head, here or everywhere."""
    name = session.state.branch_names.get(branch.number, branch.name)
    read = branch.trace.tokens[: len(source.tokens)]
    words = elide(tokens.visible(b"".join(token.raw for token in read)), _LETTERS)
    menu = QMenu(translate("PatchMenu", "{0}: {1}").format(name, words), parent)
    menu.setToolTipsVisible(True)
    _fill(menu, session, branch.trace, source, add)
    mnemonics.follow(menu)
    return menu


def _fill(menu: QMenu, session: Session, trace: Trace, source: OtherRun, add: Add) -> None:
    read = trace.tokens[: len(source.tokens)]
    for place, (part, needs) in enumerate(_parts(session.state)):
        if place:
            menu.addSeparator()
        for where, patch in _places(session.state, part, source, read):
            add(menu, session, f"{_named(patch)}, {where}", patch, needs)


def _parts(state: State) -> list[tuple[Patch, str]]:
    """The selected head, its layer's MLP and the stream after it, and what each needs."""
    chosen, nowhere = state.selection, OtherRun(tokens=(0,))
    return [
        (Patch(layer=chosen.layer, head=chosen.head, source=nowhere), "patch_heads"),
        (Patch(layer=chosen.layer, part="mlp", source=nowhere), "patch_mlp"),
        (Patch(layer=chosen.layer, part="stream", source=nowhere), "patch_stream"),
    ]


def _places(
    state: State, part: Patch, source: OtherRun, read: Sequence[Token]
) -> list[tuple[str, Patch]]:
    """The selected position, from the same or the same from the end, and every position.

    `read` are the source's tokens.
    """
    shown = state.shown
    assert shown is not None
    here, theirs = shown.slots, len(source.tokens)
    before = sum(token.origin == "padding" for token in shown.trace.tokens[: shown.query])
    query, found = shown.query, []

    def patch(positions: Span | None, first: int) -> Patch:
        return Patch(
            layer=part.layer, part=part.part, head=part.head,
            positions=positions, first=first, source=source,
        )  # fmt: skip

    mine = tokens.written(shown.trace.tokens[query])
    if 0 <= query - before < theirs:
        words = translate("PatchMenu", "position {0} ({1} in place of {2})")
        other = tokens.written(read[query - before])
        found.append((words.format(query, other, mine), patch((query, query), query - before)))
    aligned = theirs - here + query
    if aligned != query - before and 0 <= aligned < theirs:
        words = translate("PatchMenu", "position {0} from position {1} ({2} in place of {3})")
        other = tokens.written(read[aligned])
        found.append((words.format(query, aligned, other, mine), patch((query, query), aligned)))
    if here == theirs and not before:
        found.append((translate("PatchMenu", "every position"), patch(None, 0)))
    return found


def _named(patch: Patch) -> str:
    return {
        "head": translate("PatchMenu", "Layer {0}, head {1}"),
        "mlp": translate("PatchMenu", "MLP of layer {0}"),
        "stream": translate("PatchMenu", "Residual stream after layer {0}"),
    }[patch.part].format(patch.layer, patch.head)
