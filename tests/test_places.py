"""Where things are, on each system and by the user's wish."""

import sys
from pathlib import Path

import pytest

from explorer import places


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch, tmp_path):
    for name in ("DECODER_EXPLORER_HOME", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))


@pytest.mark.parametrize(
    ("platform", "folder"),
    [
        ("linux", ".local/share/decoder-explorer"),
        ("darwin", "Library/Application Support/decoder-explorer"),
        ("win32", "AppData/Local/decoder-explorer"),
    ],
)
def test_each_system_has_its_own_place(monkeypatch, tmp_path, platform, folder):
    monkeypatch.setattr(sys, "platform", platform)
    assert places.data_folder() == tmp_path / folder


def test_xdg_moves_it_unless_relative(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert places.data_folder() == tmp_path / "xdg/decoder-explorer"
    monkeypatch.setenv("XDG_DATA_HOME", "xdg")
    assert places.data_folder() == tmp_path / ".local/share/decoder-explorer"


def test_the_user_has_the_last_word(monkeypatch, tmp_path):
    monkeypatch.setenv("DECODER_EXPLORER_HOME", "~/mine")
    assert places.data_folder() == tmp_path / "mine"
    assert places.models_folder() == tmp_path / "mine/models"
    assert places.log_file().parent == tmp_path / "mine"


def test_assets_come_from_the_package_before_the_checkout(monkeypatch, tmp_path):
    package = tmp_path / "explorer"
    monkeypatch.setattr(places, "_PACKAGE", package)
    for root in (tmp_path / "assets", package / "assets"):
        (root / "icons").mkdir(parents=True)
        (root / "icons/step.svg").touch()
        assert places.asset("icons", "step.svg") == root / "icons/step.svg"


def test_a_missing_asset_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(places, "_PACKAGE", Path(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"assets/icons/none\.svg is missing"):
        places.asset("icons", "none.svg")
