"""A real ssh server on the loopback, with keys, accounts and settings of its own."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FAKE = ROOT / "tests" / "session" / "fake_engine.py"
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"  # not on every user's PATH
SEPARATION = Path("/run/sshd")  # sshd wants it where it runs as root

CONFIG = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
AuthorizedKeysFile {folder}/authorized_keys
SetEnv PATH={folder}/bin:/usr/bin:/bin DECODER_EXPLORER_HOME={folder}/home OMP_NUM_THREADS=1
"""
HOST = """\
Host {name}
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {folder}/{key}
"""
ALL = """\
Host *
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile none
"""
# What is called decoder-explorer there; "fake-engine RUNS" has no model and is quick.
PROGRAMS = {
    "decoder-explorer": f'exec "{sys.executable}" -P -m explorer "$@"',
    "fake-engine": f'exec "{sys.executable}" "{FAKE}" "$@"',
}


def program() -> str | None:
    """Where sshd lies."""
    return shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:{SBIN}")


class Server:
    """sshd, and the settings by which ssh reaches it: hosts gpu-box, refused, greets, unknown."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, _free_port()
        self.hosts: list[str] = []
        (folder / "bin").mkdir()
        for name, line in PROGRAMS.items():
            path = folder / "bin" / name
            path.write_text(f'#!/bin/sh\nexport PYTHONPATH="{ROOT}"\n{line}\n')
            path.chmod(0o755)
        for key in ("host", "user", "other", "greets"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
            subprocess.run(words, check=True)
        # As a shell whose start-up file prints something.
        greeting = 'command="echo Welcome to gpu-box!; eval \\"$SSH_ORIGINAL_COMMAND\\"" '
        keys = folder / "authorized_keys"
        keys.write_text(self._public("user") + greeting + self._public("greets"))
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {self._public('host')}")
        (folder / "sshd_config").write_text(CONFIG.format(port=self.port, folder=folder))
        self.host("gpu-box")
        self.host("refused", "other")
        self.host("greets", "greets")

    def _public(self, key: str) -> str:
        return (self.folder / f"{key}.pub").read_text()

    def host(self, name: str, key: str = "user", port: int = 0) -> None:
        """A name by which ssh reaches it, through another port if one is given."""
        how = {"folder": self.folder, "name": name, "key": key, "user": getpass.getuser()}
        self.hosts.append(HOST.format(port=port or self.port, **how))
        if port:
            known = self.folder / "known_hosts"
            known.write_text(known.read_text() + f"[127.0.0.1]:{port} {self._public('host')}")
        text = "".join(self.hosts) + ALL.format(folder=self.folder)
        (self.folder / "ssh_config").write_text(text)

    def command(self, host: str, *words: str) -> list[str]:
        """The command line of an engine there."""
        return ["ssh", "-F", str(self.folder / "ssh_config"), host, *words]


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Server]:
    """A server that takes connections, until the end of the block."""
    server, made = Server(folder), False
    if os.geteuid() == 0 and not SEPARATION.exists():
        SEPARATION.mkdir()
        made = True
    found = program()
    assert found is not None
    # Not in one process (-d): each connection has a process of its own, as on any machine.
    with open(folder / "sshd.log", "wb") as log:
        sshd = subprocess.Popen([found, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=log)
    try:
        _until_listening(server.port, sshd, folder / "sshd.log")
        yield server
    finally:
        sshd.terminate()
        sshd.wait()
        if made:
            SEPARATION.rmdir()


class Link:
    """A forwarding process before a server (`slow_link`)."""

    def __init__(self, port: int, rate: float = 0.0, delay: float = 0.0) -> None:
        script = Path(__file__).with_name("slow_link.py")
        self._process = subprocess.Popen(
            [sys.executable, "-S", str(script), str(port), str(rate), str(delay)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def say(self, word: str) -> None:
        """Returns once it is so."""
        assert self._process.stdin is not None
        self._process.stdin.write(word + "\n")
        self.count()

    def count(self) -> tuple[int, int]:
        """Bytes that came from the server, and bytes that went there."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("count\n")
        back, forth = map(int, self._process.stdout.readline().split())
        return back, forth

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _until_listening(port: int, sshd: subprocess.Popen[bytes], log: Path) -> None:
    """Asked of the port, for sshd tells nobody."""
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as one:
            assert one.recv(4) == b"SSH-"
            return
        assert sshd.poll() is None, log.read_text()
        with contextlib.suppress(subprocess.TimeoutExpired):
            sshd.wait(0.02)
    raise AssertionError(log.read_text())
