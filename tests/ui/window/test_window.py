"""The whole window: notices, status, files, look, layout, presenter mode, closing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from PySide6.QtCore import QByteArray, QMimeData, QPoint, QPointF, QRect, QSize, Qt, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QLabel,
    QPushButton,
    QToolButton,
    QWidget,
)

from explorer import smollm2
from explorer.session.saving.recovery import Found, UnsavedSession
from explorer.trace.card import Check, SelfCheck
from explorer.trace.files import dxt
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.wire import messages as m
from explorer.ui.files.session_files import SessionFiles
from explorer.ui.frame.presenting import presenter
from explorer.ui.frame.status import figures
from explorer.ui.kit.screen_fit import on_screen
from explorer.ui.look import apply_theme
from explorer.ui.look.theme import unit
from explorer.ui.settings.settings import Settings
from tests.trace.runs import made_trace
from tests.ui.stage import WindowStage
from tests.ui.waiting import wait_until


@pytest.fixture
def stage(qapp: QApplication, tmp_path: Path) -> Iterator[WindowStage]:
    stage = WindowStage(qapp, tmp_path)
    yield stage
    stage.look.set_theme("light")
    stage.look.zoom(0)
    stage.close()


def button(parent: QWidget, text: str) -> QPushButton:
    return next(b for b in parent.findChildren(QPushButton) if b.text() == text)


def shown_text(parent: QWidget) -> str:
    return "\n".join(label.text() for label in parent.findChildren(QLabel) if label.isVisible())


def test_an_error_is_a_sentence_that_can_be_dismissed(stage: WindowStage) -> None:
    stage.loaded()
    stage.session.step()
    run = stage.engine.last(m.Advance).run
    stage.say(
        m.Failed(run=run, sentence="The prompt is too long; shorten it.", details="at line 3")
    )
    notice = stage.window.notices.error
    assert notice.isVisible()
    assert notice.text == "The prompt is too long; shorten it."
    notice.dismissed.emit()
    assert not notice.isVisible()
    assert stage.state.error == ""


def test_what_a_model_warns_of_is_said_when_it_opens_and_can_be_dismissed(
    stage: WindowStage,
) -> None:
    notice = stage.window.notices.model
    stage.loaded()
    assert not notice.isVisible()
    stage.session.open_model("old")
    stage.answer_load(name="old", warnings=("The weights are pickle files (.bin).", "And more."))
    assert notice.isVisible()
    assert notice.text == "The weights are pickle files (.bin). And more."
    QTest.mouseClick(notice.findChild(QToolButton), Qt.MouseButton.LeftButton)
    assert not notice.isVisible()
    stage.ran(1)
    assert not notice.isVisible()
    stage.session.open_model("old")
    stage.answer_load(name="old", warnings=("Again.",))
    assert notice.text == "Again."
    stage.session.open_model("other")
    stage.answer_load(name="other")
    assert not notice.isVisible()


def test_what_a_saved_run_was_made_with_is_said_when_it_opens(
    stage: WindowStage, tmp_path: Path
) -> None:
    stage.loaded().ran(1)
    trace = made_trace()
    card = msgspec.structs.replace(trace.card, warnings=("Made with rounded weights.",))
    dxt.save(replace(trace, card=card), tmp_path / "run.dxt")
    notice = stage.window.notices.model
    assert not notice.isVisible()
    stage.session.saving.open(tmp_path / "run.dxt")

    def is_said() -> bool:
        stage.drain()
        return notice.isVisible()

    wait_until(is_said)
    assert notice.text == "Made with rounded weights."


def test_a_lost_engine_is_one_click_from_going_on(stage: WindowStage) -> None:
    stage.loaded().ran(2)
    stage.say(m.Lost(sentence="The engine's process ended. Start it again to go on."))
    lost = stage.window.notices.lost
    assert lost.isVisible()
    assert not stage.window.notices.error.isVisible()  # not said twice
    assert stage.state.trace is not None
    button(lost, "Restart the engine").click()
    stage.drain()
    stage.answer_load()
    assert not lost.isVisible()
    assert len(stage.engines) == 2
    stage.session.step()
    assert stage.engine.last(m.Advance).chosen == (10, 11)


def test_a_bar_that_comes_and_goes_leaves_panels_and_focus_as_they_were(
    stage: WindowStage,
) -> None:
    stage.resize(1280, 900)
    stage.window.setFocus()
    before = [dock.height() for dock in stage.window.docks.docks]
    for _ in range(3):
        stage.session.set_causal_mask(False)
        stage.paint()
        QTest.mouseClick(
            button(stage.window.notices.unmasked, "Turn the mask on"), Qt.MouseButton.LeftButton
        )
        stage.paint()
    after = [dock.height() for dock in stage.window.docks.docks]
    assert after == pytest.approx(before, abs=4)
    assert stage.window.focusWidget() in (None, stage.window)


def test_an_engine_lost_while_loading_loads_again(stage: WindowStage) -> None:
    stage.session.start_engine()
    stage.drain()
    stage.session.open_model("tiny")
    stage.say(m.Lost(sentence="The engine's process ended. Start it again to go on."))
    button(stage.window.notices.lost, "Restart the engine").click()
    stage.drain()
    assert stage.engine.last(m.Load).model == "tiny"
    assert len(stage.engines) == 2


def test_a_mask_that_is_off_cannot_be_overlooked(stage: WindowStage) -> None:
    stage.session.set_causal_mask(False)
    notice = stage.window.notices.unmasked
    assert notice.isVisible()
    assert "KV cache is off" in notice.text
    assert not stage.window.topbar.cache_switch.isEnabled()
    assert not stage.window.topbar.cache_switch.isChecked()
    button(notice, "Turn the mask on").click()
    assert stage.state.request.causal_mask
    assert not notice.isVisible()


def test_progress_with_a_way_to_stop_it(stage: WindowStage) -> None:
    stage.session.start_engine()
    stage.drain()
    stage.session.open_model("tiny")
    run = stage.engine.last(m.Load).run
    stage.say(m.Progress(run=run, text="Reading weights", fraction=0.25))
    assert "Reading weights" in shown_text(stage.window.status)
    cancel = button(stage.window.status, "Cancel")
    assert cancel.isVisible()
    cancel.click()
    assert stage.engine.last(m.Cancel).run == run
    assert not cancel.isVisible()


def check_of(passed: bool) -> Check:
    return Check(name="row sums", passed=passed, measured=2e-3, tolerance=1e-5)


@pytest.mark.parametrize(("passed", "word"), [(True, "passed"), (False, "failed: row sums")])
def test_the_light_tells_and_gives_its_figures(stage: WindowStage, passed: bool, word: str) -> None:
    stage.loaded().ran(1)
    light = stage.window.status.light
    assert light.text() == "Self-check running…"  # it begins by itself
    stage.session.cancel()
    assert light.text() == "Not checked yet"
    stage.session.run_self_check()
    assert light.text() == "Self-check running…"
    run = stage.engine.last(m.CheckTrace).run
    stage.say(m.Checked(run=run, check=check_of(passed)), m.Finished(run=run))
    assert light.text() == f"Self-check {word}"
    assert "0.002 (at most 1e-05)" in light.toolTip()


def test_figures_of_a_check_name_what_broke() -> None:
    lines = figures(SelfCheck(passed=False, checks=(check_of(True), check_of(False))))
    assert [line[0] for line in lines.splitlines()] == ["✓", "✕"]


def test_padding_is_wished_with_side_and_amount(stage: WindowStage) -> None:
    bar = stage.window.topbar
    bar.side.setCurrentIndex(1)
    bar.side.activated.emit(1)
    assert (stage.state.request.padding, stage.state.request.pad) == ("left", 8)
    bar.pad.setValue(3)
    assert (stage.state.request.padding, stage.state.request.pad) == ("left", 3)
    bar.side.setCurrentIndex(0)
    bar.side.activated.emit(0)
    assert (stage.state.request.padding, stage.state.request.pad) == (None, 0)


def drop(stage: WindowStage, path: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    event = QDropEvent(
        QPointF(9, 9), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )  # fmt: skip
    stage.window.dropEvent(event)


def test_a_dropped_folder_or_gguf_is_opened_and_remembered(
    stage: WindowStage, tmp_path: Path
) -> None:
    stage.loaded()
    (tmp_path / "model").mkdir()
    for path in (tmp_path / "model", tmp_path / "weights.gguf"):
        path.touch() if path.suffix else None
        drop(stage, path)
        assert stage.engine.last(m.Load).model == str(path)
    assert stage.memory.recent() == [str(tmp_path / "weights.gguf"), str(tmp_path / "model")]


def test_what_failed_to_open_is_offered_no_more(stage: WindowStage, tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad.gguf"
    (tmp_path / "odd.dxt").write_bytes(b"no session")
    stage.loaded()
    stage.window.files.open(str(good))
    stage.answer_load(name="good")
    stage.window.files.open(str(bad))
    assert stage.memory.recent() == [str(bad), str(good)]
    for _ in range(2):  # also the second time
        stage.say(m.Failed(run=stage.engine.last(m.Load).run, sentence="It is damaged."))
        assert stage.memory.recent() == [str(good)]
        stage.window.files.open(str(bad))
    stage.answer_load(name="bad")  # it was mended meanwhile
    assert stage.memory.recent() == [str(bad), str(good)]
    stage.window.files.open(str(tmp_path / "odd.dxt"))
    wait_until(lambda: stage.drain() or bool(stage.state.error))
    assert stage.memory.recent() == [str(bad), str(good)]
    stage.window.topbar._fill_menu()
    offered = [action.text() for action in stage.window.topbar._menu.actions()]
    assert "bad.gguf" in offered
    assert "odd.dxt" not in offered


def test_a_kept_run_that_cannot_be_read_is_offered_no_more(
    stage: WindowStage, tmp_path: Path
) -> None:
    path = tmp_path / "autosave-1.dxt"
    path.write_bytes(b"no session")
    stage.window.offer_kept(Found((UnsavedSession(path, 0.0, "tiny", "hello", 2),)))
    assert stage.window.recovery.text
    stage.window.files.recover(str(path))
    wait_until(lambda: stage.drain() or bool(stage.state.error))
    assert stage.window.recovery.text == ""
    assert path.exists()


def test_what_cannot_be_opened_cannot_be_dropped(stage: WindowStage, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / "notes.txt"))])
    assert SessionFiles.droppable(data) == ""
    data.setUrls([QUrl("https://example.org/model.gguf")])
    assert SessionFiles.droppable(data) == ""


def test_without_a_wish_the_first_model_is_one_that_is_there(
    stage: WindowStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.session.start_engine()
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path / "home"))
    stage.window.files.open_first(None)
    assert stage.state.request.model == "copycat"
    monkeypatch.setattr(smollm2, "is_here", lambda: True)
    stage.window.files.open_first(None)
    assert stage.state.request.model == "smollm2"
    stage.window.files.open_first("mine")
    assert stage.state.request.model == "mine"


@pytest.mark.parametrize("theme", ["light", "dark", "high_contrast"])
def test_every_widget_follows_theme_and_zoom(stage: WindowStage, theme: str) -> None:
    stage.loaded().ran(2)
    stage.look.set_theme(theme)
    before = {id(w): w.fontInfo().pixelSize() for w in stage.window.findChildren(QWidget)}
    for _ in range(4):
        stage.look.zoom(+1)
    stage.paint()
    stuck = [
        type(w).__name__
        for w in stage.window.findChildren(QWidget)
        if w.isVisible() and w.fontInfo().pixelSize() <= before.get(id(w), 0)
    ]
    assert stuck == []
    corner = stage.window.grab().toImage().pixelColor(2, stage.window.height() - 2)
    assert corner.name() == stage.look.theme.window


def test_theme_and_zoom_are_remembered(
    stage: WindowStage, qapp: QApplication, tmp_path: Path
) -> None:
    stage.look.set_theme("high_contrast")
    stage.look.zoom(+1)
    stage.memory.sync()
    from explorer.ui.look.appearance import Appearance

    again = Appearance(qapp, Settings(tmp_path / "settings.ini"))
    assert (again.theme.name, again.scale) == ("high_contrast", 1.1)


def test_at_no_zoom_does_the_window_outgrow_its_screen(stage: WindowStage) -> None:
    room = QSize(1280, 720)
    for presenting in (True, False):
        stage.look.present(presenting, room)
        stage.look.scale = 2.4
        stage.look.zoom(+1)
        stage.paint()
        assert stage.look.whole_scale > 1.1
        least = stage.window.minimumSizeHint()
        assert least.width() <= room.width(), least
        assert least.height() <= room.height(), least


def test_a_narrow_top_bar_leaves_out_words_not_buttons(stage: WindowStage) -> None:
    stage.resize(1280, 720)
    wide = stage.window.topbar.findChildren(QAbstractButton)
    hidden = [b.text() for b in wide if not b.isVisible()]
    assert hidden == ["Previous panel", "Panels", "Next panel"]
    least = stage.window.minimumSizeHint()
    stage.resize(least.width(), least.height())
    bar = stage.window.topbar
    for button in filter(QWidget.isVisible, bar.findChildren(QAbstractButton)):
        assert bar.rect().contains(button.geometry()), button.text()


def test_presenter_mode_has_a_visible_way_out(stage: WindowStage) -> None:
    stage.window.presenter.toggle()
    stage.paint()
    assert stage.window.isFullScreen()
    assert not stage.window.menuBar().isVisible()
    stage.loaded()  # nothing that happens meanwhile takes the words away
    leave = next(
        b for b in stage.window.topbar.findChildren(QAbstractButton)
        if b.text().startswith("Leave")
    )  # fmt: skip
    assert leave.isVisible()
    assert stage.window.rect().contains(leave.mapTo(stage.window, leave.rect().bottomRight()))
    QTest.mouseClick(leave, Qt.MouseButton.LeftButton)
    assert not stage.window.isFullScreen()
    assert stage.window.menuBar().isVisible()


def test_a_class_sees_large_panels_and_then_all_is_as_it_was(
    stage: WindowStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, docks = stage.window, stage.window.docks
    stage.resize(1240, 700)
    stage.loaded().ran(2)
    stage.paint()
    size, layout = window.size(), docks.layout_state()
    places = {dock.place.id: dock.geometry() for dock in docks.docks if dock.isVisible()}
    size_ = QSize(1280, 720)
    screen = SimpleNamespace(size=lambda: size_, geometry=lambda: QRect(QPoint(), size_))
    monkeypatch.setattr(window, "screen", lambda: screen)
    window.presenter.toggle()
    stage.paint()
    assert window.fontInfo().pixelSize() >= 24
    assert window.minimumSizeHint().width() <= 1280
    assert window.minimumSizeHint().height() <= 720
    assert not window.prompt.isVisible()
    assert not window.status.isVisible()
    for name in ("next-token", "kv-cache", "timings"):
        docks.bring_up(name)
        stage.paint()
        (dock,) = (dock for dock in docks.docks if dock.place.id == name)
        assert dock.height() > 0.9 * (docks.height() - 40), name
    assert window.topbar.panels.isVisible()
    assert len(window.topbar.panels.menu().actions()) == len(docks.docks)
    assert docks.layout_state() == layout
    QTest.mouseClick(window.presenter.strip, Qt.MouseButton.LeftButton)
    stage.paint()
    assert window.prompt.isVisible()
    assert window.minimumSizeHint().width() <= 1280
    window.presenter.toggle()
    wait_until(lambda: window.size() == size)
    stage.paint()
    assert window.status.isVisible()
    assert window.topbar.side.isVisible()
    assert {d.place.id: d.geometry() for d in docks.docks if d.isVisible()} == places


def test_a_full_screen_ends_for_the_window_manager_too(stage: WindowStage) -> None:
    window = stage.window
    stage.loaded().ran(2)
    size = window.size()
    window.presenter.toggle()
    wait_until(lambda: window.size() == window.screen().size())
    window.presenter.show_settings(True)  # at this size of text, too large for a moment
    stage.paint()
    assert window.isFullScreen()
    window.presenter.toggle()
    handle = window.windowHandle()
    wait_until(lambda: handle.windowStates() == Qt.WindowState.WindowNoState)
    wait_until(lambda: window.size() == size)


def test_the_title_is_on_the_screen_again_after_a_full_screen(
    stage: WindowStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = stage.window
    wait_until(lambda: window.windowHandle().frameMargins().top() > 0)
    frame = window.frameGeometry()
    window.presenter.toggle()
    wait_until(lambda: window.size() == window.screen().size())

    monkeypatch.setattr(presenter, "_SETTLE_MS", 1000)
    window.presenter.toggle()
    wait_until(lambda: window.windowHandle().windowStates() == Qt.WindowState.WindowNoState)
    place = QPoint(60, 60)
    window.move(place)  # as some window managers do
    wait_until(lambda: window.pos() == place)
    wait_until(lambda: window.frameGeometry() == frame)


def test_everything_is_dressed_once_to_leave_the_presenter_mode(
    stage: WindowStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.loaded().ran(2)
    stage.window.presenter.toggle()
    stage.paint()
    scales: list[float] = []
    monkeypatch.setattr(apply_theme, "dress", lambda app, theme, scale: scales.append(scale))
    larger = unit(stage.window) > 1  # not where the screen has no room for it
    stage.window.presenter.toggle()
    assert scales == ([1.0] if larger else [])


def test_a_class_sees_what_it_has_to_wait_for(stage: WindowStage) -> None:
    stage.loaded()
    stage.window.presenter.toggle()
    stage.session.step()
    run = stage.engine.last(m.Advance).run
    stage.say(m.Progress(run=run, text="Reading the prompt", fraction=0.4))
    assert stage.window.status.isVisible()
    stage.finish(run=run)
    stage.paint()
    assert not stage.window.status.isVisible()
    stage.window.presenter.toggle()


def test_every_visible_widget_that_takes_focus_has_a_name(stage: WindowStage) -> None:
    stage.loaded().ran(2)
    nameless = [
        f"{type(w).__name__} in {type(w.parent()).__name__}"
        for w in stage.window.findChildren(QWidget)
        if w.isVisible()
        and w.focusPolicy() != Qt.FocusPolicy.NoFocus
        and not w.accessibleName()
        and not (isinstance(w, QAbstractButton) and w.text())
        and not w.objectName().startswith("qt_")
    ]
    assert nameless == []


def test_closing_in_mid_run_is_clean_and_remembers(stage: WindowStage) -> None:
    stage.loaded("kept")
    stage.session.run()
    run = stage.prompted()
    stage.steps(2, run)
    stage.window.close_at_once()
    stage.session.close()
    stage.drain()
    last = stage.memory.last_session()
    assert last is not None
    assert last.request.prompt == "kept"
    assert not stage.memory.blob("layout").isEmpty()


def test_a_damaged_memory_reads_as_empty(tmp_path: Path) -> None:
    path = tmp_path / "settings.ini"
    path.write_text("[General]\nzoom=large\nrecent={\nlast_session=[1]\ngeometry=7\n", "utf-8")
    memory = Settings(path)
    assert memory.number("zoom", 1.0) == 1.0
    assert memory.recent() == []
    assert memory.last_session() is None
    assert memory.blob("geometry") == QByteArray()


def test_a_session_is_remembered_exactly(stage: WindowStage, tmp_path: Path) -> None:
    request = RunRequest(model="m", prompt="漢 👩‍🚀\n", padding="left", pad=2)
    state = replace(stage.state, request=request, sampling=Sampling(seed=2**40))
    stage.memory.remember_session(state)
    stage.memory.sync()
    last = Settings(tmp_path / "settings.ini").last_session()
    assert last is not None
    assert (last.request, last.sampling) == (request, Sampling(seed=2**40))
    assert msgspec.json.encode(last)


@pytest.mark.parametrize(
    "lost", [QRect(5000, 3000, 900, 600), QRect(-4000, 10, 900, 600), QRect(0, 0, 9000, 9000)]
)
def test_a_window_from_an_unplugged_projector_comes_back(qapp: QApplication, lost: QRect) -> None:
    area = QGuiApplication.primaryScreen().availableGeometry()
    assert area.contains(on_screen(lost))


def framed(window: QWidget) -> bool:
    """True if the window's frame is on screen from its title bar to its foot."""
    area, whole = window.screen().availableGeometry(), window.frameGeometry()
    return area.contains(whole.topLeft()) and area.bottom() >= whole.bottom()


def test_the_title_bar_of_a_first_start_is_on_the_screen(stage: WindowStage) -> None:
    wait_until(lambda: stage.window.frameGeometry() != stage.window.geometry())
    wait_until(lambda: framed(stage.window))


def test_a_window_as_large_as_the_screen_makes_room_for_its_frame(stage: WindowStage) -> None:
    window = stage.window
    wait_until(lambda: window.frameGeometry() != window.geometry())
    window.setGeometry(window.screen().availableGeometry())
    wait_until(lambda: window.height() == window.screen().availableGeometry().height())
    window._fit_frame()
    wait_until(lambda: framed(window))


def test_a_window_that_fits_stays_where_it_is(qapp: QApplication) -> None:
    area = QGuiApplication.primaryScreen().availableGeometry()
    fits = area.adjusted(10, 10, -20, -30)
    assert on_screen(fits) == fits
