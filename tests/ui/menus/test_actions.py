"""Every row of the table of actions: it is in a menu, it does what it says, when it may."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QFileDialog,
    QMenu,
    QMessageBox,
)

from explorer import wording
from explorer.lessons.lesson import read_lesson
from explorer.lessons.scene import read_scene
from explorer.session.session import Session
from explorer.trace.card import Capability
from explorer.trace.files import dxt
from explorer.trace.inside.heads import SweepHeads
from explorer.trace.interventions.kinds import Silence
from explorer.trace.wire import messages as m
from explorer.ui.dialogs.hand_in.gif_dialog import GifDialog
from explorer.ui.dialogs.hand_in.report_dialog import ReportDialog
from explorer.ui.dialogs.help.glossary_page import GlossaryPage
from explorer.ui.dialogs.help.guide import Guide
from explorer.ui.dialogs.help.keys_page import KeysPage, keys_of
from explorer.ui.dialogs.hub import HubDialog
from explorer.ui.dialogs.model_picker import ModelPicker
from explorer.ui.inputs.prompt import TokenEdit
from explorer.ui.lessons.lesson_list import LessonList
from explorer.ui.look.theme import THEMES
from explorer.ui.menus.actions import ACTIONS, MENUS
from explorer.ui.panel.panel import Panel
from explorer.ui.panel.scale_dialog import ScaleDialog
from explorer.ui.settings.preferences import Preferences
from tests.session.scripted import cut_last, played
from tests.ui.lessons.classroom import LESSON
from tests.ui.stage import WindowStage
from tests.ui.waiting import wait_until


def trigger(stage: WindowStage, name: str) -> None:
    action = stage.window.actions_table.by_id[name]
    assert action.isEnabled(), f"{name} cannot be triggered now"
    action.trigger()
    stage.drain()
    stage.paint()


def test_ids_and_keys_are_unique() -> None:
    assert max(Counter(row.id for row in ACTIONS).values()) == 1
    keys = Counter(
        QKeySequence(key).toString() for row in ACTIONS for key in (*row.keys, *row.lesson_keys)
    )
    assert max(keys.values()) == 1
    assert "" not in keys  # every key is one that Qt knows


def test_keys_are_unique_in_presenter_mode_too() -> None:
    keys: Counter[str] = Counter()
    for row in ACTIONS:
        here = row.keys if row.presenter_keys is None else row.presenter_keys
        keys.update(QKeySequence(key).toString() for key in here)
    assert max(keys.values()) == 1
    assert "" not in keys


def test_in_presenter_mode_arrows_and_a_clicker_turn_to_the_other_panels(
    stage: WindowStage,
) -> None:
    by_id = stage.window.actions_table.by_id

    def keys(name: str) -> list[str]:
        return [key.toString() for key in by_id[name].shortcuts()]

    before = {name: keys(name) for name in by_id}
    stage.window.presenter.toggle()
    assert keys("next-panel")[:2] == ["Right", "PgDown"]
    assert keys("previous-panel")[:2] == ["Left", "PgUp"]
    assert "Right" not in keys("step")
    assert "Space" in keys("step")
    stage.window.presenter.toggle()
    assert {name: keys(name) for name in by_id} == before


def test_the_keys_that_were_promised() -> None:
    keys = {row.id: row.keys for row in ACTIONS}
    assert keys["step"][0] == "Space"
    assert keys["back"] == ("Left",)
    assert keys["forward"] == ("Right",)
    assert keys["cut"] == ("Del",)
    assert keys["run"] == ("R",)
    assert keys["reset"] == ("Home",)
    assert keys["mask"] == ("M",)
    assert keys["presenter"] == ("F11",)
    assert keys["open-file"] == ("Ctrl+O",)
    assert keys["save"] == ("Ctrl+S",)
    assert keys["undo"] == ("Ctrl+Z",)
    assert "Ctrl+Shift+Z" in keys["redo"]
    assert keys["quit"] == ("Ctrl+Q",)


def test_each_is_in_its_menu_with_words_and_icon(stage: WindowStage) -> None:
    menus = {menu.text(): menu.menu() for menu in stage.window.menuBar().actions()}
    for row in ACTIONS:
        action = stage.window.actions_table.by_id[row.id]
        assert action in menus[MENUS[row.menu]].actions(), row.id
        assert action.text(), row.id
        assert action.toolTip().startswith(row.tip), row.id
        assert action.icon().isNull() is (not row.icon), row.id


# What each row does; a row that is missing here fails `test_every_row_is_tried`.


def _asks(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, method: str, answer: object) -> None:
    monkeypatch.setattr(QFileDialog, method, staticmethod(lambda *_, **__: answer))


def try_open_file(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded()
    _asks(stage, monkeypatch, "getOpenFileName", (str(tmp_path / "m.gguf"), ""))
    trigger(stage, "open-file")
    assert stage.engine.last(m.Load).model == str(tmp_path / "m.gguf")


def try_choose_model(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded()
    trigger(stage, "choose-model")
    assert stage.engine.count(m.FindModels) == 1
    assert stage.state.finding


def try_download(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded()
    asked = len(stage.engine.asked)
    trigger(stage, "download")
    assert stage.window.findChild(HubDialog).isVisible()  # type: ignore[union-attr]
    assert len(stage.engine.asked) == asked  # nothing before a button is pressed


def try_open_folder(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded()
    _asks(stage, monkeypatch, "getExistingDirectory", str(tmp_path))
    trigger(stage, "open-folder")
    assert stage.engine.last(m.Load).model == str(tmp_path)
    assert stage.memory.recent() == [str(tmp_path)]


def try_reopen(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded("as it was")
    stage.session.set_causal_mask(False)
    stage.memory.remember_session(stage.state)
    stage.session.set_prompt("something else")
    stage.session.set_causal_mask(True)
    trigger(stage, "reopen")
    assert stage.engine.last(m.Load).model == "tiny"
    assert stage.state.request.prompt == "as it was"
    assert not stage.state.request.causal_mask
    assert stage.window.prompt.edit.text() == "as it was"


def try_save(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded().ran(1)
    _asks(stage, monkeypatch, "getSaveFileName", (str(tmp_path / "kept"), ""))
    trigger(stage, "save")
    stage.session.close()  # waits until what was asked for is written
    assert (tmp_path / "kept.dxt").stat().st_size > 0


def try_quit(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trigger(stage, "quit")
    assert not stage.window.isVisible()


def try_undo(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded().ran(2)
    cut_last(stage.session)
    trigger(stage, "undo")
    assert stage.state.trace is not None
    assert len(stage.state.trace.steps) == 2


def try_redo(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded().ran(2)
    cut_last(stage.session)
    stage.session.undo()
    trigger(stage, "redo")
    assert stage.state.trace is not None
    assert len(stage.state.trace.steps) == 1


def try_copy_text(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded().ran(2)
    trigger(stage, "copy-text")
    assert QApplication.clipboard().text() == "t10t11"
    assert stage.window.status.text == "Copied"


def try_reset(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded().ran(2)
    trigger(stage, "reset")
    assert stage.state.trace is None


def try_back(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded().ran(2)
    trace = stage.state.trace
    trigger(stage, "back")
    assert stage.state.trace is trace
    assert stage.state.step_index == 0
    trigger(stage, "back")
    assert stage.window.status.text == "This is the first generated token."


def try_forward(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded().ran(2)
    asked = stage.engine.count(m.Advance)
    stage.session.select(step=0)
    trigger(stage, "forward")
    assert stage.state.step_index == 1
    trigger(stage, "forward")
    assert stage.window.status.text.startswith("This is the newest token.")
    assert stage.engine.count(m.Advance) == asked


def try_cut(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded().ran(3)
    assert not stage.window.actions_table.by_id["cut"].isEnabled()
    stage.session.select(step=1)
    trigger(stage, "cut")
    assert stage.state.trace is not None
    assert len(stage.state.trace.steps) == 2


def try_step(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded()
    trigger(stage, "step")
    assert stage.engine.last(m.Advance).steps == 1


def try_run(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded()
    action = stage.window.actions_table.by_id["run"]
    trigger(stage, "run")
    assert stage.engine.last(m.Advance).steps > 1000
    assert (action.isChecked(), action.text()) == (True, "Pause")
    trigger(stage, "run")
    assert stage.engine.count(m.Cancel) == 1
    assert (action.isChecked(), action.text()) == (False, "Run")


def try_mask(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.session.start_engine()
    stage.session.open_model("tiny")
    stage.drain()
    offered = Capability(name="causal_off", offered=True, words="works")
    stage.answer_load(capabilities=(offered,))
    trigger(stage, "mask")
    assert not stage.state.request.causal_mask
    assert not stage.window.actions_table.by_id["mask"].isChecked()
    trigger(stage, "mask")
    assert stage.state.request.causal_mask


def _able(stage: WindowStage, capability: str) -> None:
    """A model that can do this is open."""
    stage.loaded()
    stage.session.open_model("tiny")
    stage.answer_load(capabilities=(Capability(name=capability, offered=True, words="works"),))
    stage.session.select(layer=1, head=1)


def _silenced(stage: WindowStage, name: str, needs: str) -> str:
    """What one act adds to the interventions of a model that can do it, and a second takes back."""
    _able(stage, needs)
    trigger(stage, name)
    (one,) = stage.state.request.interventions
    assert stage.window.actions_table.by_id[name].isChecked()
    trigger(stage, name)
    assert stage.state.request.interventions == ()
    return str(one)


def try_silence_head(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert _silenced(stage, "silence-head", "silence_heads") == "silence 1.1"


def try_mean_head(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert _silenced(stage, "mean-head", "patch_heads") == "silence 1.1=mean"


def try_draw_mask(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _able(stage, "cut_cells")
    assert not stage.window.actions_table.by_id["draw-mask"].isEnabled()
    stage.ran(1)
    panel = stage.window.docks.bring_up("attention")
    for on in (True, False):
        trigger(stage, "draw-mask")
        assert panel.drawing.on is on


def try_scale_scores(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _able(stage, "scale_scores")
    trigger(stage, "scale-scores")
    (dialog,) = stage.window.findChildren(ScaleDialog)
    dialog.factor.setValue(2)
    dialog.apply.click()
    assert [str(one) for one in stage.state.request.interventions] == ["scale 1.1:2"]


def try_silence_mlp(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert _silenced(stage, "silence-mlp", "silence_mlp") == "silence 1.mlp"


def try_silence_layer(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert _silenced(stage, "silence-layer", "silence_layers") == "silence 1"


def try_patch(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    action = stage.window.actions_table.by_id["patch"]
    stage.loaded()
    stage.session.open_model("tiny")
    able = Capability(name="patch_heads", offered=True, words="works")
    stage.answer_load(capabilities=(able,))
    stage.ran(1)
    assert not action.isEnabled(), "there is no other run"
    stage.session.set_prompt("another")
    stage.ran(1)
    assert action.isEnabled()
    trigger(stage, "patch")
    menu = stage.window.docks.bring_up("attention").head_menu  # type: ignore[attr-defined]
    assert len(menu.actions()) == 1
    menu.close()


def try_clear_interventions(
    stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stage.session.set_interventions((Silence(layer=0), Silence(layer=0, part="mlp")))
    trigger(stage, "clear-interventions")
    assert stage.state.request.interventions == ()


def try_sweep_heads(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    able = Capability(name="silence_heads", offered=True, words="works")
    stage.loaded()
    stage.session.open_model("tiny")
    stage.answer_load(capabilities=(able,))
    stage.ran(1)
    trigger(stage, "sweep-heads")
    assert stage.engine.last(SweepHeads).token == stage.state.trace.chosen_ids[0]


def try_cache(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trigger(stage, "cache")
    assert not stage.state.request.cache
    assert not stage.window.actions_table.by_id["cache"].isChecked()


def try_reuse(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trigger(stage, "reuse")
    assert not stage.state.reuse
    assert not stage.window.actions_table.by_id["reuse"].isChecked()


def try_check(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded().ran(1)
    begun = stage.engine.count(m.CheckTrace)  # one begins by itself after a step
    trigger(stage, "check")
    assert stage.engine.count(m.CheckTrace) == begun + 1


def try_test_again(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded()
    assert not stage.engine.last(m.Load).test_again
    trigger(stage, "test-again")
    assert stage.engine.last(m.Load).test_again


def try_cancel(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded()
    stage.session.step()
    trigger(stage, "cancel")
    assert stage.engine.last(m.Cancel).run == stage.engine.last(m.Advance).run


def try_restart_engine(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded()
    trigger(stage, "restart-engine")
    assert len(stage.engines) == 2


def try_compare_mask(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded()
    stage.ran(1)
    trigger(stage, "compare-mask")
    assert stage.state.comparing
    assert stage.window.actions_table.by_id["compare-mask"].isChecked()
    trigger(stage, "compare-mask")
    assert not stage.state.comparing


def try_compare_forms(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    action = stage.window.actions_table.by_id["compare-forms"]
    stage.loaded()
    stage.ran(1)
    assert not action.isEnabled(), "a folder has one form"
    stage.session.open_model("a.gguf", form="as-is")
    stage.answer_load(name="a", form="as-is")
    stage.ran(1)
    trigger(stage, "compare-forms")
    stage.drain()
    assert (stage.state.comparing, stage.state.compare_of) == (True, "form")
    assert action.isChecked()
    assert stage.engine.last(m.Recapture).request.form == "float32"
    trigger(stage, "compare-mask")
    assert (stage.state.comparing, stage.state.compare_of) == (True, "mask")
    trigger(stage, "compare-mask")
    assert not stage.state.comparing


def try_compare_interventions(
    stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    action = stage.window.actions_table.by_id["compare-interventions"]
    stage.loaded()
    stage.session.open_model("tiny")
    stage.answer_load(capabilities=(Capability(name="silence_heads", offered=True, words=""),))
    stage.ran(1)
    assert not action.isEnabled(), "the model runs as it is"
    trigger(stage, "silence-head")
    stage.ran(1)
    trigger(stage, "compare-interventions")
    stage.drain()
    assert (stage.state.comparing, stage.state.compare_of) == (True, "interventions")
    assert action.isChecked()
    assert stage.engine.last(m.Recapture).request.interventions == ()
    stage.window.notices.compareInterventions.emit()  # its button does the same
    assert not stage.state.comparing


def try_go_to_token(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded()
    stage.ran(1)
    trigger(stage, "go-to-token")
    field = stage.window.docks.bring_up("attention").heads.go_to.query  # type: ignore[attr-defined]
    assert field.isVisible()
    assert stage.window.focusWidget() is field


def try_export_view(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded()
    stage.ran(1)
    panel = focus_on_bars(stage)
    trigger(stage, "export-view")
    stage.paint()
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    assert menu.parent() is panel
    assert "Save page to print (PDF)…" in [row.text().replace("&", "") for row in menu.actions()]
    menu.close()


def try_copy_view(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded()
    stage.ran(1)
    panel = focus_on_bars(stage)
    trigger(stage, "copy-view")
    wait_until(lambda: not panel.saving.busy)
    data = QApplication.clipboard().mimeData()
    assert data.hasImage()
    assert data.text().startswith("id\ttext")
    stage.window.prompt.edit.setFocus()
    stage.window.prompt.edit.selectAll()
    QTest.keyClick(stage.window.prompt.edit, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.clipboard().text() == stage.state.request.prompt


def focus_on_bars(stage: WindowStage) -> Panel:
    (panel,) = (panel for panel in stage.window.docks.panels if panel.ID == "next-token")
    panel.views()["Next token"].widget.setFocus()
    stage.paint()
    return panel


def try_report(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded().ran(1)
    trigger(stage, "report")
    dialog = stage.window.findChild(ReportDialog)
    assert dialog is not None
    assert dialog.isVisible()
    dialog.close()


def try_copy_python(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded().ran(1)
    trigger(stage, "copy-python")
    assert "AutoModelForCausalLM" in QApplication.clipboard().text()
    assert stage.window.status.text == "Copied"


def try_save_notebook(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded().ran(1)
    _asks(stage, monkeypatch, "getSaveFileName", (str(tmp_path / "run"), ""))
    trigger(stage, "save-notebook")
    wait_until(lambda: (tmp_path / "run.ipynb").exists())


def try_save_gif(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded().ran(1)
    trigger(stage, "save-gif")
    dialog = stage.window.findChild(GifDialog)
    assert dialog is not None
    assert dialog.isVisible()
    dialog.close()


def try_close(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded()
    stage.ran(1)
    trigger(stage, "close")
    (question,) = stage.window.findChildren(QMessageBox, "unsaved")
    question.button(QMessageBox.StandardButton.Discard).click()
    stage.paint()
    assert stage.state.trace is None
    assert stage.window.isVisible()
    trigger(stage, "close")
    assert not stage.window.isVisible()


def try_captions(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert stage.window.actions_table.by_id["captions"].isChecked()
    trigger(stage, "captions")
    assert not stage.window.actions_table.by_id["captions"].isChecked()
    assert not any(panel.preferences.on("captions") for panel in stage.window.docks.panels)
    assert not Preferences(stage.memory).on("captions"), "it is remembered"


def try_letter_keys(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded()
    by_id = stage.window.actions_table.by_id
    assert by_id["run"].toolTip().endswith("(R)")
    trigger(stage, "letter-keys")
    stage.window.setFocus()
    for key in (Qt.Key.Key_R, Qt.Key.Key_M, Qt.Key.Key_C, Qt.Key.Key_E):
        QTest.keyClick(stage.window, key)
    stage.drain()
    assert stage.engine.count(m.Advance) == 0
    assert stage.state.request.causal_mask
    assert stage.window.docks.enlarged is None
    assert not by_id["run"].toolTip().endswith(")")
    assert not by_id["letter-keys"].isChecked()
    assert "Space" in by_id["step"].toolTip(), "no letter"
    assert "R" not in keys_in_help(stage)
    assert keys_of(("Ctrl+F1",)) in keys_in_help(stage), "without the question mark"
    trigger(stage, "letter-keys")
    assert "R" in keys_in_help(stage)
    QTest.keyClick(stage.window, Qt.Key.Key_R)
    stage.drain()
    assert stage.engine.count(m.Advance) == 1


def keys_in_help(stage: WindowStage) -> set[str]:
    """What the help says are the keys of the program."""
    stage.window.help.show_keys()
    (page,) = stage.window.help.pages
    assert isinstance(page, KeysPage)
    page.close()
    return {keys for _, keys in page.rows()}


def try_nats(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trigger(stage, "nats")
    assert wording.unit() == "bits"
    assert not Preferences(stage.memory).on("nats"), "it is remembered"
    trigger(stage, "nats")
    assert wording.unit() == "nats"


def try_explain(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.window.prompt.edit.setFocus()
    trigger(stage, "explain")
    assert stage.window.help.card.term == "prompt"
    trigger(stage, "explain")
    assert [type(page) for page in stage.window.help.pages] == [Guide]


def try_guide(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trigger(stage, "guide")
    (page,) = stage.window.help.pages
    assert isinstance(page, Guide)
    explained = stage.window.docks.bring_up("next-token").explanation
    assert ("Next token", explained) in page.list.rows()


def try_keys(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trigger(stage, "keys")
    (page,) = stage.window.help.pages
    assert isinstance(page, KeysPage)
    assert ("Step", "Space, Ctrl+Return") in page.rows()
    told = {keys for _, keys in page.rows()}
    assert all(keys_of(row.keys) in told for row in ACTIONS if row.keys)


def try_glossary(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trigger(stage, "glossary")
    (page,) = stage.window.help.pages
    assert isinstance(page, GlossaryPage)
    assert page.isVisible()


def try_zoom_in(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = stage.window.prompt.fontInfo().pixelSize()
    trigger(stage, "zoom-in")
    trigger(stage, "zoom-in")
    assert stage.window.prompt.fontInfo().pixelSize() > before
    stage.look.zoom(0)


def try_zoom_out(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trigger(stage, "zoom-out")
    assert stage.look.scale < 1
    stage.look.zoom(0)


def try_zoom_reset(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.look.zoom(+1)
    trigger(stage, "zoom-reset")
    assert stage.look.scale == 1


def try_enlarge(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    docks = stage.window.docks
    monkeypatch.setattr(docks, "at_hand", lambda: docks.docks[2])
    trigger(stage, "enlarge")
    assert [dock for dock in docks.docks if dock.isVisible()] == [docks.docks[2]]
    trigger(stage, "enlarge")
    assert docks.docks[0].isVisible()


def try_settings(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trigger(stage, "settings")
    assert not stage.window.prompt.isVisible()
    assert stage.window.presenter.strip.isVisible()
    trigger(stage, "settings")
    assert stage.window.prompt.isVisible()


def try_presenter(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trigger(stage, "presenter")
    assert stage.window.isFullScreen()
    assert not stage.window.actions_table.by_id["quit"].isEnabled()
    assert not stage.window.actions_table.by_id["open-file"].isEnabled()
    trigger(stage, "presenter")
    assert not stage.window.isFullScreen()
    assert stage.window.actions_table.by_id["quit"].isEnabled()


def try_next_panel(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    docks = stage.window.docks
    docks.enlarge(docks.docks[0])
    trigger(stage, "next-panel")
    assert docks.enlarged is docks.docks[1]


def try_previous_panel(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    docks = stage.window.docks
    docks.enlarge(docks.docks[0])
    trigger(stage, "previous-panel")
    assert docks.enlarged is docks.docks[3]  # the last of those that are open


def try_reset_layout(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    docks = {dock.panel.ID: dock for dock in stage.window.docks.docks}
    docks["timings"].close()
    docks["padding"].toggleViewAction().trigger()
    stage.paint()
    assert not docks["timings"].isVisible()
    assert docks["padding"].isVisible()
    trigger(stage, "reset-layout")
    assert docks["timings"].isVisible()
    assert docks["attention"].isVisible()
    assert docks["padding"].isHidden()


def try_training(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trigger(stage, "training")
    (dock,) = (dock for dock in stage.window.docks.docks if dock.place.id == "training")
    assert dock.in_front


def try_padding_lab(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    dock = next(d for d in stage.window.docks.docks if d.panel.ID == "padding")
    assert dock.isHidden()
    for _ in range(2):  # it opens, and a second time it stays
        trigger(stage, "padding-lab")
        stage.paint()
        assert not dock.panel.visibleRegion().isEmpty()


def try_open_log(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path / "nothing here"))
    trigger(stage, "open-log")
    assert "no log yet" in stage.window.notices.error.text
    assert "nothing here" in stage.window.notices.error.text  # where it would be


def try_about(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown: list[str] = []
    monkeypatch.setattr(QMessageBox, "about", staticmethod(lambda *args: shown.append(args[2])))
    trigger(stage, "about")
    assert "Apache" in shown[0]


def try_full(stage: WindowStage, *_: object) -> None:
    trigger(stage, "full")
    assert stage.window.try_this.isVisible()
    assert not Preferences(stage.memory).on("full"), "it is remembered"
    trigger(stage, "full")
    assert not stage.window.try_this.isVisible()


def try_open_lesson(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "lesson.toml"
    file.write_text(LESSON, encoding="utf-8")
    _asks(stage, monkeypatch, "getOpenFileName", (str(file), ""))
    trigger(stage, "open-lesson")
    assert stage.window.lessons.card.heading.text() == "A list"
    assert stage.engine.last(m.Load).model == "copycat"


def in_lesson(stage: WindowStage, page: int) -> None:
    lesson = read_lesson(LESSON, "lesson.toml")
    stage.window.lessons.begin(lesson)
    stage.window.lessons.course.go(page)
    stage.drain()
    stage.paint()


def try_next_page(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    in_lesson(stage, 0)
    trigger(stage, "next-page")
    assert stage.window.lessons.course.index == 1


def try_previous_page(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    in_lesson(stage, 1)
    trigger(stage, "previous-page")
    assert stage.window.lessons.course.index == 0
    assert not stage.window.actions_table.by_id["previous-page"].isEnabled()


def try_page_scene(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    in_lesson(stage, 0)
    stage.window.lessons.course.cancel()
    assert not stage.window.lessons.course.playing
    trigger(stage, "page-scene")
    assert stage.window.lessons.course.playing


def try_look_here(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    in_lesson(stage, 1)
    trigger(stage, "look-here")
    temperature = stage.window.sampling.controls["temperature"]
    assert stage.window.lessons.outline.target is temperature
    assert temperature.isVisible()


def try_close_lesson(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    in_lesson(stage, 0)
    trigger(stage, "close-lesson")
    assert not stage.window.lessons.card.isVisible()
    assert stage.state.lesson is None


def try_save_scene(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded().ran(1)
    _asks(stage, monkeypatch, "getSaveFileName", (str(tmp_path / "kept"), ""))
    trigger(stage, "save-scene")
    scene = read_scene((tmp_path / "kept.toml").read_text(encoding="utf-8"), "kept.toml")
    assert scene.prompt == stage.state.request.prompt
    assert scene.run == 1


def try_open_scene(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "scene.toml").write_text('model = "copycat"\nrun = 1\n', encoding="utf-8")
    _asks(stage, monkeypatch, "getOpenFileName", (str(tmp_path / "scene.toml"), ""))
    trigger(stage, "open-scene")
    assert stage.engine.last(m.Load).model == "copycat"


def try_lessons(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trigger(stage, "lessons")
    (dialog,) = stage.window.findChildren(LessonList)
    assert dialog.isVisible()
    assert dialog.table.rowCount() >= 8
    dialog.table.setCurrentCell(2, 0)
    dialog.open_button.click()
    assert not dialog.isVisible()
    assert stage.state.lesson is not None
    assert stage.state.lesson.name == "attention"


def steps_of(session: Session) -> int:
    return 0 if session.state.trace is None else len(session.state.trace.steps)


def _beside(stage: WindowStage, name: str) -> Session:
    """The session of the second side, which an action has begun."""
    stage.loaded().ran(2)
    trigger(stage, name)
    assert stage.window.beside.second is not None
    assert len(stage.engines) == 2
    return stage.window.beside.second.session


def try_side_by_side(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    second = _beside(stage, "side-by-side")
    assert second.state.trace is stage.state.trace
    assert stage.window.actions_table.by_id["side-by-side"].isChecked()
    trigger(stage, "side-by-side")
    assert stage.window.beside.second is None
    assert not stage.engines[1].alive
    assert stage.engines[0].alive


def try_beside_prompt(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    second = _beside(stage, "beside-prompt")
    field = QApplication.focusWidget()
    assert isinstance(field, TokenEdit)
    QTest.keyClicks(field, "bye")
    assert (second.state.request.prompt, stage.state.request.prompt) == ("bye", "hello")


def try_beside_model(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    second = _beside(stage, "beside-model")
    (picker,) = (one for one in stage.window.findChildren(ModelPicker) if one.isVisible())
    picker.chosen.emit("other", "float32", "", "f16", 0, "cpu")
    stage.drain()
    assert stage.engines[1].last(m.Load).model == "other"
    assert second.state.request.prompt == "hello"
    assert stage.state.request.model == "tiny"


def try_beside_chat(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded().ran(2)
    trigger(stage, "beside-chat")
    assert stage.window.beside.second is None
    assert "no chat template" in stage.state.error
    stage.session.test_model_again()
    stage.answer_load(has_chat_template=True)
    trigger(stage, "beside-chat")
    assert stage.window.beside.second is not None
    asked = stage.window.beside.second.session.state.request
    assert (asked.chat, asked.prompt) == (True, "hello")
    assert not stage.state.request.chat


def try_beside_settings(
    stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    second = _beside(stage, "beside-settings")
    assert stage.window.beside.acting.session is second
    assert stage.window.acting.settings.isAncestorOf(QApplication.focusWidget())


def try_beside_branch(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded().ran(3)
    assert not stage.window.actions_table.by_id["beside-branch"].isEnabled()
    first = stage.state.trace
    stage.session.look(-2)
    stage.session.force(20)
    stage.drain()
    assert first is not None
    trigger(stage, "beside-branch")
    assert stage.window.beside.second is not None
    assert stage.window.beside.second.session.state.trace is not None
    assert stage.window.beside.second.session.state.trace.chosen_ids == first.chosen_ids


def try_beside_file(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    dxt.save(played(5), tmp_path / "saved.dxt")
    _asks(stage, monkeypatch, "getOpenFileName", (str(tmp_path / "saved.dxt"), ""))
    second = _beside(stage, "beside-file")
    wait_until(lambda: stage.drain() is None and steps_of(second) == 5)
    assert steps_of(stage.session) == 2


def try_beside_form(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage.loaded().ran(1)
    assert not stage.window.actions_table.by_id["beside-form"].isEnabled()
    stage.session.open_model("tiny.gguf", form="as-is")
    stage.answer_load(form="as-is")
    trigger(stage, "beside-form")
    assert stage.engines[1].last(m.Load).form == "float32"
    assert stage.state.request.form == "as-is"


def try_link_sides(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    second = _beside(stage, "side-by-side")
    stage.session.select(layer=1)
    assert second.state.selection.layer == 1
    trigger(stage, "link-sides")
    stage.session.select(layer=0)
    assert second.state.selection.layer == 1
    trigger(stage, "link-sides")
    assert second.state.selection.layer == 0, "taken over at once"


def try_side_difference(
    stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _beside(stage, "side-by-side")
    trigger(stage, "side-difference")
    panel = stage.window.beside.difference
    assert panel is not None
    wait_until(lambda: not panel.busy and not panel.empty)
    assert panel.isVisible()
    trigger(stage, "side-difference")
    assert not panel.isVisible()


def try_first_difference(
    stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    second = _beside(stage, "side-by-side")
    trigger(stage, "first-difference")
    assert "same tokens" in stage.state.error
    second.look(-1)
    second.force(20)
    second.select(step=None)
    trigger(stage, "first-difference")
    assert stage.state.selection.step == 0


def try_swap_sides(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _beside(stage, "side-by-side")
    beside = stage.window.beside
    assert beside.second is not None
    assert beside.second.x() > stage.window.sequence.x()
    trigger(stage, "swap-sides")
    assert (
        beside.second.mapTo(beside, QPoint()).x()
        < stage.window.sequence.mapTo(beside, QPoint()).x()
    )
    assert beside.links is not None
    assert beside.links.right is stage.session


def try_other_side(stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    second = _beside(stage, "side-by-side")
    stage.answer_load()  # of the second side
    trigger(stage, "other-side")
    trigger(stage, "link-sides")
    trigger(stage, "cache")
    assert not second.state.request.cache
    assert stage.state.request.cache
    trigger(stage, "other-side")
    assert stage.window.acting.session is stage.session


TRIED = {name[4:].replace("_", "-"): f for name, f in globals().items() if name[:4] == "try_"}


def test_every_row_is_tried() -> None:
    assert TRIED.keys() == {row.id for row in ACTIONS}


@pytest.mark.parametrize("name", TRIED)
def test_it_does_what_it_says(
    name: str, stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    TRIED[name](stage, monkeypatch, tmp_path)


def test_what_cannot_be_done_is_disabled(stage: WindowStage) -> None:
    by_id = stage.window.actions_table.by_id
    for name in ("step", "run", "back", "reset", "save", "undo", "redo", "check", "cancel"):
        assert not by_id[name].isEnabled(), name
    stage.loaded()
    assert by_id["step"].isEnabled()
    assert not by_id["back"].isEnabled()
    stage.ran(1)
    for name in ("back", "reset", "save", "check", "copy-text"):
        assert by_id[name].isEnabled(), name


def test_the_mask_cannot_be_dropped_where_the_model_does_not_offer_it(stage: WindowStage) -> None:
    refused = Capability(name="causal_off", offered=False, words="it has no effect here")
    stage.session.start_engine()
    stage.session.open_model("tiny")
    stage.drain()
    stage.answer_load(capabilities=(refused,))
    assert not stage.window.actions_table.by_id["mask"].isEnabled()


def test_icons_follow_the_theme(stage: WindowStage) -> None:
    action = stage.window.actions_table.by_id["step"]

    def dark_pixels() -> float:
        image = action.icon().pixmap(32, 32).toImage()
        drawn = [image.pixelColor(x, y) for x in range(32) for y in range(32)]
        return sum(c.lightness() for c in drawn if c.alpha() > 200)

    stage.look.set_theme("light")
    light = dark_pixels()
    stage.look.set_theme("dark")
    assert dark_pixels() > light * 2
    assert set(THEMES) == {"light", "dark", "high_contrast"}
    stage.look.set_theme("light")
