"""The branches panel: the tree, jumping about in it, and two branches side by side."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from explorer.trace.card import Capability
from explorer.ui.access.accessible import line_of
from explorer.ui.canvases.tokens.branch_tree import TreeNode
from explorer.ui.panels.branches import BranchesPanel
from tests.ui.stage import WindowStage


def panel_of(stage: WindowStage) -> BranchesPanel:
    dock = next(d for d in stage.window.docks.docks if d.panel.ID == "branches")
    dock.show()
    dock.raise_()
    stage.paint()
    assert isinstance(dock.panel, BranchesPanel)
    return dock.panel


def words(shown: BranchesPanel) -> str:
    return "\n".join(label.text() for label in shown.findChildren(QLabel) if label.isVisible())


def forked(stage: WindowStage) -> BranchesPanel:
    """A: three steps; B: shares one of them, another token instead of the second."""
    stage.loaded().ran(3)
    stage.session.select(step=1)
    stage.session.force(20)
    shown = panel_of(stage)
    stage.paint()
    return shown


def test_a_fork_is_two_rows_and_the_node_on_screen_is_marked(stage: WindowStage) -> None:
    shown = forked(stage)
    rows = shown.tree.rows
    assert [(r.parent, r.fork, len(r.tokens)) for r in rows] == [(None, 0, 3), (0, 1, 1)]
    assert shown.tree.shown == TreeNode(1, 1)
    assert shown.tree.lit == {(0, 0), (1, 1)}
    assert "2 branches, " in words(shown)
    assert "KiB of memory (limit 1 GiB)" in words(shown)


def test_branches_deleted_to_save_memory_are_counted(stage: WindowStage) -> None:
    shown = forked(stage)
    for count, said in ((1, "1 older branch deleted"), (2, "2 older branches deleted")):
        stage.session._store.set(branches=replace(stage.state.branches, let_go=count))
        stage.paint()
        assert f"{said} to save memory" in words(shown)


def test_a_click_shows_the_node_and_undo_goes_back(stage: WindowStage) -> None:
    shown = forked(stage)
    place = shown.tree.rect_of(TreeNode(0, 2)).center().toPoint()
    QTest.mouseClick(shown.tree, Qt.MouseButton.LeftButton, pos=place)
    assert stage.state.trace is not None
    assert stage.state.trace.chosen_ids == (10, 11, 12)
    assert stage.state.step_index == 2
    assert shown.tree.shown == TreeNode(0, 2)
    stage.session.undo()
    assert stage.state.trace.chosen_ids == (10, 20)


def test_arrows_walk_the_tree_and_return_picks(stage: WindowStage) -> None:
    shown = forked(stage)
    tree = shown.tree
    tree.setFocus()
    QTest.keyClick(tree, Qt.Key.Key_Left)
    assert tree.current == TreeNode(0, 0)  # from the fork to the line it forks from
    for _ in range(5):
        QTest.keyClick(tree, Qt.Key.Key_Right)
    assert tree.current == TreeNode(0, 2)
    QTest.keyClick(tree, Qt.Key.Key_Down)
    assert tree.current == TreeNode(1, 1)
    assert "Branch B, token 2: t20" in line_of(tree)
    QTest.keyClick(tree, Qt.Key.Key_Up)
    QTest.keyClick(tree, Qt.Key.Key_Return)
    assert stage.state.branches.current == 1


def test_two_branches_are_compared_from_their_fork(stage: WindowStage) -> None:
    shown = forked(stage)
    said = words(shown)
    assert "Shared: 1 token. After that, B: 1 token, " in said
    assert "A: 2 tokens, 1.386 nats (p = 25.0 %)" in said
    table = shown.views()["Comparison"].table
    assert table is not None
    rows = [tuple(row) for row in table()]
    assert rows[1][1] == "t20"
    assert rows[1][3:] == ("t11", "0.693")
    assert rows[2][:3] == (2, "", "")


def test_going_on_from_a_node_cuts_the_view_not_the_branch(stage: WindowStage) -> None:
    forked(stage)
    stage.session.show_branch(1, select=0)
    stage.window.actions_table.by_id["cut"].trigger()
    assert stage.state.trace is not None
    assert stage.state.trace.chosen_ids == (10,)
    assert stage.state.branches.get(1) is not None
    assert len(stage.state.branches.get(1).trace.steps) == 3  # type: ignore[union-attr]
    assert len(stage.state.branches.all) == 2


def test_forgetting_the_other_and_themes(stage: WindowStage) -> None:
    shown = forked(stage)
    for name in ("dark", "high_contrast", "light"):
        stage.look.set_theme(name)
        stage.paint()
    shown._forget()
    assert [b.name for b in stage.state.tree] == ["B"]
    assert [row.number for row in shown.tree.rows] == [2]
    assert "1 branch, " in words(shown)
    assert "1 deleted (Undo restores)" in words(shown)
    stage.session.undo()
    assert [row.number for row in shown.tree.rows] == [1, 2]
    assert "deleted" not in words(shown)


def test_a_name_shows_everywhere_and_undo_takes_it_back(stage: WindowStage) -> None:
    shown = forked(stage)
    stage.session.rename_branch(1, "the long way")
    assert shown._other.currentText() == "the long way"
    assert "the long way: 2 tokens" in words(shown)
    assert {row[0] for row in shown._tree_table()} == {"branch", "the long way", "B"}
    stage.session.undo()
    assert shown._other.currentText() == "A"


def test_what_only_undo_holds_is_shown(stage: WindowStage) -> None:
    shown = forked(stage)
    stage.session._store.set(undo_bytes=3 << 20)
    assert "undo: 3 MiB (limit 256 MiB)" in words(shown)


def test_a_part_is_patched_from_the_other_branch(stage: WindowStage) -> None:
    shown = forked(stage)
    stage.session.open_model("tiny")
    able = Capability(name="patch_stream", offered=True, words="it can")
    stage.answer_load(capabilities=(able,))
    stage.session.select(layer=1, query=3)
    shown.patch.click()
    entries = [act for act in shown.patches.actions() if not act.isSeparator()]
    offered = [act for act in entries if act.isEnabled()]
    assert [act.text().replace("&", "").partition(" (")[0] for act in offered] == [
        "Residual stream after layer 1, position 3",
        "Residual stream after layer 1, position 3 from position 4",
    ]
    offered[0].trigger()
    shown.patches.close()
    (patch,) = stage.state.request.interventions
    first = next(one for one in stage.state.branches.all if one.number == 1)
    ids = [token.id for token in first.trace.tokens[:5]]
    assert str(patch) == f"patch 1:3<-3 of {','.join(map(str, ids))}"
