"""The menu entry: what it installs for the user alone, that it is valid, and that it goes again."""

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="menus of Linux")


@pytest.fixture
def desktop_entry(script, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    return script("desktop_entry")


def files(folder):
    """What is there, but the caches that the desktop's own programs write."""
    found = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    return {name for name in found if "decoder-explorer" in name and "mime/app" not in name}


def test_it_installs_for_the_user_and_removes_all_of_it(desktop_entry, tmp_path, capsys):
    share = tmp_path / "share"
    desktop_entry.install("/opt/python")
    assert files(share) == set(desktop_entry.FILES)
    assert "--remove-desktop" in capsys.readouterr().out
    entry = (share / "applications/decoder-explorer.desktop").read_text()
    assert 'Exec="/opt/python" "-P" "-m" "explorer" %f\n' in entry
    desktop_entry.install("/elsewhere/python")  # again is no harm
    assert (
        'Exec="/elsewhere/python"' in (share / "applications/decoder-explorer.desktop").read_text()
    )
    desktop_entry.remove()
    assert list(share.rglob("*decoder-explorer*")) == []
    desktop_entry.remove()
    assert "was not in your menu" in capsys.readouterr().out


def test_what_cannot_be_written_is_one_sentence(desktop_entry, tmp_path):
    (tmp_path / "share").write_text("a file")
    with pytest.raises(desktop_entry.SetupError, match="could not be written"):
        desktop_entry.install("python")


@pytest.mark.parametrize(
    "path", ["/a b/py", '/q"uote/py', "/dol$lar/p`y", "/per%cent/py", "/b\\s/py"]
)
def test_any_path_can_be_in_the_entry(desktop_entry, path):
    line = desktop_entry.entry("Exec=decoder-explorer %f\n", [path, "-P"])
    value = line.strip().removeprefix("Exec=").replace("\\\\", "\\").replace("%%", "%")
    told = subprocess.run(["sh", "-c", f"printf '%s,' {value}"], capture_output=True, check=True)
    assert told.stdout.decode().split(",")[:-1] == [path, "-P", "%f"]


def test_the_pieces_name_each_other(desktop_entry):
    entry = dict(
        line.split("=", 1)
        for line in Path(desktop_entry.FILES[desktop_entry.ENTRY]).read_text().splitlines()
        if "=" in line
    )
    mime = ElementTree.parse(desktop_entry.FILES["mime/packages/decoder-explorer.xml"])
    ours = "{http://www.freedesktop.org/standards/shared-mime-info}"
    kind = mime.getroot().find(f"{ours}mime-type")
    about = ElementTree.parse(desktop_entry.FILES["metainfo/decoder-explorer.metainfo.xml"])
    assert entry["MimeType"] == kind.get("type") + ";"
    assert kind.find(f"{ours}glob").get("pattern") == "*.dxt"
    assert about.findtext("launchable") == "decoder-explorer.desktop"
    assert about.findtext("provides/mediatype") == kind.get("type")
    assert f"icons/hicolor/scalable/apps/{entry['Icon']}.svg" in desktop_entry.FILES
    icon = kind.find(f"{ours}icon").get("name")
    assert f"icons/hicolor/scalable/mimetypes/{icon}.svg" in desktop_entry.FILES
    ElementTree.parse(ROOT / "assets/decoder-explorer.svg")


CHECKS = {
    "desktop-file-validate": ["decoder-explorer.desktop"],
    "appstreamcli": ["validate", "--no-net", "decoder-explorer.metainfo.xml"],
}


@pytest.mark.parametrize("program", CHECKS)
def test_the_desktops_own_programs_find_it_valid(program):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    *options, name = CHECKS[program]
    command = [program, *options, str(ROOT / "packaging/desktop" / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_session_is_known_by_its_first_bytes(desktop_entry, tmp_path):
    """By what programs of this kind write, whatever the file is called."""
    sys.path.insert(0, str(ROOT))
    from explorer.trace.files import dxt
    from tests.trace.runs import made_trace

    dxt.save(made_trace(1), tmp_path / "run.dxt")
    magic = b'{"__metadata__":{"decoder_explorer"'
    assert (tmp_path / "run.dxt").read_bytes()[8:].startswith(magic)
    text = Path(desktop_entry.FILES["mime/packages/decoder-explorer.xml"]).read_text()
    assert magic.decode().replace('"', "&quot;") in text
    assert os.path.exists(desktop_entry._ICON)
