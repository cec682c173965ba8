"""Help: the card of a word, pointing at it, and the pages of all terms, all keys and the guide."""

from __future__ import annotations

from typing import TypeVar

import msgspec
import pytest
from PySide6.QtCore import QEvent, QPoint, QRect, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QLabel, QWidget

from explorer.ui.canvases.tokens.token_bars import TokenBars
from explorer.ui.dialogs.help.glossary_page import GlossaryPage
from explorer.ui.dialogs.help.guide import Guide
from explorer.ui.dialogs.help.keys_page import KeysPage, keys_of, shared
from explorer.ui.dialogs.help.term_card import TermCard
from explorer.ui.glossary.labels import Dotted, known
from explorer.ui.look.theme import THEMES
from explorer.ui.menus.actions import ACTIONS
from explorer.ui.panels import PANELS
from explorer.ui.panels.attention.panel import AttentionPanel
from tests.ui.stage import WindowStage
from tests.ui.waiting import activate, resize, settle, wait_until

TERMS = known().terms
Page = TypeVar("Page", bound=QDialog)


def rest(widget: QWidget, place: QPoint) -> None:
    """The mouse rests over a place of a widget."""
    event = QHelpEvent(QEvent.Type.ToolTip, place, widget.mapToGlobal(place))
    QApplication.sendEvent(widget, event)


def hover(widget: QWidget) -> None:
    """The mouse rests over the words of a label."""
    assert isinstance(widget, Dotted)
    rest(widget, widget.words_area().center())


def page(stage: WindowStage, kind: type[Page]) -> Page:
    """The page of this kind, on screen and with the keyboard."""
    (found,) = (page for page in stage.window.help.pages if isinstance(page, kind))
    assert found.isVisible()
    activate(found)
    return found


def dotted(stage: WindowStage, term: str) -> QWidget:
    """A word on screen that stands for this term."""
    words = stage.window.findChildren(QWidget)
    return next(
        w for w in words if isinstance(w, Dotted) and w.property("term") == term and w.isVisible()
    )


def test_a_word_is_explained_when_the_mouse_rests_on_it(stage: WindowStage) -> None:
    help_ = stage.window.help
    hover(dotted(stage, "causal-mask"))
    assert help_.card.term == "causal-mask"
    word, text, tip = help_.card.words
    assert (word, text) == ("Causal mask", TERMS["causal-mask"].text)
    assert tip == stage.window.topbar.mask_switch.toolTip(), "nothing is lost of the tip"
    assert stage.window.rect().contains(help_.card.geometry())
    hover(dotted(stage, "prompt"))
    assert help_.card.term == "prompt"
    assert stage.window.prompt.edit.hasFocus(), "the mouse takes no focus"


