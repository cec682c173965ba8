"""Whatever files and models hold, a terminal is only ever given text, and not too much of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from explorer import places
from explorer.cli.errors import CommandError
from explorer.trace.card import Check, SelfCheck
from explorer.trace.files import dxt
from explorer.trace.files.saved_extras import SavedExtras, Sibling
from explorer.trace.request import RunRequest
from explorer.trace.step import Token
from tests.cli.commands.test_saved import made_trace
from tests.cli.conftest import Done
from tests.hostile import ACTING, ACTS, TEXT, WORD, poisoned
from tests.session.scripted import card
from tests.trace.batches import result, row

Command = Callable[..., Done]
COPYCAT = Path(__file__).parents[2] / "assets" / "copycat"


@pytest.fixture
def hostile_run(tmp_path: Path) -> Path:
    """A saved run with the text wherever a file may hold one."""
    plain = made_trace()
    trace = replace(
        plain,
        request=RunRequest(model=f"tiny{TEXT}", prompt=TEXT),
        card=poisoned(card(), TEXT),
        prompt=(Token(0, TEXT.encode()), *plain.prompt[1:]),
        steps=tuple(replace(step, note=TEXT) for step in plain.steps),
        self_check=SelfCheck(
            passed=True,
            checks=(Check(name=TEXT, passed=True, measured=0.0, tolerance=1.0, note=TEXT),),
        ),
    )
    names = (Sibling(name=f"A{TEXT}", trace=trace), Sibling(name="B", trace=plain))
    path = tmp_path / "run.dxt"
    dxt.save(trace, path, SavedExtras(branches=names, batch=poisoned(result(row(2), row(3)), TEXT)))
    return path


def test_show(command: Command, hostile_run: Path) -> None:
    done = command("show", hostile_run)
    assert (done.code, done.err) == (0, "")
    assert not ACTS.search(done.out)
    assert "⟨ESC⟩]0;owned⟨BEL⟩⟨ESC⟩[31m" in done.out
    assert "R&D <b>catnip<br> &lt;" in done.out


def test_json_keeps_the_letters_and_is_ascii(command: Command, hostile_run: Path) -> None:
    done = command("show", hostile_run, "--json")
    assert done.out.isascii()
    assert not ACTS.search(done.out)
    assert json.loads(done.out)["model"] == f"tiny{TEXT}"


def test_a_lone_delete_stays_itself_in_json(command: Command, tmp_path: Path) -> None:
    trace = replace(made_trace(), request=RunRequest(model="a\x7fb"))
    dxt.save(trace, tmp_path / "run.dxt")
    assert json.loads(command("show", tmp_path / "run.dxt", "--json").out)["model"] == "a\x7fb"


@pytest.mark.parametrize(
    "words",
    [
        ("show", f"no{ACTING}such.dxt"),
        ("trace", f"no{ACTING}such", "--prompt", "a", "--steps", "1"),
        ("trace", "copycat", "--prompt", "a", "--steps", f"1{ACTING}"),
        ("trace", "copycat", "--prompt-file", f"no{ACTING}such", "--steps", "1"),
        ("attention", "x.dxt", "--layer", "0", "--head", "0", "--out", f"no{ACTING}/such.png"),
        ("bench", "copycat", "--against", f"no{ACTING}such"),
        (f"--{ACTING}",),
        ("show", "x.dxt", f"{ACTING}"),
    ],
)
def test_errors(command: Command, words: tuple[str, ...]) -> None:
    done = command(*words)
    assert (done.code, done.out) == (2, "")
    assert not ACTS.search(done.err)
    assert len(done.err.splitlines()) == 1


def test_whatever_a_command_prints(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a command that is still to be written."""

    def run(arguments: object) -> int:
        print(TEXT)
        raise CommandError(TEXT)

    monkeypatch.setattr("explorer.cli.commands.saved.show.run", run)
    done = command("show", "x.dxt")
    assert not ACTS.search(done.out + done.err)
    assert done.out.endswith("\n")


def test_an_error_fits_and_the_log_has_it_whole(command: Command, data_folder: Path) -> None:
    done = command("show", f"{WORD}.dxt")
    assert done.code == 2
    assert len(done.err) < 800
    assert str(data_folder) in done.err
    assert WORD in places.log_file().read_text("utf-8")


def test_folders_and_configs(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / f"model{ACTING.replace('/', '')}"
    shutil.copytree(COPYCAT, folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["model_type"] = f"llama{ACTING}"
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    done = command("inspect", folder)
    assert done.code == 2
    assert not ACTS.search(done.out + done.err)
    assert "⟨ESC⟩" in done.err
