"""Copy and save: a picture equal to the screen, a drawing that is SVG, a table in UTF-8."""

from __future__ import annotations

import csv
import threading
import xml.etree.ElementTree as xml
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel

from explorer import __version__
from explorer.session.state import State
from explorer.trace.request import RunRequest
from explorer.ui.files import caption, export
from explorer.ui.files.export import View
from explorer.ui.look.theme import THEMES
from explorer.ui.panel.panel import Panel
from tests.session.scripted import card
from tests.ui.waiting import wait_until


@pytest.fixture
def label(qapp: QApplication) -> QLabel:
    label = QLabel("漢字 👩‍🚀")
    label.setStyleSheet("background: #204060; color: white")
    label.resize(120, 40)
    label.setAlignment(Qt.AlignmentFlag.AlignCenter)
    return label


def write(view: View, title: str, path: Path, kind: export.Kind) -> None:
    """Save a view to a file, all of it now."""
    deque(export.writing(view, title, path, kind), maxlen=0)


def test_a_picture_equals_the_screen_at_twice_the_pixels(label: QLabel) -> None:
    picture = export.picture(label)
    assert (picture.width(), picture.height()) == (240, 80)
    assert picture.pixelColor(4, 4).name() == "#204060"
    once = export.picture(label, scale=1)
    screen = label.grab().toImage().convertToFormat(once.format())
    assert once == screen


def test_an_svg_is_well_formed_and_has_the_size(label: QLabel) -> None:
    root = xml.fromstring(export.svg(label, "漢字"))
    assert root.tag.endswith("svg")
    assert root.attrib["viewBox"] == "0 0 120 40"


def test_a_table_keeps_quotes_emoji_and_full_precision(tmp_path: Path) -> None:
    rows = [("text", "p"), ('a "b", c', 0.1), ("👩‍🚀\n漢", 1e-300), ("", 3)]
    path = tmp_path / "t.csv"
    write(View(QLabel(), lambda: rows), "t", path, "csv")
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    with path.open(encoding="utf-8-sig", newline="") as stream:
        read = list(csv.reader(stream))
    assert read == [["text", "p"], ['a "b", c', "0.1"], ["👩‍🚀\n漢", "1e-300"], ["", "3"]]


def test_png_is_written_whatever_the_name_ends_in(label: QLabel, tmp_path: Path) -> None:
    write(View(label), "t", tmp_path / "picture.odd", "png")
    assert QImage(str(tmp_path / "picture.odd")).width() == 240


def test_what_cannot_be_written_is_an_error(label: QLabel, tmp_path: Path) -> None:
    nowhere = tmp_path / "missing" / "x"
    for kind in ("png", "svg", "csv"):
        with pytest.raises(OSError, match=r".+"):
            write(View(label, list), "t", nowhere, kind)  # type: ignore[arg-type]


def _panel() -> Labels:
    session = SimpleNamespace(state=State(request=RunRequest(model="/models/My Model.gguf")))
    return Labels(session, THEMES["light"])  # type: ignore[arg-type]


class Labels(Panel):
    TITLE = "Labels"
    EXPLANATION = "A label"

    def views(self) -> dict[str, View]:
        return {"Labels": View(QLabel("x"), lambda: [("a",), (1,)])}