def test_beside_the_words_there_is_no_card(stage: WindowStage) -> None:
    title = dotted(stage, "prompt")
    assert isinstance(title, Dotted)
    rest(title, QPoint(title.words_area().right() + 30, title.height() // 2))
    assert stage.window.help.card.term == ""


def test_the_card_goes_when_the_mouse_leaves_or_by_escape(stage: WindowStage) -> None:
    card, title = stage.window.help.card, dotted(stage, "stop-rule")
    hover(title)
    QApplication.sendEvent(title, QEvent(QEvent.Type.Leave))
    wait_until(lambda: card.term == "")
    hover(title)
    stage.window.setFocus()
    QTest.keyClick(stage.window, Qt.Key.Key_Escape)
    assert card.term == ""
    hover(title)
    QTest.mouseClick(title, Qt.MouseButton.LeftButton)
    assert card.term == ""


def test_f1_explains_what_has_the_focus_and_again_opens_the_guide(stage: WindowStage) -> None:
    stage.loaded()
    stage.session.set_sampling(msgspec.structs.replace(stage.state.sampling, greedy=False))
    card, spin = stage.window.help.card, stage.window.sampling.top_p.spin
    spin.setFocus()
    QTest.keyClick(spin, Qt.Key.Key_F1)
    assert card.term == "top-p"
    assert card.show_button.hasFocus()
    QTest.keyClick(card.show_button, Qt.Key.Key_Escape)
    assert card.term == ""
    assert spin.hasFocus()
    QTest.keyClick(spin, Qt.Key.Key_F1)
    QTest.keyClick(card.show_button, Qt.Key.Key_F1)
    assert card.term == ""
    page(stage, Guide)


def test_f1_in_a_map_explains_its_panel(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    shown = stage.window.docks.bring_up("next-token").views()["Next token"].widget
    shown.setFocus()
    QTest.keyClick(shown, Qt.Key.Key_F1)
    assert stage.window.help.card.term == "next-token"


def test_words_that_a_map_or_chart_paints_are_explained(stage: WindowStage) -> None:
    stage.loaded().ran(2)
    stage.until_settled()
    attention = stage.window.docks.bring_up("attention")
    assert isinstance(attention, AttentionPanel)
    heatmap = attention.pages.maps.maps[0]
    next_token = stage.window.docks.bring_up("next-token")
    (bars,) = next_token.findChildren(TokenBars)
    found = []
    for canvas in (heatmap, bars):
        for name, words in canvas.painted_terms():
            rest(canvas, words.center().toPoint())
            assert stage.window.help.card.isVisible(), name
            found.append(name)
            stage.window.help.close_card()
    assert found[:2] == ["key", "query"]
    assert "next-token" in found
    rest(heatmap, heatmap.cell_rect(1, 0).center().toPoint())
    assert not stage.window.help.card.isVisible()  # a cell keeps its own tip


def test_show_me_outlines_the_control(stage: WindowStage) -> None:
    help_, spin = stage.window.help, stage.window.sampling.temperature.spin
    stage.window.presenter.show_settings(False)
    hover(dotted(stage, "causal-mask"))
    help_.show_me("temperature")
    stage.paint()
    assert spin.isVisible()
    target = help_.pointed_at
    assert target is not None
    assert spin.parentWidget() is target
    outline = help_.outline_of(spin)
    wait_until(lambda: outline.isVisible() and spin.isVisible())
    outlined = outline.geometry()
    place = QRect(spin.mapTo(stage.window, QPoint()), spin.size())
    assert outlined.contains(place)
    assert outlined.height() < 2 * place.height(), "the row of the control, not all settings"
    QTest.mouseClick(help_.card.show_button, Qt.MouseButton.LeftButton)
    assert help_.card.term == ""
    assert help_.pointed_at is stage.window.topbar.mask_switch


def test_every_term_can_be_pointed_at(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    help_ = stage.window.help
    for name, term in TERMS.items():
        help_.show_me(name)
        settle()
        target = help_.pointed_at
        assert target is not None, name
        assert target.isVisible(), name
        if term.show.startswith("panel:"):
            docks = {f"panel:{dock.place.id}": dock for dock in stage.window.docks.docks}
            dock = docks[term.show]
            assert target is dock or dock.isAncestorOf(target)


def test_a_panel_in_a_window_of_its_own_explains_there(stage: WindowStage) -> None:
    stage.loaded()
    stage.window.docks.bring_up("attention")
    dock = next(d for d in stage.window.docks.docks if d.place.id == "attention")
    dock.setFloating(True)
    stage.paint()
    titles = dock.findChildren(QLabel)
    hover(next(w for w in titles if w.property("term") == "attention-weight"))
    cards = [card for card in stage.app.allWidgets() if isinstance(card, TermCard)]
    shown = [card for card in cards if card.term]
    assert [card.window() for card in shown] == [dock]
    dock.setFloating(False)


@pytest.mark.parametrize("theme", THEMES)
def test_the_card_fits_a_small_window(stage: WindowStage, theme: str) -> None:
    stage.look.set_theme(theme)
    stage.resize(640, 400)
    for name in ("causal-mask", "prompt", "token"):
        hover(dotted(stage, name))
        card = stage.window.help.card
        assert card.term == name
        assert stage.window.rect().contains(card.geometry())
        for label in card.findChildren(QLabel):
            assert label.height() >= label.heightForWidth(label.width()) or label.isHidden()
        card.close_card()


def test_the_glossary_is_searched_and_points_at_what_it_finds(stage: WindowStage) -> None:
    stage.window.help.show_glossary()
    shown = page(stage, GlossaryPage)
    assert len(shown.list.rows()) == len(TERMS)
    assert shown.search.hasFocus()
    QTest.keyClicks(shown.search, "nucleus")
    assert shown.list.rows() == [("Top-p", TERMS["top-p"].text)]
    assert shown.selected == "top-p"
    QTest.keyClick(shown.search, Qt.Key.Key_Down)
    assert shown.list.hasFocus()
    QTest.mouseClick(shown.show_button, Qt.MouseButton.LeftButton)
    assert not shown.isVisible()
    assert stage.window.help.pointed_at is not None


def test_a_search_without_result_says_so(stage: WindowStage) -> None:
    stage.window.help.show_glossary()
    shown = page(stage, GlossaryPage)
    QTest.keyClicks(shown.search, "zebra")
    words = [label.text() for label in shown.findChildren(QLabel) if label.isVisible()]
    assert any("No term matches" in text for text in words)
    assert not shown.show_button.isEnabled()
    QTest.keyClick(shown.search, Qt.Key.Key_Escape)
    assert not shown.isVisible()


def test_the_card_leads_to_the_glossary(stage: WindowStage) -> None:
    hover(dotted(stage, "kv-cache"))
    QTest.mouseClick(stage.window.help.card.all_button, Qt.MouseButton.LeftButton)
    assert page(stage, GlossaryPage).selected == "kv-cache"


def test_texts_of_a_page_are_shown_whole(stage: WindowStage) -> None:
    stage.window.help.show_glossary()
    shown = page(stage, GlossaryPage)
    rows = shown.list
    metrics = rows.fontMetrics()
    wrapped = 0
    for place in range(rows.topLevelItemCount()):
        part = rows.topLevelItem(place)
        assert part is not None
        for at in range(part.childCount()):
            index = rows.indexFromItem(part.child(at), 1)
            room = QRect(0, 0, rows.columnWidth(1) - 12, 1000)
            flags = int(Qt.TextFlag.TextWordWrap)
            needed = metrics.boundingRect(room, flags, str(index.data())).height()
            assert rows.visualRect(index).height() >= needed
            wrapped += needed > metrics.height() * 1.5
    assert wrapped > 20


def test_all_keys_are_on_one_page(stage: WindowStage) -> None:
    stage.window.setFocus()
    QTest.keyClick(stage.window, Qt.Key.Key_Question)
    shown = page(stage, KeysPage)
    told = dict(shown.rows())
    for row in ACTIONS:
        if row.keys:
            assert told[row.text] == keys_of(row.keys)
    QTest.keyClick(shown.lists[0], Qt.Key.Key_Escape)
    assert not shown.isVisible()


def test_a_question_mark_that_is_typed_is_text(stage: WindowStage) -> None:
    QTest.keyClicks(stage.window.prompt.edit, "why?")
    assert stage.window.prompt.edit.text() == "why?"
    assert not stage.window.help.pages


def test_the_keys_fit_a_projector_without_scrolling(stage: WindowStage) -> None:
    stage.window.help.show_keys()
    shown = page(stage, KeysPage)
    assert shown.width() <= 1270
    assert shown.height() <= 670
    settle()
    assert not any(one.selectedItems() for one in shown.lists)
    for one in shown.lists:
        assert one.verticalScrollBar().maximum() == 0
        assert one.horizontalScrollBar().maximum() == 0


def test_the_guide_names_every_panel_and_leads_on(stage: WindowStage) -> None:
    stage.window.help.show_guide()
    shown = page(stage, Guide)
    names = [name for name, _ in shown.list.rows()]
    assert {place.words for place in PANELS} <= set(names)
    assert all(text for _, text in shown.list.rows())
    shown.keysWanted.emit()
    page(stage, KeysPage)
    shown.glossaryWanted.emit()
    page(stage, GlossaryPage)


def test_what_has_no_word_is_explained_by_f1_alone(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    stage.window.docks.bring_up("attention")
    strip = stage.window.sequence.strip
    strip.setFocus()
    QTest.keyClick(strip, Qt.Key.Key_F1)
    assert stage.window.help.card.term == "token"
    assert strip.accessibleDescription().endswith(TERMS["token"].text)
    stage.window.help.show_me("left-padding")
    panel = stage.window.docks.bring_up("padding")
    assert stage.window.help.pointed_at is panel.sides.button(0)  # type: ignore[attr-defined]


@pytest.mark.parametrize("scale", [1.0, 1.8])
def test_pages_are_as_large_as_the_zoom_asks_for(stage: WindowStage, scale: float) -> None:
    stage.look.scale = scale
    stage.look.zoom(+1)
    stage.window.help.show_glossary()
    shown = page(stage, GlossaryPage)
    letters = shown.width() / shown.list.fontMetrics().averageCharWidth()
    assert letters > 80
    part = shown.list.topLevelItem(0)
    assert part is not None
    assert part.font(0).pixelSize() == shown.list.font().pixelSize()
    stage.look.zoom(0)
    settle()
    assert part.font(0).pixelSize() == shown.list.font().pixelSize()
    assert part.font(0).bold()


def test_a_narrow_page_has_all_keys_in_one_list(stage: WindowStage) -> None:
    stage.window.help.show_keys()
    shown = page(stage, KeysPage)
    told = shown.rows()
    assert [one.isVisible() for one in shown.lists] == [True, True, True]
    resize(shown, 500, 600)
    assert [one.isVisible() for one in shown.lists] == [True, False, False]
    assert sorted(shown.rows()) == sorted(told)
    assert shown.lists[0].horizontalScrollBar().maximum() == 0
    resize(shown, 1200, 600)
    assert shown.lists[2].isVisible()
    assert shown.rows() == told


@pytest.mark.parametrize(
    ("lengths", "lists", "expected"),
    [((5, 5, 5), 3, ["0", "1", "2"]), ((9, 1, 1), 2, ["0", "12"]), ((3,), 3, ["0"]),
     ((4, 2, 4, 2), 1, ["0123"]), ((8, 4, 9, 11, 4, 5), 3, ["01", "25", "34"])],
)  # fmt: skip
def test_lists_are_about_as_long(lengths: tuple[int, ...], lists: int, expected: list[str]) -> None:
    groups = [(str(place), [("a", "b")] * length) for place, length in enumerate(lengths)]
    parts = shared(groups, lists)
    assert ["".join(title for title, _ in part) for part in parts] == expected


def test_everything_closes_with_the_window(stage: WindowStage) -> None:
    stage.window.help.show_guide()
    stage.window.help.show_keys()
    stage.window.help.show_glossary()
    pages = stage.window.help.pages
    assert len(pages) == 3
    stage.window.close_at_once()
    assert not any(page.isVisible() for page in pages)
