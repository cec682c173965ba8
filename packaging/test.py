"""Sets up what the tests need and runs all checks; extra arguments go to pytest."""

import os
import sys

import setup_env
from setup_messages import SetupError, say

SCREEN = "-screen 0 1600x1000x24"
SPEED = ("tests/ui/window/test_speed.py", "tests/ui/window/test_attention_speed.py")
# A window manager gives windows their focus, as on a real screen.
WITH_WINDOW_MANAGER = 'openbox & manager=$!; "$@"; code=$?; kill $manager; exit $code'

# Not by its script: that names the folder it was installed in, and a checkout may move.
LINT_IMPORTS = "from importlinter.cli import lint_imports_command as run; run()"


def main(arguments):
    try:
        python = prepare()
        return run_checks(python, arguments)
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def prepare():
    import fetch_smollm2
    import system_parts

    python = setup_env.environment(dev=True)
    system_parts.need_test_tools()
    system_parts.need_qt_parts(display=has_virtual_screen())
    try:
        fetch_smollm2.fetch()
    except SetupError as error:
        if os.environ.get("CI"):
            raise  # a run that leaves tests out must not look complete
        say(f"{error} Tests that need SmolLM2 are left out.")
    return python


def run_checks(python, arguments):
    """All of them, even after one failed; 1 if any did."""
    import subprocess

    env = dict(os.environ)
    screen = virtual_screen(env)
    failed = []
    for name, command in checks(python):
        say(f"== {name}")
        if subprocess.call(command, cwd=setup_env.ROOT, env=env) != 0:
            failed.append(name)
    for group in tests(python, screen, arguments):
        failed += run_beside(group, env)
    say(f"Failed: {', '.join(failed)}." if failed else "All checks passed.")
    return 1 if failed else 0


def checks(python):
    return [
        ("ruff check", [python, "-m", "ruff", "check"]),
        ("ruff format", [python, "-m", "ruff", "format", "--check"]),
        ("types", [python, "-m", "mypy"]),
        ("import rules", [python, "-c", LINT_IMPORTS]),
    ]


def tests(python, screen, arguments):
    """Groups of (name, command); what times the window comes last, with the machine to itself."""
    pytest = [*screen, python, "-m", "pytest", "-q"]
    if arguments:
        return [[("tests", [*pytest, *arguments])]]
    but_speed = [f"--ignore={path}" for path in SPEED]
    return [
        [
            ("tests but those of the window", [*pytest, "tests", "--ignore=tests/ui"]),
            ("tests of the window", [*pytest, "tests/ui", *but_speed]),
        ],
        [("tests of the window's speed", [*pytest, *SPEED])],
    ]


def run_beside(commands, env):
    """Runs all at the same time, a core each, and prints them one after the other.

    The names of those that failed.
    """
    import subprocess
    import tempfile

    running = []
    try:
        for number, (name, command) in enumerate(commands):
            # The first is seen while it runs; what the others print waits in a file.
            output = tempfile.TemporaryFile() if number else None  # noqa: SIM115 - closed below
            process = subprocess.Popen(
                command,
                cwd=setup_env.ROOT,
                env=env,
                stdout=output,
                stderr=subprocess.STDOUT if number else None,
            )
            running.append((name, process, output))
        failed = []
        for name, process, output in running:
            say(f"== {name}")
            if process.wait() != 0:
                failed.append(name)
            if output is not None:
                output.seek(0)
                say(output.read().decode("utf-8", "replace"))
        return failed
    finally:
        for _name, process, output in running:
            if process.poll() is None:
                process.terminate()
            if output is not None:
                output.close()


def has_virtual_screen():
    import shutil

    return shutil.which("xvfb-run") is not None and shutil.which("xauth") is not None


def virtual_screen(env):
    """What to put before a command so that its windows open on a screen of their own."""
    import shutil

    if not sys.platform.startswith("linux"):
        return []
    env.pop("WAYLAND_DISPLAY", None)
    if not has_virtual_screen():
        env["QT_QPA_PLATFORM"] = "offscreen"
        return []
    env["QT_QPA_PLATFORM"] = "xcb"
    screen = ["xvfb-run", "-a", "-s", SCREEN]
    if shutil.which("openbox"):
        screen += ["sh", "-c", WITH_WINDOW_MANAGER, "sh"]
    return screen


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
