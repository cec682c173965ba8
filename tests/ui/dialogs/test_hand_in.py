"""Report, script and notebook made from the window: what they hold, and what never gets in."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image, ImageChops
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage, QTextDocument
from PySide6.QtWidgets import QApplication, QFileDialog

from explorer.lessons.given_answers import GivenAnswer
from explorer.ui.dialogs.hand_in import report_page
from explorer.ui.dialogs.hand_in.gif_dialog import GifDialog
from explorer.ui.dialogs.hand_in.pdf_pages import pdf_of
from explorer.ui.dialogs.hand_in.report import Answer, Picture, Report, facts
from explorer.ui.dialogs.hand_in.report_dialog import ReportDialog
from explorer.ui.dialogs.hand_in.trimmed import trimmed
from tests.ui.stage import WindowStage
from tests.ui.waiting import wait_until

EVIL = '<script>alert("x")</script><img src=http://a.b/c onerror=alert(1)>&amp;\u202e'


class Page(HTMLParser):
    """Tags, addresses and text of a page."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.sources: list[str] = []
        self.text = ""
        self.feed(data.decode("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def evil_report() -> Report:
    image = QImage(60, 40, QImage.Format.Format_ARGB32)
    image.fill(QColor("#204060"))
    return Report(
        title=EVIL, author=EVIL, notes=f"one\n{EVIL}", day=date(2026, 11, 30), prompt=EVIL,
        generated=EVIL, tokens=((EVIL, "prompt"), ("x", "forced")), facts=((EVIL, EVIL),),
        answers=(Answer(EVIL, "Paris", "92.5 %"),), pictures=(Picture(EVIL, EVIL, image),),
        room=True,
    )  # fmt: skip


def test_a_page_escapes_every_text_and_asks_for_nothing(qapp: QApplication) -> None:
    page = Page(report_page.html(evil_report()))
    assert not page.tags & {"script", "link", "iframe", "object", "form", "base"}
    assert not any(name.startswith("on") for name in page.names)
    (source,) = page.sources
    kind, _, data = source.partition(",")
    assert kind == "data:image/png;base64"
    assert QImage.fromData(base64.b64decode(data)).width() == 60
    assert b"<p><img" in report_page.html(evil_report()), "a picture has lines of its own"
    assert b'<div class="keep"><p><b>1.' in report_page.html(evil_report()), "an answer is one"
    assert page.text.count("<script>") >= 9, "as letters"
    assert "\u202e" not in page.text
    for words in ("Answers", "Paris", "92.5 %", "Room for more", "forced by you", "2026"):
        assert words in page.text, words


def test_a_report_says_how_llama_cpp_ran_a_file(stage: WindowStage) -> None:
    stage.session.start_engine()
    stage.session.open_model("a.gguf", form="as-is", cache_type_k="q8_0", gpu_layers=1)
    stage.drain()
    how = {"cache_type_k": "q8_0", "gpu_layers": 1, "layers": 2}
    stage.answer_load(name="a", form="as-is", stored_dtype="Q4_1", **how)
    stage.session.set_prompt("abc")
    stage.session.step()
    stage.drain()
    stage.prompted()
    stage.steps(1)
    said = "llama.cpp, as it is (Q4_1), keys in q8_0, 1 of 2 layers on a GPU, cpu"
    assert dict(facts(stage.state))["Runs in"] == said


def test_a_picture_loses_the_empty_room_around_it(qapp: QApplication) -> None:
    image = QImage(200, 300, QImage.Format.Format_ARGB32)
    image.fill(QColor("white"))
    assert trimmed(image).size() == image.size(), "nothing is painted"
    image.setPixelColor(50, 60, QColor("red"))
    image.setPixelColor(90, 80, QColor("red"))
    image.setDevicePixelRatio(2)
    made = trimmed(image)
    assert (made.width(), made.height(), made.devicePixelRatio()) == (41 + 24, 21 + 24, 2)
    assert made.pixelColor(12, 12) == QColor("red")
    assert made.pixelColor(52, 32) == QColor("red")


def test_a_pdf_has_the_same_and_is_pages(qapp: QApplication) -> None:
    made = report_page.pdf(evil_report())
    assert made.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", made)) >= 1
    assert b"/Subtype /Image" in made or b"/Subtype/Image" in made


def test_no_heading_of_a_pdf_stands_alone_at_the_foot_of_a_page(qapp: QApplication) -> None:
    for lines in range(30, 60):
        document = QTextDocument()
        paragraphs = "<p>line</p>" * lines
        document.setHtml(f"{paragraphs}<h2>Pictures</h2><h3>Map</h3><p>text</p>{paragraphs}")
        made = pdf_of(document, "t")
        layout, height = document.documentLayout(), document.pageSize().height()
        block = document.begin()
        while block.blockFormat().headingLevel() != 2:
            block = block.next()
        tops = []
        for _ in range(3):
            tops.append(layout.blockBoundingRect(block).top() // height)
            block = block.next()
        assert len(set(tops)) == 1, lines
        assert len(re.findall(rb"/Type\s*/Page\b", made)) == document.pageCount()


def test_every_picture_is_on_the_pages_after_headings_have_moved(qapp: QApplication) -> None:
    pictures = []
    for number in range(9):
        image = QImage(300, 130, QImage.Format.Format_RGB32)
        image.fill(QColor(number, 90, 120))
        pictures.append(Picture(f"Map {number}", "caption", image))
    for lines in range(0, 40, 4):
        notes = "line\n" * lines
        report = replace(evil_report(), notes=notes, pictures=tuple(pictures))
        made = report_page.pdf(report)
        assert len(re.findall(rb"/Subtype ?/Image\b", made)) >= 9, lines


def test_a_tall_picture_fits_on_a_page(qapp: QApplication) -> None:
    image = QImage(300, 3000, QImage.Format.Format_ARGB32)
    report = replace(evil_report(), pictures=(Picture("tall", "tall", image),))
    assert b'<img width="78"' in report_page.html(report)


def test_a_long_run_names_how_many_tokens_are_left_out(qapp: QApplication) -> None:
    many = tuple(("t", "generated") for _ in range(report_page.MOST_TOKENS + 5))
    report = Report(
        title="t", author="", notes="", day=date(2026, 1, 2), prompt="p", generated="",
        tokens=many, facts=(),
    )  # fmt: skip
    assert "The first 2,000 of 2,005 tokens are shown." in Page(report_page.html(report)).text


def opened_dialog(stage: WindowStage) -> ReportDialog:
    stage.loaded("a <b>bold</b> prompt").ran(2)
    stage.until_settled()
    stage.window.make_report()
    dialog = stage.window.findChild(ReportDialog)
    assert isinstance(dialog, ReportDialog)
    return dialog


def choose(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setattr(QFileDialog, "getSaveFileName", staticmethod(lambda *_: (str(path), "")))


def test_the_report_holds_what_is_ticked_and_typed(
    stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for page, predicted in enumerate(("two", "")):
        answer = GivenAnswer(
            lesson="l", page=page, question=f"What comes {page}?", predicted=predicted,
            measured="three", right=False,
        )  # fmt: skip
        stage.session.answers.put(answer)
    dialog = opened_dialog(stage)
    assert "(1)" in dialog.with_answers.text(), "one was skipped"
    names = [dialog.list.item(row).text() for row in range(dialog.list.count())]
    assert {"Attention map", "Next token", "Cache by layer"} <= set(names)
    assert "Cache growth" not in names, "it is on another page of its panel"
    assert all(not dialog.list.item(row).icon().isNull() for row in range(dialog.list.count()))
    for row, name in enumerate(names):
        on = name == "Next token"
        dialog.list.item(row).setCheckState(
            Qt.CheckState.Checked if on else Qt.CheckState.Unchecked
        )
    dialog.title.setText("Homework")
    dialog.author.setText("Ada")
    dialog.notes.setPlainText("I saw it.")
    choose(monkeypatch, tmp_path / "homework")
    dialog.html.click()
    saving = stage.window.hand_in().saving
    wait_until(lambda: not saving.busy)
    assert stage.window.status.text == "Saved: homework.html"
    page = Page((tmp_path / "homework.html").read_bytes())
    assert len(page.sources) == 1
    said = ("Homework", "Ada", "I saw it.", "a <b>bold</b> prompt", "What comes 0?", "three")
    for words in (*said, "causal mask on", "greedy", "Seed", "tiny", "Decoder Explorer"):
        assert words in page.text, words
    dialog.pdf.click()
    wait_until(lambda: not saving.busy)
    assert (tmp_path / "homework.pdf").read_bytes().startswith(b"%PDF")
    dialog.close()


def test_a_panel_that_a_lesson_covers_is_not_in_a_report(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    stage.until_settled()
    (dock,) = (d for d in stage.window.docks.docks if d.place.id == "next-token")
    dock.panel.setEnabled(False)
    stage.window.make_report()
    dialog = stage.window.findChild(ReportDialog)
    assert isinstance(dialog, ReportDialog)
    names = [dialog.list.item(row).text() for row in range(dialog.list.count())]
    assert "Attention map" in names
    assert "Next token" not in names
    dialog.close()


def test_a_report_names_no_place_of_this_computer(
    stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dialog = opened_dialog(stage)
    made = report_page.html(dialog.report()).decode()
    assert str(Path.home()) not in made
    assert "/models" not in Page(made.encode()).text
    dialog.close()


def test_a_report_that_cannot_be_written_is_told(
    stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dialog = opened_dialog(stage)
    choose(monkeypatch, tmp_path / "missing" / "r.html")
    dialog.html.click()
    wait_until(lambda: bool(stage.state.error))
    assert "r.html could not be saved" in stage.state.error
    dialog.close()


def test_a_script_of_the_run_is_copied(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    stage.window.copy_python()
    copied = QApplication.clipboard().text()
    compile(copied, "script", "exec")
    assert "PROMPT = 'hello'" in copied
    assert stage.window.status.text == "Copied"


def test_a_notebook_is_saved_whole(
    stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stage.loaded().ran(1)
    choose(monkeypatch, tmp_path / "n")
    stage.window.save_notebook()
    wait_until(lambda: not stage.window.hand_in().saving.busy)
    document = json.loads((tmp_path / "n.ipynb").read_text(encoding="utf-8"))
    assert document["nbformat"] == 4


def gif_dialog(stage: WindowStage, steps: int) -> GifDialog:
    stage.loaded().ran(steps)
    stage.until_settled()
    stage.window.save_gif()
    dialog = stage.window.findChild(GifDialog)
    assert isinstance(dialog, GifDialog)
    return dialog


def test_a_gif_has_a_picture_of_each_step(
    stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dialog = gif_dialog(stage, 3)
    shown = stage.state.selection
    dialog.width_box.setCurrentIndex(1)
    dialog.seconds.setValue(0.5)
    choose(monkeypatch, tmp_path / "run")
    dialog.save.click()
    assert not dialog.save.isEnabled()
    wait_until(lambda: (tmp_path / "run.gif").exists())
    wait_until(lambda: not stage.window.hand_in().saving.busy)
    assert stage.state.selection == shown, "the window shows what it showed"
    with Image.open(tmp_path / "run.gif") as made:
        assert (made.n_frames, made.size) == (3, (640, 320))
        pictures = []
        for frame in range(3):
            made.seek(frame)
            assert made.info["duration"] == (1500 if frame == 2 else 500)
            pictures.append(made.convert("RGB").tobytes())
        half = made.convert("RGB").crop((0, 40, 318, 320))
        empty = Image.new("RGB", half.size, half.getpixel((316, 278)))
        painted = ImageChops.difference(half, empty).getbbox()
        assert painted is not None
        assert painted[2] > 200, "the map has its half of the picture, not what a panel leaves it"
    assert len(set(pictures)) == 3
    assert all(len(set(picture)) > 20 for picture in pictures), "there is something on them"


def test_a_gif_can_be_cancelled_and_leaves_no_file(
    stage: WindowStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dialog = gif_dialog(stage, 3)
    choose(monkeypatch, tmp_path / "run")
    ended: list[bool] = []
    dialog.finished.connect(lambda: ended.append(True))
    dialog.save.click()
    dialog.leave.click()
    wait_until(lambda: bool(ended))
    stage.paint()
    assert not stage.window.hand_in().saving.busy
    assert not list(tmp_path.glob("run*"))


def test_a_long_run_says_that_only_its_beginning_is_in_the_gif(
    stage: WindowStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer.ui.dialogs.hand_in.gif_dialog.MOST_FRAMES", 2)
    dialog = gif_dialog(stage, 3)
    assert dialog.frames == 2
    assert dialog.words.text() == "The first 2 of 3 tokens, one picture each."
    dialog.close()
