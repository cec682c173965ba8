"""A small server that speaks the part of the Hub's protocol that downloads need."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

REVISION = "0123456789abcdef0123456789abcdef01234567"


class Hub(ThreadingHTTPServer):
    """Serves `files` of one repository; counts what it is asked, and can stop in mid-file."""

    daemon_threads = True

    def __init__(self, repo: str, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repo = repo
        self.files = files
        self.asked: list[tuple[str, str, str]] = []  # method, path, range
        self.stalls_at: dict[str, int] = {}  # file: bytes after which nothing more comes
        self.stalled = threading.Event()
        self.go_on = threading.Event()
        self.gated = False

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of the test."""


def folder_files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self, body: bool) -> None:
        hub, path = self.server, self.path.split("?")[0]
        hub.asked.append((self.command, path, self.headers.get("Range", "")))
        base = f"/{hub.repo}/resolve/{REVISION}/"
        if hub.gated:
            self._send(403, b"{}", {"X-Error-Code": "GatedRepo"}, body)
        elif path == "/api/models":
            words = parse_qs(urlsplit(self.path).query).get("search", [""])[0]
            listed = [{"id": hub.repo}] if words in hub.repo else []
            self._send(200, json.dumps(listed).encode(), {"Content-Type": "application/json"}, body)
        elif path in (f"/api/models/{hub.repo}", f"/api/models/{hub.repo}/revision/{REVISION}"):
            siblings = [{"rfilename": n, "size": len(d)} for n, d in hub.files.items()]
            info = {"id": hub.repo, "sha": REVISION, "siblings": siblings}
            self._send(200, json.dumps(info).encode(), {"Content-Type": "application/json"}, body)
        elif path.startswith(base) and path[len(base) :] in hub.files:
            self._send_file(path[len(base) :], body)
        else:
            self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"}, body)

    def _send(self, status: int, data: bytes, headers: dict[str, str], body: bool) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(data)

    def _send_file(self, name: str, body: bool) -> None:
        data = self.server.files[name]
        first = int(self.headers.get("Range", "bytes=0-")[6:].split("-")[0])
        self.send_response(206 if "Range" in self.headers else 200)
        self.send_header("ETag", f'"{hashlib.sha256(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", REVISION)
        self.send_header("Content-Length", str(len(data) - first))
        if "Range" in self.headers:
            self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        if not body:
            return
        stop = self.server.stalls_at.get(name, len(data))
        self.wfile.write(data[first:stop])
        self.wfile.flush()
        if stop < len(data):
            self.server.stalled.set()
            self.server.go_on.wait(30)
            self.wfile.write(data[max(first, stop) :])