def test_the_menu_copies_and_saves(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = _panel()
    panel.show_content()
    entries = {action.text(): action for action in panel.build_menu().actions()}
    entries["Copy table"].trigger()
    wait_until(lambda: not panel.saving.busy)
    assert qapp.clipboard().text() == "a\r\n1\r\n"
    assert "<td>1</td>" in qapp.clipboard().mimeData().html()
    assert bytes(qapp.clipboard().mimeData().data("text/csv").data()) == b"a\r\n1\r\n"
    told: list[bool] = []
    panel.saving.copied.connect(lambda: told.append(True))
    entries["Copy picture"].trigger()
    assert not qapp.clipboard().image().isNull()
    assert told == [True], "and the status bar confirms it"
    chosen = str(tmp_path / "out")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", staticmethod(lambda *_: (chosen, "")))
    for kind in (
        "Save picture (PNG)…", "Save drawing (SVG)…", "Save page to print (PDF)…",
        "Save table (CSV)…",
    ):  # fmt: skip
        entries[kind].trigger()
    wait_until(lambda: not panel.saving.busy)
    made = sorted(f.name for f in tmp_path.iterdir())
    assert made == ["out.csv", "out.pdf", "out.png", "out.svg"]
    assert (tmp_path / "out.pdf").read_bytes().startswith(b"%PDF")


def test_picture_and_figures_are_copied_together(qapp: QApplication) -> None:
    panel = _panel()
    found = panel.view_of(None)
    assert found is not None
    panel.copy(*found)
    wait_until(lambda: not panel.saving.busy)
    data = qapp.clipboard().mimeData()
    assert data.hasImage()
    assert data.text() == "a\r\n1\r\n"
    assert "<td>1</td>" in data.html()


def test_a_long_table_is_copied_in_its_plainest_form_alone(qapp: QApplication) -> None:
    panel = _panel()
    panel.saving.copy([number] * 1000 for number in range(400))
    wait_until(lambda: not panel.saving.busy)
    data = qapp.clipboard().mimeData()
    assert len(data.text().splitlines()) == 400
    assert data.formats() == ["text/plain"]


def _shown_words(drawing: bytes) -> str:
    return " ".join("".join(xml.fromstring(drawing).itertext()).split())


def test_a_caption_says_what_a_picture_shows_until_it_is_switched_off(
    qapp: QApplication, label: QLabel
) -> None:
    panel = _panel()
    view = View(label, of="Layer 3 · head 5")
    said = panel._caption("Map", view)
    assert said == f"My Model.gguf · Map · Layer 3 · head 5 · Decoder Explorer {__version__}"
    picture = export.picture(label, caption=said)
    bare = export.picture(label)
    assert picture.height() > bare.height()
    assert picture.copy(bare.rect()) == bare, "the picture itself is as it was"
    assert "Layer 3" in _shown_words(export.svg(label, "t", said))
    (switch,) = (a for a in panel.build_menu().actions() if a.text() == "Caption under pictures")
    assert switch.isChecked()
    switch.trigger()
    assert panel._caption("Map", view) == ""
    assert export.picture(label, caption="") == bare


def test_a_caption_names_model_step_and_the_beginning_of_the_prompt(qapp: QApplication) -> None:
    said = caption.words("tiny", ["Map", ""], 2, "<b>one</b>\n two " + "long " * 40)
    assert said.startswith("tiny · Map · token 3 · “<b>one</b> two long long")
    assert "…" in said
    assert len(said) < 140


def test_a_file_is_named_by_its_model_and_what_it_shows(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered: list[str] = []

    def dialog(_parent: object, _title: str, start: str, _kinds: str) -> tuple[str, str]:
        offered.append(Path(start).name)
        return "", ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", staticmethod(dialog))
    panel = _panel()
    panel._save("Attention map", View(QLabel(), of="Layer 3 · head 5"), "png")
    panel._save("Labels", View(QLabel()), "csv")
    assert offered == [
        "my-model.gguf-layer-3-head-5-attention-map.png",
        "my-model.gguf-labels.csv",
    ]
    assert export.file_stem("漢字 a/b:c?", "x" * 300).startswith("漢字-a-b-c-xxx")
    assert len(export.file_stem("x" * 300)) < 200


def test_a_failed_save_is_one_sentence(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = _panel()
    said: list[str] = []
    panel.failed.connect(said.append)
    chosen = str(tmp_path / "missing" / "out.csv")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", staticmethod(lambda *_: (chosen, "")))
    entries = {action.text(): action for action in panel.build_menu().actions()}
    entries["Save table (CSV)…"].trigger()
    wait_until(lambda: bool(said))
    assert not panel.saving.busy
    assert len(said) == 1
    assert "out.csv could not be saved" in said[0]


def test_an_array_is_saved_under_the_name_that_was_given(label: QLabel, tmp_path: Path) -> None:
    figures = np.array([[0.25, np.nan], [0.75, 1.0]], np.float32)
    path = tmp_path / "map.npy"
    write(View(label, array=lambda: lambda: figures), "map", path, "npy")
    np.testing.assert_array_equal(np.load(path), figures)
    assert np.load(path).dtype == np.float32


def test_a_long_table_is_written_while_the_window_goes_on(
    qapp: QApplication, tmp_path: Path
) -> None:
    panel = _panel()
    written_in: set[threading.Thread] = set()
    looked = threading.Event()

    def rows() -> Iterator[Sequence[object]]:
        for number in range(40):
            written_in.add(threading.current_thread())
            if threading.current_thread() is not threading.main_thread():
                assert looked.wait(10)
            yield [number] * 1000

    path = tmp_path / "long.csv"
    panel.saving.save(View(QLabel(), rows), "t", path, "csv")
    assert panel.saving.busy
    assert not panel.saving.button.isHidden()
    assert not path.exists(), "it is put in its place when it is whole"
    looked.set()
    wait_until(lambda: not panel.saving.busy)
    assert panel.saving.button.isHidden()
    assert len(path.read_text(encoding="utf-8-sig").splitlines()) == 40
    assert len(written_in) == 2, "a small part at once, the rest in the background"
    assert [f.name for f in tmp_path.iterdir()] == ["long.csv"]


def test_a_save_can_be_cancelled_and_leaves_what_was_there(
    qapp: QApplication, tmp_path: Path
) -> None:
    panel = _panel()
    ended = threading.Event()
    path = tmp_path / "long.csv"
    path.write_text("before")

    def rows() -> Iterator[Sequence[object]]:
        try:
            while True:
                yield [1] * 1000
        finally:
            ended.set()

    panel.saving.save(View(QLabel(), rows), "t", path, "csv")
    wait_until(lambda: "rows" in panel.saving.button.text())
    panel.saving.button.click()
    assert not panel.saving.busy
    assert panel.saving.button.isHidden()
    assert ended.wait(10)
    wait_until(lambda: [f.name for f in tmp_path.iterdir()] == ["long.csv"])
    assert path.read_text() == "before"


def test_a_picture_says_that_a_file_ran_as_it_is() -> None:
    names = [caption.model_name(card("m", form=form)) for form in ("", "float32", "as-is")]
    assert names == ["m", "m", "m as it is"]
