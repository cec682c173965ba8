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
    env = setup_env.child_env()
    screen = virtual_screen(env)
    failed = run_beside(lanes(python, screen, arguments), env)
    if not arguments:
        # What times the window comes last, with the machine to itself.
        failed += run_beside(
            [[("tests of the window's speed", [*screen, *pytest(python), *SPEED])]], env
        )
    say(f"Failed: {', '.join(failed)}." if failed else "All checks passed.")
    return 1 if failed else 0


def lanes(python, screen, arguments):
    """Lists of (name, command) to run at the same time, a core each."""
    checks = [
        ("ruff check", [python, "-m", "ruff", "check"]),
        ("ruff format", [python, "-m", "ruff", "format", "--check"]),
        ("types", [python, "-m", "mypy"]),
        ("import rules", [python, "-c", LINT_IMPORTS]),
    ]
    run = [*screen, *pytest(python)]
    if arguments:
        return [[*checks, ("tests", [*run, *arguments])]]
    first, second = shares()
    but_speed = [f"--ignore={path}" for path in SPEED]
    return [
        [*checks, ("tests of the other rooms, and of lessons", [*run, *first])],
        [("tests of the window", [*run, *second, *but_speed])],
    ]


def pytest(python):
    return [python, "-m", "pytest", "-q"]


def shares():
    """Files and folders of tests: those of the first lane, and those of the second.

    The tests of the window take about as long as all the others with its lessons.
    """
    lessons = "tests/ui/lessons"
    first = [path for path in listed("tests") if path != "tests/ui"]
    return [*first, lessons], [path for path in listed("tests/ui") if path != lessons]


def listed(folder):
    """What holds tests in a folder, in order."""
    names = sorted(os.listdir(os.path.join(setup_env.ROOT, folder)))
    paths = [f"{folder}/{name}" for name in names]
    return [
        path
        for path in paths
        if os.path.basename(path).startswith("test_")
        or (os.path.isdir(os.path.join(setup_env.ROOT, path)) and not path.endswith("__"))
    ]


def run_beside(lanes, env):
    """Runs the lanes at the same time, and prints them one after the other.

    The names of those that failed.
    """
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor() as pool:
        # The first is seen while it runs; what the others print waits.
        running = [pool.submit(run_lane, lane, env, i > 0) for i, lane in enumerate(lanes)]
        try:
            done = [lane.result() for lane in running]
        finally:
            for lane in lanes:
                lane.clear()  # after Ctrl+C no other check begins
    for _, printed in done[1:]:
        say(printed)
    return [name for failed, _ in done for name in failed]


def run_lane(lane, env, hold):
    """Names of those that failed, and what all of them printed where it is held back."""
    import subprocess

    failed, printed = [], ""
    for name, command in lane:
        if not hold:
            say(f"== {name}")
        done = subprocess.run(
            command,
            cwd=setup_env.ROOT,
            env=env,
            stdout=subprocess.PIPE if hold else None,
            stderr=subprocess.STDOUT if hold else None,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            failed.append(name)
        if hold:
            printed += f"== {name}\n{done.stdout}"
    return failed, printed


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
