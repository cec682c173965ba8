"""run.py: what it starts, for which arguments, with and without a display."""

import os
import subprocess

import pytest


class Started(Exception):
    """The process became this command."""


@pytest.fixture
def run(script, monkeypatch, tmp_path):
    module = script("run")
    parts, fetch = script("system_parts"), script("fetch_smollm2")

    def start(command, env):
        raise Started(command[1:])

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module.setup_env, "environment", lambda: "python")
    monkeypatch.setattr(module.setup_env, "replace_process", start)
    monkeypatch.setattr(module.setup_env, "data_folder", lambda: str(tmp_path / "data"))
    monkeypatch.setattr(parts, "display_works", lambda: True)
    monkeypatch.setattr(parts, "need_qt_parts", lambda display: None)
    monkeypatch.setattr(fetch, "fetch", lambda: None)
    return module


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ([], ["smollm2"]),
        (["--prompt", "Hi"], ["smollm2", "--prompt", "Hi"]),
        (["smollm2"], ["smollm2"]),
        (["~/models/mine"], ["~/models/mine"]),
        (["saved.dxt"], ["saved.dxt"]),
        (["trace", "smollm2", "--steps", "3"], ["trace", "smollm2", "--steps", "3"]),
    ],
)
def test_arguments_are_handed_on(run, arguments, command):
    with pytest.raises(Started) as started:
        run.main(arguments)
    assert started.value.args[0] == ["-m", "explorer", *command]


def test_every_command_of_the_program_is_known(run):
    from explorer.cli.arguments import COMMANDS

    assert run.commands() == list(COMMANDS)


def test_what_python_compiles_is_kept(run, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert "PYTHONDONTWRITEBYTECODE" not in run.program_env()


@pytest.mark.parametrize("arguments", [[], ["smollm2"]])
def test_without_a_network_copycat_opens(run, script, monkeypatch, capsys, arguments):
    def away():
        raise run.SetupError("No network.")

    monkeypatch.setattr(script("fetch_smollm2"), "fetch", away)
    with pytest.raises(Started) as started:
        run.main(arguments)
    assert started.value.args[0] == ["-m", "explorer", "copycat"]
    assert "copycat" in capsys.readouterr().out


def test_a_set_up_that_fails_is_one_sentence(run, monkeypatch, capsys):
    def fails():
        raise run.SetupError("Something is missing.")

    monkeypatch.setattr(run.setup_env, "environment", fails)
    assert run.main([]) == 1
    assert capsys.readouterr().err == "Something is missing.\n"


def test_prepare_opens_nothing(run, capsys):
    assert run.main(["--prepare"]) == 0
    assert "smollm2" in capsys.readouterr().out


def test_without_a_display_a_trace_and_pictures_are_made_and_named(
    run, script, monkeypatch, tmp_path, capsys
):
    calls = []

    def call(command, env, stdout=None):
        calls.append(command[1:])
        assert env["PYTHONSAFEPATH"] == "1"
        if "explorer.app" in command:
            assert env["QT_QPA_PLATFORM"] == "offscreen"
            open(os.path.join(command[4], "window.png"), "w").close()
        return 0

    monkeypatch.setattr(script("system_parts"), "display_works", lambda: False)
    monkeypatch.setattr(subprocess, "call", call)
    assert run.main([]) == 0
    folder = str(tmp_path / "explorer-output")
    trace = os.path.join(folder, "trace.dxt")
    made = ["trace", "smollm2", "--prompt", "The capital of France is", "--steps", "8"]
    assert calls == [
        ["-m", "explorer", *made, "--out", trace],
        ["-m", "explorer.app", "--pictures", folder, trace],
    ]
    told = capsys.readouterr().out
    assert "No display" in told
    assert trace in told
    assert os.path.join(folder, "window.png") in told


def test_the_offscreen_job_reports_its_failure(run, script, monkeypatch):
    monkeypatch.setattr(script("system_parts"), "display_works", lambda: False)
    monkeypatch.setattr(subprocess, "call", lambda command, **more: 3)
    assert run.main([]) == 3


def test_output_goes_to_the_data_folder_where_the_current_one_is_taken(run, tmp_path):
    (tmp_path / "explorer-output").write_text("a file of that name")
    assert run.output_folder() == str(tmp_path / "data/explorer-output")


def test_the_menu_entry_is_offered_once_and_made_only_when_asked_for(
    run, script, monkeypatch, capsys
):
    entry = script("desktop_entry")
    done = []
    monkeypatch.setattr(entry, "possible", lambda: True)
    monkeypatch.setattr(entry, "install", lambda python: done.append(python))
    monkeypatch.setattr(entry, "remove", lambda: done.append("removed"))
    for set_up, offered in ((False, 1), (True, 0)):
        monkeypatch.setattr(run.setup_env, "is_current", lambda dev=False, is_it=set_up: is_it)
        with pytest.raises(Started):
            run.main([])
        assert capsys.readouterr().out.count("--install-desktop") == offered
    assert done == []
    assert run.main(["--install-desktop"]) == 0
    assert run.main(["--remove-desktop"]) == 0
    assert done == ["python", "removed"]
