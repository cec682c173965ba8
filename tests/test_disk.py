"""One door to the disk: whole files or none, links followed, and no waiting for pipes."""

from __future__ import annotations

import ast
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from explorer import disk

ROOT = Path(disk.__file__).parent


def test_a_file_is_replaced_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("before")
    path.chmod(0o640)
    with disk.replacing(path) as stream:
        stream.write(b"after")
        stream.flush()
        assert path.read_text() == "before"
    assert path.read_text() == "after"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_what_fails_half_way_leaves_all_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("before")

    def fail() -> None:
        with disk.replacing(path) as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_its_target_is_written(tmp_path: Path, there: bool) -> None:
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "target", tmp_path / "link"
    if there:
        target.write_text("before")
    link.symlink_to("far/target")
    disk.write(link, b"after")
    assert link.is_symlink()
    assert target.read_bytes() == b"after"
    assert [file.name for file in (tmp_path / "far").iterdir()] == ["target"]


def test_a_name_as_long_as_the_system_allows_is_a_name(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * 127)  # 254 of 255 bytes
    disk.write(path, b"x")
    assert path.read_bytes() == b"x"


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def _device(path: Path) -> None:
    """One made for the test, like /dev/null; a pipe where nobody may make devices."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        os.mkfifo(path)


@pytest.mark.parametrize("make", [_pipe, _socket, _device, Path.mkdir])
@pytest.mark.parametrize("linked", [True, False])
def test_what_is_no_regular_file_is_neither_written_nor_read(
    tmp_path: Path, make: Callable[[Path], None], linked: bool
) -> None:
    thing = path = tmp_path / "t"
    make(thing)
    if linked:
        path = tmp_path / "link"
        path.symlink_to(thing)
    kind = stat.S_IFMT(thing.stat().st_mode)
    for act in (
        lambda: disk.write(path, b"x"),
        lambda: disk.append(path, b"x"),
        lambda: disk.opened(path),
    ):
        with pytest.raises(OSError, match=r"not a file|director"):
            act()
    with pytest.raises(disk.TextError, match=r"could not be read: .*(not a file|director)"):
        disk.read_text(path)
    assert stat.S_IFMT(thing.stat().st_mode) == kind
    assert path.is_symlink() == linked


def test_a_protected_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_text("before")
    monkeypatch.setattr("os.access", lambda *_: False)  # for root everything is allowed
    with pytest.raises(PermissionError, match="write-protected"):
        disk.write(path, b"x")
    assert path.read_text() == "before"


def test_text_is_read_as_it_is_but_for_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "p.txt"
    for data, text in {
        b"\xef\xbb\xbfThe capital": "The capital",
        "漢字\r\n\n \ufeffx\n".encode(): "漢字\r\n\n \ufeffx\n",
        b"": "",
    }.items():
        path.write_bytes(data)
        assert disk.read_text(path) == text


def test_what_is_no_text_or_too_much_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "p.txt"
    path.write_bytes(b"\xef\xbb\xbfab\xff")
    with pytest.raises(disk.TextError, match=r"p\.txt is not UTF-8 text \(byte 5 "):
        disk.read_text(path)
    os.truncate(path, disk.MOST_TEXT_BYTES + 1)
    with pytest.raises(disk.TextError, match="At most 32 MiB"):
        disk.read_text(path)
    with pytest.raises(disk.TextError, match="could not be read"):
        disk.read_text(tmp_path / "a\0b")


# Modules that go to the disk by themselves, each with its reason.
ELSEWHERE = {
    "disk": "the door",
    "engine.bench.rounds": "writes frames to nowhere, to time them",
    "engine.gguf.cache": "gives whole folders their names",
    "engine.library.hub": "names a download once it is whole",
    "engine.library.resumed": "goes on with a download that was cut short",
    "smollm2": "unpacks a model beside its place, and names it once its hash is right",
    "engine.machine.peak_memory": "the kernel's own files in /proc",
    "engine.frame_server": "the stream of frames, which is no file",
    "engine.model_files.tensor_file": "fills one in place, inside a folder that is not yet named",
    "session.saving.recovery": "the lock, held open; a damaged save set aside",
    "session.connection.log": "moves its own full file aside",
}
WRITES = {"write_text", "write_bytes", "rename", "touch"}


def test_every_writer_goes_through_the_door() -> None:
    found = set()
    for file in ROOT.rglob("*.py"):
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        if any(_writes(node) for node in ast.walk(ast.parse(file.read_text("utf-8")))):
            found.add(module)
    assert found <= ELSEWHERE.keys()


def _writes(node: ast.AST) -> bool:
    """True for calls that write, make or rename a file."""
    if not isinstance(node, ast.Call):
        return False
    called = ast.unparse(node.func)
    name = called.rpartition(".")[2]
    modes = [a.value for a in [*node.args[:2], *(k.value for k in node.keywords)]
             if isinstance(a, ast.Constant) and isinstance(a.value, str)]  # fmt: skip
    if name in ("open", "fdopen"):
        return any(set(mode) <= set("rwxab+t") and set(mode) & set("wxa+") for mode in modes)
    if name == "save" and node.args:
        return isinstance(node.args[0], ast.Call) and ast.unparse(node.args[0].func) == "str"
    return called == "os.replace" or name in WRITES
