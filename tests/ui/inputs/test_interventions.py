"""Interventions in the window: switched by actions, keys and menus, marked while on, undone."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu

from explorer.session.state import Status
from explorer.trace.card import Capability
from explorer.trace.inside.heads import SweepHeads
from explorer.trace.interventions.kinds import MOST, Cells, Scale, Silence, written
from explorer.trace.interventions.lines import read
from explorer.trace.wire import messages as m
from explorer.ui.panel.head_menu import cell_menu, head_menu
from explorer.ui.panel.intervention_words import listed, short
from explorer.ui.panel.patch_menu import sources
from explorer.ui.panel.scale_dialog import ScaleDialog
from tests.session.scripted import card
from tests.ui.stage import WindowStage

NAMES = (
    "silence_heads", "silence_mlp", "silence_layers", "cut_cells", "scale_scores",
    "patch_heads", "patch_mlp", "patch_stream",
)  # fmt: skip
ABLE = tuple(Capability(name=name, offered=True, words="it can") for name in NAMES)


def ready(stage: WindowStage) -> WindowStage:
    """A run of a model that can do all of it."""
    stage.loaded().ran(1)
    stage.session.open_model("tiny")
    stage.answer_load(capabilities=ABLE)
    return stage


def trigger(stage: WindowStage, name: str) -> None:
    stage.window.actions_table.by_id[name].trigger()
    stage.paint()


def test_many_chips_fold_and_leave_the_prompt_three_lines(stage: WindowStage) -> None:
    window = ready(stage).window
    window.resize(1280, 694)
    box, edit = window.interventions, window.prompt.edit
    stage.session.set_interventions(tuple(Silence(layer=layer) for layer in range(4)))
    stage.paint()
    assert all(chip.isVisible() for chip in box.chips)
    assert not box.rest.isVisible()
    stage.session.set_interventions(
        tuple(Silence(layer=layer, head=head) for layer in range(3) for head in range(3))
    )
    stage.paint()
    assert [chip.isVisible() for chip in box.chips] == [True] * 4 + [False] * 5
    assert box.rest.text() == "and 5 more"
    box.rest.click()
    stage.paint()
    assert all(chip.isVisible() for chip in box.chips)
    assert edit.viewport().height() >= 3 * edit.fontMetrics().lineSpacing()


def test_a_head_is_silenced_marked_and_given_back(stage: WindowStage) -> None:
    window = ready(stage).window
    box, bar = window.interventions, window.notices.changed
    assert box.isHidden()
    stage.session.select(layer=1, head=1)
    window.setFocus()
    QTest.keyClick(window, Qt.Key.Key_H)
    stage.paint()
    assert stage.state.request.interventions == (Silence(layer=1, head=1),)
    assert window.actions_table.by_id["silence-head"].isChecked()
    assert box.isVisible()
    assert [chip.text() for chip in box.chips] == ["L1 H1 silenced ✕"]
    assert "L1 H1 silenced" in bar.text
    assert "Press Step to run with these interventions." in bar.text
    stage.session.step()
    assert stage.engine.last(m.Advance).request.interventions == (Silence(layer=1, head=1),)
    trigger(stage, "silence-mlp")
    trigger(stage, "silence-layer")
    assert len(box.chips) == 3
    box.chips[0].click()
    assert [str(one) for one in stage.state.request.interventions] == ["silence 1.mlp", "silence 1"]
    box.clear.click()
    assert stage.state.request.interventions == ()
    assert box.isHidden()
    assert bar.text == ""
    assert window.actions_table.by_id["undo"].text() == "Undo interventions"
    stage.session.undo()
    assert len(stage.state.request.interventions) == 2
    assert box.isVisible()


def test_what_the_model_can_not_do_is_greyed_with_the_reason(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    table = stage.window.actions_table.by_id
    for name in ("silence-head", "silence-mlp", "silence-layer", "clear-interventions"):
        assert not table[name].isEnabled()
    assert not table["sweep-heads"].isEnabled()
    why = Capability(name="silence_heads", offered=False, words="attention is hidden")
    stage.session.open_model("tiny")
    stage.answer_load(capabilities=(why, *ABLE[1:]))
    act = head_menu(stage.session, stage.window).actions()[0]
    assert not act.isEnabled()
    assert "attention is hidden" in act.toolTip()


def test_another_model_has_other_heads(stage: WindowStage) -> None:
    ready(stage).session.switch_intervention(Silence(layer=1, head=1))
    stage.session.open_model("other")
    stage.say(m.Loaded(run=stage.engine.last(m.Load).run, card=card("other")))
    assert stage.state.request.interventions == ()


def test_the_menus_of_a_head_and_of_a_cell(stage: WindowStage) -> None:
    session = ready(stage).session
    session.select(layer=0, head=1)
    first, *_, clear = head_menu(session, stage.window).actions()
    assert first.text().replace("&", "") == "Silence layer 0, head 1"
    assert not clear.isEnabled()
    first.trigger()
    assert head_menu(session, stage.window).actions()[0].isChecked()
    cells = cell_menu(session, stage.window, 1, 0)
    cells.actions()[0].trigger()
    cells.actions()[3].trigger()
    assert [str(one) for one in stage.state.request.interventions] == [
        "silence 0.1", "cut 0.1:1<-0", "cut *.*:*<-0",
    ]  # fmt: skip
    cells.actions()[-1].trigger()
    assert stage.state.request.interventions == ()


def test_a_head_is_at_its_mean_or_silent_and_a_masked_cell_can_be_allowed(
    stage: WindowStage,
) -> None:
    session = ready(stage).session
    session.select(layer=0, head=1)
    for place, line in ((1, "silence 0.1=mean"), (0, "silence 0.1")):
        head_menu(session, stage.window).actions()[place].trigger()
        assert written(stage.state.request.interventions) == [line]
    session.set_interventions(())
    plain = cell_menu(session, stage.window, 0, 2).actions()
    assert not any("Allow" in act.text() for act in plain)
    allow = [
        act
        for act in cell_menu(session, stage.window, 0, 2, masked=True).actions()
        if "Allow" in act.text()
    ]
    assert len(allow) == 2
    allow[0].trigger()
    assert written(stage.state.request.interventions) == ["allow 0.1:0<-2"]
    again = cell_menu(session, stage.window, 0, 2).actions()  # it can be switched off there
    next(act for act in again if act.isChecked()).trigger()
    assert stage.state.request.interventions == ()


def test_scores_are_scaled_where_and_by_what_is_typed(stage: WindowStage) -> None:
    session = ready(stage).session
    session.select(layer=1, head=0)

    def typed(where: int, text: str) -> ScaleDialog:
        dialog = ScaleDialog(session, stage.window)
        dialog.open()
        dialog.where.setCurrentIndex(where)
        dialog.factor.lineEdit().selectAll()
        QTest.keyClicks(dialog.factor.lineEdit(), text)
        dialog.apply.click()
        return dialog

    typed(0, "0,5")  # a comma is the point, as in every field
    typed(1, "3")
    typed(2, "1.5")
    lines = ["scale 1.0:0.5", "scale 1.*:3", "scale *.*:1.5"]
    assert written(stage.state.request.interventions) == lines
    assert [chip.text() for chip in stage.window.interventions.chips] == [
        "L1 H0: scores × 0.5 ✕", "L1: scores × 3 ✕", "all heads: scores × 1.5 ✕",
    ]  # fmt: skip
    dialog = typed(1, "-1")  # is refused, and the dialog stays
    assert dialog.isVisible()
    assert dialog.factor.value() == 3
    dialog.leave.click()
    typed(1, "1")  # as the model has it
    assert written(stage.state.request.interventions) == [lines[0], lines[2]]


def test_many_areas_of_one_head_have_one_chip(stage: WindowStage) -> None:
    session = ready(stage).session
    areas = [read(f"cut 1.0:{query}<-0") for query in range(9)]
    session.set_interventions([*areas, read("cut 1.1:5<-0"), read("silence 0.0")])
    chips = stage.window.interventions.chips
    assert [chip.text() for chip in chips] == [
        "L1 H0: 9 areas cut ✕", "L1 H1: 5 → 0 cut ✕", "L0 H0 silenced ✕",
    ]  # fmt: skip
    chips[0].click()
    assert written(stage.state.request.interventions) == ["cut 1.1:5<-0", "silence 0.0"]


def test_a_right_click_on_a_cell_opens_its_menu(stage: WindowStage) -> None:
    ready(stage)
    panel = next(p for p in stage.window.docks.panels if p.ID == "attention")
    panel.pages.maps.menuAsked.emit(1, 0, QPoint(5, 5))
    assert "query 1" in panel.head_menu.actions()[0].text()
    panel.head_menu.close()
    panel.heads.atlas.menuAsked.emit(QPoint(5, 5))
    assert "Silence" in panel.head_menu.actions()[0].text()
    panel.head_menu.close()
    widget = panel.pages.maps.maps[0]
    asked: list[tuple[int, int]] = []
    widget.menuAsked.connect(lambda query, key, at: asked.append((query, key)))
    widget.set_cursor((0, 0))
    by_key = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(), QPoint())
    QApplication.sendEvent(widget, by_key)
    assert asked == [(0, 0)]
    panel.head_menu.close()


def test_a_part_is_patched_from_an_earlier_run(stage: WindowStage) -> None:
    session = ready(stage).session
    session.select(layer=1, head=0, query=1)
    patch_of = lambda: head_menu(session, stage.window).actions()[4]  # noqa: E731
    assert not patch_of().isEnabled(), "there is no other run"
    assert "no other run" in patch_of().toolTip()
    first = stage.state.trace
    assert first is not None
    session.set_prompt("another prompt")
    stage.ran(1)
    session.select(layer=1, head=0, query=1)
    menu = patch_of().menu()
    assert isinstance(menu, QMenu)
    runs = menu.actions()
    assert [act.text().replace("&", "") for act in runs] == ["A: p0p1p2"]
    inner = runs[0].menu()
    assert isinstance(inner, QMenu)
    entries = [act for act in inner.actions() if not act.isSeparator()]
    assert [act.text() for act in entries] == [
        "Layer 1, head 0, position 1 (p1 in place of p1)", "Layer 1, head 0, every position",
        "MLP of layer 1, position 1 (p1 in place of p1)", "MLP of layer 1, every position",
        "Residual stream after layer 1, position 1 (p1 in place of p1)",
        "Residual stream after layer 1, every position",
    ]  # fmt: skip
    entries[0].trigger()
    entries[5].trigger()
    stage.paint()
    assert [str(one) for one in stage.state.request.interventions] == [
        "patch 1.0:1<-1 of 0,1,2", "patch 1:*<-* of 0,1,2",
    ]  # fmt: skip
    chips = stage.window.interventions.chips
    assert [chip.text() for chip in chips] == [
        "L1 H0 patched at 1 ✕", "L1 stream patched ✕"
    ]  # fmt: skip
    assert "L1 H0 patched at 1" in stage.window.notices.changed.text
    session.step()
    assert stage.engine.last(m.Advance).request.interventions[0] == read("patch 1.0:1<-1 of 0,1,2")


def test_runs_of_other_length_are_aligned_at_the_position_or_the_end(stage: WindowStage) -> None:
    session = ready(stage).session
    stage.ran(2)  # five tokens read
    session.set_prompt("another prompt")
    stage.ran(1)
    session.select(layer=0, head=1, query=2)
    ((_, source),) = sources(stage.state)
    assert len(source.tokens) == 5
    menu = head_menu(session, stage.window).actions()[4].menu()
    assert isinstance(menu, QMenu)
    inner = menu.actions()[0].menu()
    assert isinstance(inner, QMenu)
    same, from_the_end = [act.text() for act in inner.actions()][:2]
    assert same == "Layer 0, head 1, position 2 (p2 in place of p2)"
    assert from_the_end.startswith("Layer 0, head 1, position 2 from position 4 (")
    inner.actions()[1].trigger()
    assert str(stage.state.request.interventions[0]).startswith("patch 0.1:2<-4 of ")


def test_a_run_that_is_patched_itself_is_no_source(stage: WindowStage) -> None:
    session = ready(stage).session
    session.set_interventions([read("patch 1.0:1<-1 of 0,1,2")])
    stage.ran(1)
    session.set_interventions([])
    session.set_prompt("another prompt")
    stage.ran(1)
    assert [branch.trace.request.interventions for branch, _ in sources(stage.state)] == [()]


def test_which_head_matters_asks_for_the_chosen_token(stage: WindowStage) -> None:
    ready(stage)
    trigger(stage, "sweep-heads")
    asked = stage.engine.last(SweepHeads)
    assert stage.state.trace is not None
    assert asked.token == stage.state.trace.chosen_ids[0]
    assert asked.chosen == ()
    facts = {"token": asked.token, "logit": 2.0, "probability": 0.5, "heads": (2, 2),
             "logits": (1.0,), "probabilities": (0.1,)}  # fmt: skip
    stage.say(m.PartFacts(run=asked.run, facts=facts))
    assert isinstance(stage.state.status, Status)
    whole = {**facts, "logits": (1.0, 2.0, 2.5, -3.0), "probabilities": (0.1,) * 4}
    stage.say(m.Facts(run=asked.run, facts=whole))
    assert (stage.state.selection.layer, stage.state.selection.head) == (1, 1)


def test_words_on_chips_are_short() -> None:
    lines = ("silence 1.mlp", "silence 2", "cut 1.0:5<-3", "cut *.*:*<-q-1", "cut 1.*:2-3<-q-4+",
             "allow 0.0:5<-7", "cut 0.0:*<-q-2-3", "restore 0.0:5<-7",
             "silence 1.3=mean")  # fmt: skip
    assert [short(read(line)) for line in lines] == [
        "MLP of layer 1 silenced", "Layer 2 silenced", "L1 H0: 5 → 3 cut",
        "all heads: any → 1 back cut", "L1: 2–3 → 4 or more back cut", "L0 H0: 5 → 7 allowed",
        "L0 H0: any → 2 to 3 back cut", "L0 H0: 5 → 7 restored", "L1 H3 at its mean",
    ]  # fmt: skip
    assert short(Scale(layer=1, factor=2.0)) == "L1: scores × 2"
    assert short(Cells(head=1)) == "L* H1: any → any cut"
    assert short(Cells(queries=(0, MOST), keys=(2, MOST))) == "all heads: any → 2 and later cut"
    assert listed([Silence(layer=0), Silence(layer=1)]) == "L0 H0 silenced · L1 H0 silenced"
