"""What is dropped on the window, wherever on it: opened, typed, or refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QWidget

from explorer.trace.wire import messages as m
from tests.ui.stage import WindowStage


def data_of(*paths: Path | str) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(p)) if isinstance(p, Path) else QUrl(p) for p in paths])
    return data


def drop(stage: WindowStage, data: QMimeData, over: QWidget | None = None) -> None:
    """As Qt sends it: to the widget under the mouse, then outwards until one takes it."""
    copy, left, none = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier
    enter = QDragEnterEvent(QPoint(2, 2), copy, data, left, none.NoModifier)
    widget = over or stage.window
    QApplication.sendEvent(widget, enter)
    while not enter.isAccepted() and not widget.isWindow():
        widget = widget.parentWidget()
        QApplication.sendEvent(widget, enter)
    assert enter.isAccepted(), "nothing takes it"
    QApplication.sendEvent(widget, QDropEvent(QPointF(2, 2), copy, data, left, none.NoModifier))
    stage.drain()
    stage.paint()


def test_a_text_file_fills_the_prompt_and_undo_takes_it_back(
    stage: WindowStage, tmp_path: Path
) -> None:
    stage.loaded("typed")
    (tmp_path / "poem.TXT").write_bytes("\ufefftwo\r\nlines".encode())
    for over in (None, stage.window.prompt.edit.viewport()):
        stage.session.set_prompt("typed")
        drop(stage, data_of(tmp_path / "poem.TXT"), over)
        assert stage.window.prompt.edit.text() == "two\r\nlines".replace("\r\n", "\n")
        assert stage.state.error == ""
    stage.session.undo()
    assert stage.state.request.prompt in ("typed", "")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("picture.png",), "picture.png can't be opened. Drop a model folder"),
        (("a.txt", "b.txt"), "one file or folder from this computer at a time"),
        (("gone.txt",), "gone.txt could not be read"),
        (("latin.txt",), "latin.txt is not UTF-8 text"),
    ],
)
def test_what_cannot_be_used_is_refused_in_words(
    stage: WindowStage, tmp_path: Path, names: tuple[str, ...], words: str
) -> None:
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    stage.loaded("typed")
    drop(stage, data_of(*(tmp_path / name for name in names)))
    assert words in stage.window.notices.error.text
    stage.session.set_cache(False)  # whatever else happens, the words stay to be read
    assert words in stage.window.notices.error.text
    assert stage.state.request.prompt == "typed"


def test_an_address_of_the_net_is_refused(stage: WindowStage) -> None:
    stage.loaded()
    drop(stage, data_of("https://example.org/model.gguf"))
    assert "from this computer" in stage.window.notices.error.text
    assert stage.engine.count(m.Load) == 1


def test_a_model_is_opened_also_over_a_text_field(stage: WindowStage, tmp_path: Path) -> None:
    stage.loaded("typed")
    (tmp_path / "model").mkdir()
    drop(stage, data_of(tmp_path / "model"), stage.window.prompt.edit.viewport())
    assert stage.engine.last(m.Load).model == str(tmp_path / "model")
    assert stage.state.request.prompt == "typed"


def test_prompts_dropped_on_the_padding_lab_fill_its_list(
    stage: WindowStage, tmp_path: Path
) -> None:
    stage.loaded("typed")
    (tmp_path / "prompts.txt").write_text("one\ntwo two\n")
    lab = stage.window.docks.bring_up("padding")
    drop(stage, data_of(tmp_path / "prompts.txt"), lab.prompts.edit.viewport())  # type: ignore[attr-defined]
    assert lab.prompts.prompts() == ("one", "two two")  # type: ignore[attr-defined]
    assert stage.state.request.prompt == "typed"
