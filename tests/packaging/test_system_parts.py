"""Libraries, fonts and the display: found out before Qt would abort."""

import os
import sys

import pytest


@pytest.fixture
def parts(script, monkeypatch, tmp_path):
    module = script("system_parts")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(module, "_CHECKED", str(tmp_path / "checked"))
    monkeypatch.setattr(module.debian_packages, "_root_rights", lambda: None)
    monkeypatch.setattr(module, "has_font", lambda: True)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    return module


def test_nothing_missing_is_looked_at_once(parts, monkeypatch):
    monkeypatch.setattr(parts, "missing_libraries", list)
    parts.need_qt_parts(display=True)
    monkeypatch.setattr(parts, "missing_libraries", lambda: pytest.fail("looked again"))
    parts.need_qt_parts(display=True)


def test_a_missing_library_is_named_with_its_package(parts, monkeypatch):
    monkeypatch.setattr(parts, "missing_libraries", lambda: ["libEGL.so.1", "libodd.so.3"])
    with pytest.raises(parts.SetupError, match=r"libEGL\.so\.1, libodd.*apt install libegl1"):
        parts.need_qt_parts(display=False)
    assert not os.path.exists(parts._CHECKED)


def test_without_a_display_its_libraries_are_only_mentioned(parts, monkeypatch, capsys):
    monkeypatch.setattr(parts, "missing_libraries", lambda: ["libxcb-cursor.so.0"])
    parts.need_qt_parts(display=False)
    assert "libxcb-cursor0" in capsys.readouterr().out
    with pytest.raises(parts.SetupError, match="libxcb-cursor0"):
        parts.need_qt_parts(display=True)


def test_root_gets_them_by_apt(parts, monkeypatch):
    answers = [["libGL.so.1"], []]
    asked = []
    monkeypatch.setattr(parts, "missing_libraries", lambda: answers.pop(0))
    monkeypatch.setattr(parts, "has_font", lambda: bool(asked))
    monkeypatch.setattr(
        parts.debian_packages, "install", lambda names, why: not asked.append(names)
    )
    parts.need_qt_parts(display=True)
    assert asked == [["libgl1", "fonts-dejavu-core"]]
    assert os.path.exists(parts._CHECKED)


def test_no_rights_no_apt(parts):
    assert parts.debian_packages.install(["libgl1"], "why") is False


@pytest.mark.parametrize(
    ("platform", "works"),
    [("offscreen", False), ("minimal", False), ("xcb", True), ("vnc:size=1280x720", True)],
)
def test_a_platform_the_user_chose_is_taken_at_its_word(parts, monkeypatch, platform, works):
    monkeypatch.setenv("QT_QPA_PLATFORM", platform)
    assert parts.display_works() is works


def test_no_display_variable_no_display(parts):
    assert not parts.display_works()


@pytest.mark.skipif(os.name == "nt", reason="X11")
def test_a_display_that_does_not_answer_is_none(parts, monkeypatch):
    monkeypatch.setenv("DISPLAY", ":9973")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-9973")
    assert not parts.display_works()


def test_an_ssh_server_is_installed_only_where_no_service_starts(
    parts, monkeypatch, capsys, tmp_path
):
    asked = []
    monkeypatch.setattr(parts, "_TEST_TOOLS", {})
    monkeypatch.setattr(parts, "has_ssh_server", lambda: False)
    monkeypatch.setattr(
        parts.debian_packages, "install", lambda names, why: not asked.append(names)
    )
    monkeypatch.setattr(parts, "_SERVICES", str(tmp_path))
    parts.need_test_tools()
    assert asked == []
    assert "left out" in capsys.readouterr().out
    monkeypatch.setattr(parts, "_SERVICES", str(tmp_path / "none"))
    parts.need_test_tools()
    assert asked == [["openssh-server"]]
    assert capsys.readouterr().out == ""
