"""Bad use is exit 2 and one sentence; nothing heavy is loaded to say so."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from explorer import __version__
from explorer.cli.commands.engine import engine_command
from explorer.cli.errors import CommandError
from tests.cli.conftest import Done

Command = Callable[..., Done]
TRACE = ("trace", "m", "--prompt", "x", "--steps", "1")

BAD = {
    "no model": (("trace",), "MODEL"),
    "no prompt": (("trace", "m", "--steps", "1"), "--prompt"),
    "two prompts": ((*TRACE, "--prompt-file", "f"), "not allowed with"),
    "no steps": (("trace", "m", "--prompt", "x"), "--steps"),
    "steps 0": (("trace", "m", "--prompt", "x", "--steps", "0"), "a whole number from 1 up"),
    "steps a word": (("trace", "m", "--prompt", "x", "--steps", "two"), "'two'"),
    "steps beyond 64 bits": (("trace", "m", "--prompt", "x", "--steps", "9" * 20), "too large"),
    "steps of 5,000 digits": (("trace", "m", "--prompt", "x", "--steps", "9" * 5000), "whole"),
    "top-k beyond 64 bits": ((*TRACE, "--top-k", "9" * 20), "too large"),
    "pad beyond 64 bits": ((*TRACE, "--padding", "left", "--pad", "9" * 20), "too large"),
    "unknown option": ((*TRACE, "--fast"), "--fast"),
    "option cut short": ((*TRACE, "--temp", "1"), "--temp"),
    "temperature a word": ((*TRACE, "--temperature", "hot"), "'hot' is not a number"),
    "temperature negative": ((*TRACE, "--temperature", "-1"), "Temperature must be 0"),
    "temperature nan": ((*TRACE, "--temperature", "nan"), "is not a number"),
    "temperature infinite": ((*TRACE, "--temperature", "inf"), "Temperature must be 0"),
    "top-k negative": ((*TRACE, "--top-k", "-3"), "from 0 up"),
    "top-p above 1": ((*TRACE, "--top-p", "1.5"), "Top-p must be between 0"),
    "min-p above 1": ((*TRACE, "--min-p", "2"), "Min-p must be between 0"),
    "penalty 0": ((*TRACE, "--repetition-penalty", "0"), "repetition penalty must be above 0"),
    "greedy and min-p": ((*TRACE, "--greedy", "--min-p", "0.1"), "--greedy can't be combined"),
    "seed too large": ((*TRACE, "--seed", str(2**63)), "seed"),
    "greedy and sampled": ((*TRACE, "--greedy", "--top-k", "4"), "--greedy can't be combined"),
    "padding without pad": ((*TRACE, "--padding", "left"), "must be used together"),
    "pad without padding": ((*TRACE, "--pad", "3"), "must be used together"),
    "padding middle": ((*TRACE, "--padding", "middle", "--pad", "3"), "'middle'"),
    "dtype": ((*TRACE, "--dtype", "int4"), "'int4'"),
    "lone surrogate": (("trace", "m", "--prompt", "a\udcff", "--steps", "1"), "U+DCFF"),
    "prompt file missing": (("trace", "m", "--prompt-file", "/no/f", "--steps", "1"), "/no/f"),
    "prompt file a folder": (("trace", "m", "--prompt-file", "/", "--steps", "1"), "director"),
    "prompt file with NUL": (("trace", "m", "--prompt-file", "a\0", "--steps", "1"), "null"),
    "out in no folder": ((*TRACE, "--out", "/no/folder/f.dxt"), "no folder /no/folder"),
    "out a folder": ((*TRACE, "--out", "/"), "is a folder"),
    "out empty": ((*TRACE, "--out", ""), "--out is empty"),
    "engine unbalanced": ((*TRACE, "--engine", "ssh 'box"), "--engine is no command line"),
    "engine empty": ((*TRACE, "--engine", "  "), "--engine is empty"),
    "show nothing": (("show",), "FILE.dxt"),
    "line break in a name": (("show", "/no/a\nb.dxt"), "/no/a b.dxt could not be opened"),
    "show missing": (("show", "/no/f.dxt"), "/no/f.dxt could not be opened"),
    "attention no head": (("attention", "f", "--layer", "0", "--out", "x.npy"), "--head"),
    "attention layer -1": (
        ("attention", "f", "--layer", "-1", "--head", "0", "--out", "x.npy"),
        "from 0 up",
    ),
    "trace, layers on a GPU": ((*TRACE, "--gpu-layers", "10000"), "at most 9,999"),
    "batch": (("batch", "m", "--prompts", "f"), "--padding"),
    "bench": (("bench",), "MODEL"),
    "window, two models": (("one", "two"), "two"),
    "window, unknown option": (("--colour", "red"), "--colour"),
    "trace, a removed option": ((*TRACE, "--mode", "fast"), "--mode was removed"),
    "bench, a removed option": (("bench", "--mode=rounded"), "--mode was removed"),
    "show, a removed option": (("show", "--mode"), "--mode was removed"),
    "window, a removed option": (("copycat", "--mode", "exact"), "--mode was removed"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_use_is_one_sentence(command: Command, kind: str) -> None:
    words, named = BAD[kind]
    done = command(*words)
    assert (done.code, done.out) == (2, "")
    assert named in done.err
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err


def test_a_folder_that_may_not_be_written_is_refused_before_the_run(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)  # for root everything is allowed
    done = command(*TRACE, "--out", tmp_path / "a.dxt")
    assert (done.code, done.out) == (2, "")
    assert f"no permission to write in {tmp_path}." in done.err


def test_ctrl_c_while_the_modules_load(monkeypatch: pytest.MonkeyPatch) -> None:
    class Impatient:
        def find_spec(self, name: str, path: object, target: object = None) -> None:
            if name == "explorer.cli.dispatch":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "explorer.cli")
    monkeypatch.delitem(sys.modules, "explorer.cli.dispatch")
    monkeypatch.setattr(sys, "meta_path", [Impatient(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        importlib.import_module("explorer.cli")
    assert ended.value.code == 130


def test_bad_bytes_in_a_prompt_file(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "p.txt"
    file.write_bytes(b"fine \xff\xfe")
    done = command("trace", "m", "--prompt-file", file, "--steps", 1)
    assert (done.code, done.out) == (2, "")
    assert "not UTF-8 text (byte 5" in done.err


@pytest.mark.parametrize("words", [("--help",), ("trace", "--help"), ("attention", "-h")])
def test_help(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    from explorer.cli import main

    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith("usage: decoder-explorer")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    from explorer.cli import main

    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"decoder-explorer {__version__}\n"


def test_every_command_is_offered() -> None:
    from explorer.cli.arguments import COMMANDS, desktop_parser

    text = desktop_parser().format_help()
    assert {"trace", "show", "attention", "batch", "check", "inspect", "models", "bench"} < set(
        COMMANDS
    )
    assert all(name in text for name in COMMANDS)


def test_engine_command_is_split_as_a_shell_would() -> None:
    assert engine_command(None) is None
    assert engine_command("ssh 'gpu box' run") == ["ssh", "gpu box", "run"]
    with pytest.raises(CommandError):
        engine_command("")


HEAVY = "{'torch', 'transformers', 'tiktoken', 'PySide6', 'numpy'}"


@pytest.mark.parametrize("words", [("--help",), ("trace", "--help"), ("trace", "m"), ("--what",)])
def test_help_and_bad_use_load_nothing_heavy(words: tuple[str, ...]) -> None:
    code = (
        "import sys\n"
        "from explorer.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        f"heavy = {HEAVY} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_module_is_the_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "explorer", "show", "/no/such.dxt"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
