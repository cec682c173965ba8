"""The menu of a head and of a cell: what can be silenced, cut, allowed, patched or scaled."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QWidget

from explorer.trace.interventions.kinds import Cells, Intervention, Silence
from explorer.trace.trace import Trace
from explorer.ui.access import mnemonics
from explorer.ui.panel.patch_menu import add_patches, fill_from, fill_from_run, fill_patches
from explorer.ui.panel.scale_dialog import ScaleDialog

if TYPE_CHECKING:
    from explorer.session.session import Session

translate = QCoreApplication.translate


def head_menu(session: Session, parent: QWidget) -> QMenu:
    """Of the selected head and its layer."""
    chosen = session.state.selection
    layer, head = chosen.layer, chosen.head
    menu = _menu(parent)
    for words, one, needs in (
        (
            translate("HeadMenu", "Silence layer {0}, head {1}").format(layer, head),
            Silence(layer=layer, head=head),
            "silence_heads",
        ),
        (
            translate("HeadMenu", "Set layer {0}, head {1} to its mean over the prompt").format(
                layer, head
            ),
            Silence(layer=layer, head=head, by="mean"),
            "patch_heads",
        ),
        (
            translate("HeadMenu", "Silence the MLP of layer {0}").format(layer),
            Silence(layer=layer, part="mlp"),
            "silence_mlp",
        ),
        (
            translate("HeadMenu", "Silence layer {0}").format(layer),
            Silence(layer=layer, part="layer"),
            "silence_layers",
        ),
    ):
        _add(menu, session, words, one, needs)
    add_patches(menu, session, _add)
    return _ended(menu, session, parent)


def patch_menu(session: Session, parent: QWidget, number: int | None = None) -> QMenu:
    """What can be taken from other runs, alone; `number`: from this branch only."""
    menu = _menu(parent)
    if number is None:
        fill_patches(menu, session, _add)
    else:
        fill_from(menu, session, number, _add)
    mnemonics.follow(menu)
    return menu


def patch_menu_of(session: Session, parent: QWidget, trace: Trace) -> QMenu:
    """What can be taken from a run of another session."""
    menu = _menu(parent)
    fill_from_run(menu, session, trace, _add)
    mnemonics.follow(menu)
    return menu


def cell_menu(
    session: Session, parent: QWidget, query: int, key: int, masked: bool = False
) -> QMenu:
    """Of one cell of the selected head's map, its row and its column.

    `masked`: the query does not see the key, so that it can be allowed.
    """
    chosen = session.state.selection
    layer, head = chosen.layer, chosen.head
    menu = _menu(parent)
    one, other = (query, query), (key, key)
    for words, cells in (
        (
            translate("HeadMenu", "Cut query {0} → key {1} in this head").format(query, key),
            Cells(layer=layer, head=head, queries=one, keys=other),
        ),
        (
            translate("HeadMenu", "Cut query {0} → key {1} in all heads").format(query, key),
            Cells(queries=one, keys=other),
        ),
        (
            translate("HeadMenu", "Cut key {0} for every query in this head").format(key),
            Cells(layer=layer, head=head, keys=other),
        ),
        (
            translate("HeadMenu", "Cut key {0} for every query in all heads").format(key),
            Cells(keys=other),
        ),
    ):
        _add(menu, session, words, cells, "cut_cells")
    in_head = Cells(layer=layer, head=head, queries=one, keys=other, allowed=True)
    in_all = Cells(queries=one, keys=other, allowed=True)
    now = session.state.request.interventions
    if masked or in_head in now or in_all in now:
        menu.addSeparator()
        words = translate("HeadMenu", "Allow query {0} → key {1} in this head")
        _add(menu, session, words.format(query, key), in_head, "cut_cells")
        words = translate("HeadMenu", "Allow query {0} → key {1} in all heads")
        _add(menu, session, words.format(query, key), in_all, "cut_cells")
    menu.addSeparator()
    add_patches(menu, session, _add)
    return _ended(menu, session, parent)


def _menu(parent: QWidget) -> QMenu:
    menu = QMenu(parent)
    menu.setToolTipsVisible(True)
    return menu


def _add(menu: QMenu, session: Session, words: str, one: Intervention, needs: str) -> None:
    """An entry that switches it; greyed, with the reason, where the model can't."""
    act = QAction(words, menu)
    act.setCheckable(True)
    on = one in session.state.request.interventions
    act.setChecked(on)
    _offer(act, session, needs, on)
    act.triggered.connect(partial(session.switch_intervention, one))
    menu.addAction(act)


def _offer(act: QAction, session: Session, needs: str, on: bool = False) -> None:
    card = session.state.next_card
    act.setEnabled(on or (card is not None and card.offers(needs)))
    if card is not None and not act.isEnabled():
        act.setToolTip(translate("HeadMenu", "Not possible here: {0}").format(card.words(needs)))


def _ended(menu: QMenu, session: Session, parent: QWidget) -> QMenu:
    menu.addSeparator()
    scale = QAction(translate("HeadMenu", "Scale attention scores…"), menu)
    scale.triggered.connect(lambda: ScaleDialog(session, parent.window()).open())
    _offer(scale, session, "scale_scores")
    menu.addAction(scale)
    menu.addSeparator()
    clear = QAction(translate("HeadMenu", "Clear all interventions"), menu)
    clear.setEnabled(bool(session.state.request.interventions))
    clear.triggered.connect(partial(session.set_interventions, ()))
    menu.addAction(clear)
    mnemonics.follow(menu)
    return menu
