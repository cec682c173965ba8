"""The environment: when it counts as finished, and how it gets there."""

import os
import sys
import threading

import pytest


@pytest.fixture
def steps(setup_env, monkeypatch):
    """Set-up with pip and venv replaced: what they were asked for, in order."""
    asked = []

    def runs(*command, quiet=True):
        if "venv" in command:
            python = setup_env.venv_python()
            os.makedirs(os.path.dirname(python))
            os.symlink(sys.executable, python)
            with open(os.path.join(setup_env.VENV, "pyvenv.cfg"), "w") as config:
                config.write("home = here\n")
        if command[2:] == ("pip", "--version"):
            return os.path.exists(command[0])
        asked.append(command[2:])
        return True

    monkeypatch.setattr(setup_env, "_runs", runs)
    return asked


def installs(steps):
    asked = [step for step in steps if step[:2] == ("pip", "install") and "-c" in step]
    assert all(step[-1] == "--no-compile" for step in asked)
    return [step[4:-1] for step in asked]


def test_a_first_start_tells_its_needs_and_installs_in_order(setup_env, steps, capsys):
    setup_env.environment()
    told = capsys.readouterr().out
    assert "MB" in told
    assert "GB of disk" in told
    assert setup_env.VENV in told
    assert installs(steps)[0] == ("hatchling",)
    assert installs(steps)[-1] == ("--no-build-isolation", "-e", setup_env.ROOT)


def test_a_second_start_runs_nothing(setup_env, steps):
    setup_env.environment()
    steps.clear()
    assert setup_env.environment() == setup_env.venv_python()
    assert steps == []


def test_tests_need_more_than_the_program(setup_env, steps):
    setup_env.environment()
    assert not setup_env.is_current(dev=True)
    setup_env.environment(dev=True)
    assert installs(steps)[-1][-1].endswith("[dev]")
    assert setup_env.is_current(dev=True)
    assert setup_env.is_current()


@pytest.mark.parametrize(
    "name", ["packaging/constraints.txt", "pyproject.toml", ".venv/pyvenv.cfg"]
)
def test_a_change_of_what_the_environment_rests_on_is_seen(setup_env, steps, tmp_path, name):
    setup_env.environment()
    with open(tmp_path / name, "a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert not setup_env.is_current()


def test_a_vanished_python_is_seen(setup_env, steps):
    setup_env.environment()
    os.remove(setup_env.venv_python())
    assert not setup_env.is_current()


def test_a_failed_install_is_no_finished_one(setup_env, steps, monkeypatch):
    monkeypatch.setattr(setup_env, "pip", lambda *arguments: False)
    with pytest.raises(setup_env.SetupError, match="network"):
        setup_env.environment()
    assert not setup_env.is_current()
    assert os.path.exists(setup_env._UNFINISHED)


def test_after_an_interruption_only_whole_packages_are_kept(setup_env, tmp_path):
    site = tmp_path / ".venv/lib/python3.11/site-packages"

    def package(name, record):
        info = site / f"{name}-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: {name}\nVersion: 1\n")
        if record is not None:
            (info / "RECORD").write_text(record)
        return info

    (site / "~left").mkdir(parents=True)
    (site / "whole.py").write_text("12345")
    (site / "short.py").write_text("12")
    whole = package("whole", "whole.py,sha256=x,5\n__pycache__/whole.pyc,,\n")
    broken = [
        package("short", "short.py,sha256=x,5\n"),
        package("absent", "absent.py,sha256=x,5\n"),
        package("unrecorded", None),
    ]
    setup_env._drop_half_installed()
    assert whole.exists()
    assert not any(info.exists() for info in [*broken, site / "~left"])


def test_a_full_disk_is_told_before_anything_is_made(setup_env, steps, monkeypatch):
    import shutil

    full = shutil.disk_usage("/")._replace(free=10_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
    with pytest.raises(setup_env.SetupError, match="Only 10 MB are free"):
        setup_env.environment()
    assert steps == []


def test_two_at_a_time_wait_for_each_other(setup_env, tmp_path, capsys):
    lock = str(tmp_path / "lock")
    order = []

    def second():
        with setup_env.only_one(lock, "waiting"):
            order.append("second")

    thread = threading.Thread(target=second)
    with setup_env.only_one(lock, "waiting"):
        thread.start()
        thread.join(0.3)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]
    assert "waiting" in capsys.readouterr().out


def test_a_place_that_cannot_be_written_is_a_sentence(setup_env, tmp_path):
    with (
        pytest.raises(setup_env.SetupError, match="cannot be written"),
        setup_env.only_one(str(tmp_path / "absent/lock"), "waiting"),
    ):
        pass


@pytest.mark.parametrize("version", [(3, 9, 1), (3, 10, 0), (3, 15, 0)])
def test_a_python_it_was_not_made_for_gets_one_sentence(setup_env, monkeypatch, version):
    monkeypatch.setattr(sys, "version_info", version)
    monkeypatch.setattr(setup_env, "_supported_python", lambda: None)
    with pytest.raises(setup_env.SetupError, match=r"needs Python 3\.11 to 3\.14, and this is"):
        setup_env.use_supported_python()


def test_an_old_python_hands_over_to_a_newer_one(setup_env, monkeypatch):
    taken = []
    monkeypatch.setattr(sys, "version_info", (3, 9, 1))
    monkeypatch.setattr(setup_env, "_supported_python", lambda: ["python3.12"])
    monkeypatch.setattr(setup_env, "replace_process", taken.append)
    setup_env.use_supported_python()
    assert taken == [["python3.12", *sys.argv]]


@pytest.mark.parametrize(
    ("visible", "nvidia", "asked"),
    [
        (True, False, [("torch==2.13.0+cpu",)]),
        (True, True, [("torch==2.13.0+cpu",)]),
        (False, True, []),
        (
            False,
            False,
            [
                (
                    "torch==2.13.0+cpu",
                    "--extra-index-url",
                    "https://download.pytorch.org/whl/cpu",
                )
            ],
        ),
    ],
)
def test_which_torch_is_taken(setup_env, steps, monkeypatch, visible, nvidia, asked):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(setup_env, "_pip_finds", lambda requirement: visible)
    monkeypatch.setattr(setup_env, "has_nvidia", lambda: nvidia)
    setup_env._install_torch()
    assert installs(steps) == asked
