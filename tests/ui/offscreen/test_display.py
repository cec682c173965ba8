"""Is there a display?  Said in one sentence before Qt would end the process."""

from __future__ import annotations

import sys

import pytest

from explorer.ui.offscreen import display


def sentence(environment: dict[str, str]) -> str:
    text = display.problem(environment)
    assert text.count("\n") == 0
    return text


def test_offscreen_needs_no_display() -> None:
    assert sentence({"QT_QPA_PLATFORM": "offscreen"}) == ""


def test_no_display_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert "no display" in sentence({})


def test_a_display_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(display, "_missing_library", lambda platform: "")
    assert ":987 does not answer" in sentence({"DISPLAY": ":987"})


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(path: str) -> None:
        raise OSError("libxcb-cursor.so.0: cannot open shared object file: No such file")

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(display.ctypes, "CDLL", cannot)
    text = sentence({"DISPLAY": ":0"})
    assert "libxcb-cursor.so.0" in text
    assert "packaging/run.py" in text


def test_other_systems_always_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert display.problem({}) == ""
