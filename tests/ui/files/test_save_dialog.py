"""The one door of all that is saved: the ending first, then the question, nothing unasked."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QFileDialog, QMessageBox, QPushButton, QWidget

import explorer
from explorer.ui.files import save_dialog


@pytest.fixture
def parent(qapp: QApplication) -> QWidget:
    return QWidget()


def asked(
    parent: QWidget, monkeypatch: pytest.MonkeyPatch, chosen: Path | str, ending: str = ".csv"
) -> list[Path]:
    """What is handed on once the dialog has given this name."""
    got: list[Path] = []
    answer = staticmethod(lambda *_: (str(chosen), ""))
    monkeypatch.setattr(QFileDialog, "getSaveFileName", answer)
    save_dialog.ask(parent, "Save", Path(f"start{ending}"), "", got.append)
    return got


def question(parent: QWidget) -> QMessageBox | None:
    boxes = parent.findChildren(QMessageBox, "replace")
    return next((box for box in boxes if box.isVisible()), None)


def answer(parent: QWidget, text: str) -> None:
    box = question(parent)
    assert box is not None
    next(b for b in box.findChildren(QPushButton) if text in b.text()).click()


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("lesson", "lesson.csv"),
        ("fig2.1", "fig2.1.csv"),
        ("v1.2.final", "v1.2.final.csv"),
        ("done.csv", "done.csv"),
        ("DONE.CSV", "DONE.CSV"),
        ("picture.png", "picture.png.csv"),
        ("end.", "end..csv"),
    ],
)
def test_the_ending_is_added_and_dots_are_names(
    parent: QWidget, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, typed: str, name: str
) -> None:
    assert asked(parent, monkeypatch, tmp_path / typed) == [tmp_path / name]


def test_what_got_an_ending_is_not_replaced_unasked(
    parent: QWidget, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "<b>lesson.dxt").write_text("before")
    got = asked(parent, monkeypatch, tmp_path / "<b>lesson", ".dxt")
    box = question(parent)
    assert got == []
    assert box is not None
    assert "<b>lesson.dxt" in box.text()
    answer(parent, "Cancel")
    assert got == []
    got = asked(parent, monkeypatch, tmp_path / "<b>lesson", ".dxt")
    answer(parent, "Replace")
    assert got == [tmp_path / "<b>lesson.dxt"]


def test_a_name_that_the_dialog_asked_about_is_not_asked_about_twice(
    parent: QWidget, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "lesson.csv").touch()
    assert asked(parent, monkeypatch, tmp_path / "lesson.csv") == [tmp_path / "lesson.csv"]
    assert question(parent) is None


def test_without_a_name_nothing_happens(parent: QWidget, monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(parent, monkeypatch, "") == []


def test_every_save_dialog_goes_through_this_door() -> None:
    doors = set()
    for file in Path(explorer.__file__).parent.rglob("*.py"):
        names = [n.attr for n in ast.walk(ast.parse(file.read_text("utf-8")))
                 if isinstance(n, ast.Attribute)]  # fmt: skip
        if {"getSaveFileName", "getSaveFileUrl", "AcceptSave"}.intersection(names):
            doors.add(file.name)
    assert doors == {"save_dialog.py"}
